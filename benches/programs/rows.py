"""The rows of programs."""

import importlib.util
from dataclasses import replace
from typing import Any

from benches.programs import cells
from benches.programs.copies import copies
from benches.programs.data import PREFIX, VARIABLES
from benches.programs.geoscience import jobs
from benches.programs.graphs import graphs
from benches.programs.versioned import sessions
from benches.row import Row
from benches.rows import all_rows
from benches.scale import Scale

OURS = "zarr-python+zarrow"
STOCK = "zarr-python"
ZARRS = "zarr-python+zarrs"
PIPELINES = (STOCK, "zarr-python fused", ZARRS, OURS)
DATASETS = ("xarray", "xarray+zarrow", "zarrow.xarray.load")
AHEAD_SMALL = 3.0
OF_ZARROW = 0.9
OVER_RESULT = 64 << 20
AHEAD_LOADER = 1.5


def program_rows(scale: Scale) -> list[Row]:
    """Return every row of programs at this scale."""
    rows = [*read(scale), *written(scale), *opened(), *datasets(), *loaders(), *dask_blocks()]
    small = sessions(peers=("zarrow", *PIPELINES), ours=OURS, to_peer=(STOCK, 1 / AHEAD_SMALL), ahead=1.0)
    return [*rows, small, *graphs(scale), *copies(scale), *jobs(scale)]


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
        like(scale, "strings-numpy", to_peer=(STOCK, 1.0), limit=None),
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


def loaders() -> list[Row]:
    """Return the rows of annbatch."""
    if importlib.util.find_spec("annbatch") is None:  # it needs Python 3.12
        return []
    bars: dict[str, Any] = {"peers": PIPELINES, "ours": OURS, "to_peer": (ZARRS, 1 / AHEAD_LOADER)}
    rows = []
    for kind, place in (("sparse", "folder"), ("dense", "folder"), ("sparse", "s3"), ("dense", "s3")):
        name = f"{PREFIX}annbatch-{kind}" + ("-s3" if place == "s3" else "")
        title = f"one {kind} cell by annbatch, from {'S3 on loopback' if place == 's3' else 'a folder'}"
        rows.append(Row(name, title, "samples", cells.PREFIX + kind, index=(kind, place), **bars))
    return rows


def dask_blocks() -> list[Row]:
    """Return the rows of an AnnData that dask computes, with and without automatic shards."""
    title = f"write an AnnData of dask blocks, {cells.WRITTEN_CELLS:,} by {cells.WRITTEN_GENES:,}"
    bars: dict[str, Any] = {"peers": PIPELINES, "ours": OURS, "to_peer": (STOCK, 1.0), "ahead": 1.0}
    data = f"{PREFIX}dataset"
    return [
        Row(f"{PREFIX}dask", f"{title}, unsharded", "dask_blocks", data, index=(), **bars),
        Row(
            f"{PREFIX}dask-shards",
            f"{title}, automatic shards",
            "dask_blocks",
            data,
            index=("shards",),
            **bars,
        ),
    ]
