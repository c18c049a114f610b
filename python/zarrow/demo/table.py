"""The table: every layout and several codecs, read beside zarr-python and handed to each library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import zarrow
from zarrow.demo.handover import Handover, handovers, load
from zarrow.demo.read import Reading, beside_source, beside_zarr_python
from zarrow.demo.stores import Stores

# What is read of the stores that zarr-python wrote, as a user writes it.
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

_WIDTHS = (33, 25, 16, 16, 14, 14, 14)
_HEADINGS = ("array", "selection", "layout", "zarrow", "zarr-python", "values")
_SUBHEADINGS = (
    "  handed over by",
    "",
    "address before",
    "address after",
    "copied",
    "heap grew",
    "memory grew",
)


def show(stores: Stores, libraries: Sequence[str]) -> None:
    """Print the table for the libraries named."""
    modules = load(libraries)
    print("  copied: bytes of the result that lie outside the array's own memory.  heap, memory: by how much")
    print(
        "  malloc and Arrow's pool, and the resident memory of the process, grew while it was handed over.\n"
    )
    print(_line(_HEADINGS) + "\n" + _line(_SUBHEADINGS) + "\n" + "-" * sum(_WIDTHS))
    for name, selection, reading in _readings(stores):
        print(_line((name, f"[{selection}]", type(reading.array).__name__, *_outcome(reading))), flush=True)
        for handover in handovers(reading.array, libraries, modules):
            print(_line(("  " + handover.expression, "", *_cost(handover))), flush=True)


def _readings(stores: Stores) -> Iterator[tuple[str, str, Reading]]:
    import zarr

    for path, suffix, rows in ((stores.world, "", _WORLD), (stores.world_v2, " (v2)", _WORLD_V2)):
        root, peer = zarrow.open(path), zarr.open_group(path, mode="r")
        for name, selection in rows:
            reading = beside_zarr_python(root[name], peer[name], _parse(selection))
            yield name + suffix, selection, reading
    masked = zarrow.open(stores.masked)
    turbidity = beside_source(masked["turbidity_on_land"], stores.source_turbidity(), _parse("6"))
    yield "turbidity_on_land", "6", turbidity
    yield "city", ":", beside_source(masked["city"], stores.source_cities(), _parse(":"))


def _parse(selection: str) -> Any:
    return eval(f"select[{selection}]", {"select": np.s_})


def _outcome(reading: Reading) -> tuple[str, ...]:
    theirs = reading.zarr_python_seconds
    peer = "no such type" if theirs is None else _milliseconds(theirs)
    return _milliseconds(reading.zarrow_seconds), peer, "equal" if reading.equal else "DIFFERENT"


def _cost(handover: Handover) -> tuple[str, ...]:
    growth = handover.growth
    sizes = (handover.copied, growth.heap, growth.resident)
    return f"{handover.before:#x}", f"{handover.after:#x}", *map(_bytes, sizes)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _bytes(count: int | None) -> str:
    if count is None:
        return "unknown"
    return f"{count:,} B" if abs(count) < 10_000_000 else f"{count / 1e6:,.1f} MB"


def _line(cells: tuple[str, ...]) -> str:
    return "".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=False)).rstrip()
