"""A map of the world from the very tensor that zarrow read: how turbid the air is on land in July."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import zarrow
from zarrow.demo.stores import Stores

_SEA = (16, 32, 56)
# Clear air to dusty air.
_COLOURS = ((44, 105, 86), (148, 176, 92), (236, 213, 120), (224, 138, 60), (170, 48, 36), (96, 16, 40))


def show(stores: Stores) -> None:
    """Write the map beside the stores and say where."""
    from PIL import Image

    masked: zarrow.MaskedTensor = zarrow.open(stores.masked)["turbidity_on_land"][6, ::2, ::2]
    pixels = masked.filled(0)
    height, width = pixels.shape
    # The picture uses the tensor's own bytes: a palette gives each value its colour.
    image = Image.frombuffer("P", (width, height), pixels, "raw", "P", 0, 1)
    land = masked.numpy().compressed()
    low, high = np.percentile(land, [2, 98])
    image.putpalette(_palette(low, high).tobytes())
    path = stores.folder / "world.png"
    image.save(path)
    print(f"{path}: {width} x {height}")
    print(
        f"how turbid the air over land is in July, from {low / 20:.1f} (green) to {high / 20:.1f} (dark red);"
    )
    print("the sea is what the mask says is missing")


def _palette(low: float, high: float) -> NDArray[np.uint8]:
    """Make the palette of 256 colours, with 0 as the sea."""
    scale = np.clip((np.arange(256) - low) / (high - low), 0, 1) * (len(_COLOURS) - 1)
    channels = [np.interp(scale, range(len(_COLOURS)), channel) for channel in zip(*_COLOURS, strict=True)]
    palette = np.stack(channels, axis=1).astype(np.uint8)
    palette[0] = _SEA
    return palette
