"""The whole land mask, 933 MB of the real one, read by zarrow and by zarr-python."""

from __future__ import annotations

import importlib.util
import math

import zarrow
from zarrow.demo.read import beside_zarr_python, timed
from zarrow.demo.stores import Stores


def show(stores: Stores) -> None:
    """Read the mask by both, where zarr-python is there, and print the times side by side."""
    array = zarrow.open(stores.world)["land_mask"]
    print(array)
    if not importlib.util.find_spec("zarr"):
        whole, seconds = timed(lambda: array[...])
        print(f"\nwhole, {whole.nbytes / 1e6:.0f} MB: zarrow {seconds:.2f} s (pip install zarr to compare)")
        print(f"{whole.numpy().mean():.1%} of the grid is land")
        return
    import zarr

    peer = zarr.open_group(stores.world, mode="r")["land_mask"]
    reading = beside_zarr_python(array, peer, ...)
    ours, theirs = reading.zarrow_seconds, reading.zarr_python_seconds or math.nan
    print(f"\nwhole, {reading.array.nbytes / 1e6:.0f} MB:")
    print(f"  zarrow       {ours:6.2f} s")
    print(f"  zarr-python  {theirs:6.2f} s, {theirs / ours:.1f} times as long")
    print(f"  values       {'equal' if reading.equal else 'DIFFERENT'}")
    print(f"{reading.array.numpy().mean():.1%} of the grid is land")
