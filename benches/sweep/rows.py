"""The rows of the sweep: types, codecs, orders, shapes, selections, writes, metadata, and threads."""

from typing import Any

import numpy as np

from benches.row import Row
from benches.sweep.data import CODECS, CUBE, PREFIX, SHAPES, TYPES

AHEAD = 0.95  # of the fastest peer
POINTS = 20_000


def sweep_rows() -> list[Row]:
    """Return every row of the sweep."""
    return [*whole(), *selected(), *written(), *opened(), *threaded()]


def row(name: str, title: str, task: str, data: str, **options: Any) -> Row:
    """Return one row."""
    return Row(f"{PREFIX}{name}", title, task, PREFIX + data, ahead=AHEAD, **options)


def whole() -> list[Row]:
    """Return the rows that read a whole array."""
    sets = [f"{dtype}-{codec}" for dtype in TYPES for codec in CODECS]
    sets += [f"{shape}-{codec}" for shape in SHAPES for codec in ("raw", "zstd", "blosc")]
    sets += [f"{kind}-{codec}" for kind in ("column-major", "turned", "sharded") for codec in ("raw", "zstd")]
    return [row(f"read-{name}", f"all of {name}", "read", name) for name in [*sets, "strings-zstd"]]


def selected() -> list[Row]:
    """Return the rows that read parts of an array."""
    middle, most = CUBE[0] // 2, CUBE[0]
    rng = np.random.default_rng(5)
    boxes: dict[str, Any] = {
        "crop": np.s_[31:95, 31:95, 31:95],
        "element": np.s_[middle, middle, middle],
        "line along the last axis": np.s_[middle, middle, :],
        "line along the first axis": np.s_[:, middle, middle],
        "first plane": np.s_[middle, :, :],
        "last plane": np.s_[:, :, middle],
        "every fourth": np.s_[::4, ::4, ::4],
    }
    rows = [
        row(f"{what.replace(' ', '-')}-{data}", f"{what} of {data}", "read", data, selections=(box,))
        for data in ("float32-raw", "float32-zstd", "float32-blosc", "sharded-zstd")
        for what, box in boxes.items()
    ]
    points = tuple(rng.integers(0, most, POINTS) for _ in CUBE)
    lists = (np.sort(rng.choice(most, 50, replace=False)), slice(None), slice(10, 60))
    for data in ("float32-raw", "float32-zstd", "float32-blosc"):
        rows.append(row(f"points-{data}", f"{POINTS:,} points of {data}", "points", data, index=points))
        rows.append(row(f"lists-{data}", f"50 planes of {data}, by a list", "orthogonal", data, index=lists))
    for data in ("plane-zstd", "plane-blosc"):
        rows.append(row(f"row-{data}", f"a row of {data}", "read", data, selections=(np.s_[1000, :],)))
        rows.append(row(f"column-{data}", f"a column of {data}", "read", data, selections=(np.s_[:, 1000],)))
    some = (np.s_[123_456:234_567],)
    rows.append(row("some-strings", "a ninth of the strings", "read", "strings-zstd", selections=some))
    return rows


def written() -> list[Row]:
    """Return the rows that write."""
    sets = ["float32-raw", "float32-zstd", "float32-blosc", "uint8-raw", "uint8-zstd", "float64-blosc"]
    sets += ["small-chunks-raw", "small-chunks-zstd", "one-chunk-zstd", "line-raw", "column-major-raw"]
    sets += ["column-major-zstd", "sharded-raw", "sharded-zstd", "strings-zstd"]
    rows = [row(f"write-{name}", f"write all of {name}", "write", name) for name in sets]
    part = np.s_[13:190, 13:190, 13:190]
    return rows + [
        row(f"change-{name}", f"change most of {name}, off the grid", "change", name, index=part)
        for name in ("float32-raw", "float32-zstd")
    ]


def opened() -> list[Row]:
    """Return the rows about metadata."""
    return [
        row("open", "open an array", "opening", "float32-zstd"),
        row("open-element", "open an array and read an element", "opening", "float32-raw", index=(0, 0, 0)),
        row("create", "create an array", "creating", "float32-zstd"),
    ]


def threaded() -> list[Row]:
    """Return the rows with several caller threads that read crops of one array."""
    return [
        row(f"threads-{data}", f"8 threads that read crops of {data}", "threads", data)
        for data in ("float32-raw", "float32-zstd", "sharded-zstd")
    ]
