"""The table: layouts and codecs, read by zarrow and zarr-python, and shared with each library."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import zarrow
from zarrow.demo.handover import Handover, handovers, load
from zarrow.demo.read import Reading, beside_source, beside_zarr_python
from zarrow.demo.stores import Stores

# Selections to read from the stores that zarr-python wrote, as a user writes them.
_WORLD = [
    ("turbidity/zstd", "6"),
    ("turbidity/sharded", ":, 500:1500, 1000:3000"),
    ("turbidity_counts/uncompressed", "3:6"),
    ("turbidity_counts/gzip", "0, ::2, ::2"),
    ("turbidity_counts/blosc_lz4", "..."),
    ("land_mask", "5::10, 5::10"),
    ("airports/latitude", ":"),
    ("airports/name", ":"),
]
_WORLD_V2 = [("turbidity_counts", "-1")]

# Widths of the columns; their sum is 80.
_WIDTHS = (32, 15, 11, 11, 11)
_HEADINGS = ("  handed over by", "at address", "copied", "heap", "memory")


def show(stores: Stores, libraries: Sequence[str]) -> None:
    """Print the table for the libraries named."""
    modules = load(libraries)
    print("copied: bytes of the result outside the array's own memory. heap, memory: by how")
    print("much malloc with Arrow's pool, and the process, grew while it was handed over.")
    print("Times are of reading, after one read; the values were compared, and are the same")
    print("if nothing is said.\n")
    print("array[selection], its layout, address and time\n" + _line(_HEADINGS) + "\n" + "-" * sum(_WIDTHS))
    for name, selection, reading in _readings(stores):
        handed = list(handovers(reading.array, libraries, modules))
        print(f"{name}[{selection}]")
        print(_line((f"  {type(reading.array).__name__}", f"{handed[0].before:#x}", _outcome(reading))))
        for handover in handed:
            print(_line(("  " + handover.expression, *_cost(handover))), flush=True)


def _readings(stores: Stores) -> Iterator[tuple[str, str, Reading]]:
    for path, suffix, rows in ((stores.world, "", _WORLD), (stores.world_v2, " (v2)", _WORLD_V2)):
        root, peer = zarrow.open(path), _peer(path)
        for name, selection in rows:
            if peer is None:
                # The whole array, read at once, holds the selection to compare with.
                reading = beside_source(root[name], root[name][...].numpy(), _parse(selection))
            else:
                reading = beside_zarr_python(root[name], peer[name], _parse(selection))
            yield name + suffix, selection, reading
    masked = zarrow.open(stores.masked)
    turbidity = beside_source(masked["turbidity_on_land"], stores.source_turbidity(), _parse("6"))
    yield "turbidity_on_land", "6", turbidity
    yield "city", ":", beside_source(masked["city"], stores.source_cities(), _parse(":"))


def _peer(path: Path) -> Any:
    """Open the group with zarr-python; return None if it is not installed."""
    if not importlib.util.find_spec("zarr"):
        return None
    import zarr

    return zarr.open_group(path, mode="r")


def _parse(selection: str) -> Any:
    return eval(f"select[{selection}]", {"select": np.s_})


def _outcome(reading: Reading) -> str:
    theirs = reading.zarr_python_seconds
    peer = "" if theirs is None else f" (zarr {_milliseconds(theirs)})"
    return f"{_milliseconds(reading.zarrow_seconds)}{peer}{'' if reading.equal else ', DIFFERENT'}"


def _cost(handover: Handover) -> tuple[str, ...]:
    growth = handover.growth
    sizes = (handover.copied, growth.heap, growth.resident)
    return f"{handover.after:#x}", *map(_bytes, sizes)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _bytes(count: int | None) -> str:
    if count is None:
        return "unknown"
    return f"{count:,} B" if abs(count) < 1_000_000 else f"{count / 1e6:,.1f} MB"


def _line(cells: tuple[str, ...]) -> str:
    return "".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)).rstrip()
