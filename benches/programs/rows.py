"""The rows of programs."""

from dataclasses import replace
from typing import Any

from benches.programs.data import PREFIX, VARIABLES
from benches.row import Row
from benches.rows import all_rows
from benches.scale import Scale

OURS = "zarr-python+zarrow"
STOCK = "zarr-python"
PIPELINES = (STOCK, "zarr-python fused", "zarr-python+zarrs", OURS)
DATASETS = ("xarray", "xarray+zarrow", "zarrow.xarray.load")
AHEAD_SMALL = 3.0
OF_ZARROW = 0.9
OVER_RESULT = 64 << 20


def program_rows(scale: Scale) -> list[Row]:
    """Return every row of programs at this scale."""
    return [*read(scale), *written(scale), *opened(), *datasets()]


def read(scale: Scale) -> list[Row]:
    """Return the rows that read through zarr-python."""
    result = scale.side**3 * 4
    whole = {
        "to_peer": ("zarrow", 1 / OF_ZARROW),
        "ahead": None,
        "of_limit": None,
        "limit": None,
        "peak": result + OVER_RESULT,
    }
    small = {"to_peer": (STOCK, 1 / AHEAD_SMALL), "ahead": 1.0, "limit": None}
    return [
        *(like(scale, name, **whole) for name in ("raw", "zstd", "sharded")),
        *(like(scale, name, **small) for name in ("small", "table")),
        like(scale, "crops", ahead=1.0, limit=None),
    ]


def written(scale: Scale) -> list[Row]:
    """Return the rows that write through zarr-python."""
    return [
        like(scale, f"write-{kind}", ahead=1.0, limit=None, of_limit=None, peak=None)
        for kind in ("raw", "zstd", "sharded")
    ]


def like(scale: Scale, name: str, **bars: Any) -> Row:
    """Return the row of this name for zarr-python's pipelines, beside zarrow itself."""
    row = next(row for row in all_rows(scale) if row.name == name)
    return replace(row, name=PREFIX + name, ours=OURS, peers=("zarrow", *PIPELINES), **bars)


def opened() -> list[Row]:
    """Return the rows of metadata through zarr-python."""
    bars: dict[str, Any] = {"peers": PIPELINES, "ours": OURS, "to_peer": (STOCK, 1.0)}
    title = f"each of {VARIABLES + 3} arrays of an open group"
    return [
        Row(f"{PREFIX}open", "open an array", "opening", "small", **bars),
        Row(f"{PREFIX}members", title, "members", f"{PREFIX}dataset", **bars),
    ]


def datasets() -> list[Row]:
    """Return the rows of xarray."""
    title, data = f"a dataset of {VARIABLES} variables", f"{PREFIX}dataset"
    bars: dict[str, Any] = {"ours": "xarray+zarrow", "to_peer": ("xarray", 1.0)}
    return [
        Row(f"{PREFIX}dataset-open", f"open {title}", "opening", data, peers=DATASETS[:2], **bars),
        Row(f"{PREFIX}dataset-load", f"load {title}", "read", data, peers=DATASETS, **bars),
    ]
