"""The whole land mask, 933 MB, read by zarrow and by zarr-python."""

from __future__ import annotations

import math

import zarrow
from zarrow.demo.read import beside_zarr_python
from zarrow.demo.stores import Stores


def show(stores: Stores) -> None:
    """Read the mask by both, and print the times side by side."""
    import zarr

    array = zarrow.open(stores.world)["land_mask"]
    print(array)
    peer = zarr.open_group(stores.world, mode="r")["land_mask"]
    reading = beside_zarr_python(array, peer, ...)
    ours, theirs = reading.zarrow_seconds, reading.zarr_python_seconds or math.nan
    print(f"\nwhole, {reading.array.nbytes / 1e6:.0f} MB:")
    print(f"  zarrow       {ours:6.2f} s")
    print(f"  zarr-python  {theirs:6.2f} s, {theirs / ours:.1f} times as long")
    print(f"  values       {'equal' if reading.equal else 'DIFFERENT'}")
    print(f"{reading.array.numpy().mean():.1%} of the grid is land")
