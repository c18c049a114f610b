"""The rows: what is measured, and which bar zarrow has to meet there."""

import os
from dataclasses import dataclass

from benches import selections
from benches.scale import Scale
from benches.selections import Selection


@dataclass(frozen=True)
class Row:
    """One measurement, made with every peer that can take part."""

    name: str
    title: str
    task: str
    """Name of a function in `benches.tasks`."""
    data: str = "small"
    """The set that is read."""
    selections: tuple[Selection, ...] = ()
    """What is read, one after the other; all of the array where there is nothing here."""
    limit: str | None = None
    """What the limit is made of: `decode`, or `files` (see `limit` in the examples of the crate)."""
    ahead: float | None = None
    """How many times faster than the fastest other Zarr reader zarrow is to be."""
    of_limit: float | None = None
    """The share of the limit's speed that zarrow is to reach."""
    seconds: float | None = None
    """What zarrow is to take at most."""
    cold: bool = False
    """Whether the page cache is dropped before each read."""
    cpus: int | None = None
    """To how many CPUs the process is bound."""
    series: str | None = None
    """What the row is a point of, and"""
    x: float = 0
    """where on its axis the point lies."""
    units: float = 1
    """By how much a series divides the time."""

    @property
    def reads(self) -> int:
        """How many reads one run has: times are for one of them."""
        return max(1, len(self.selections)) if self.task == "read" else 1


def all_rows(scale: Scale) -> list[Row]:
    """Give every row at this scale, in the order of the report."""
    return [*whole(scale), *parts(scale), *variable(scale), *exchange(), *series(scale), *cold(scale)]


def whole(scale: Scale) -> list[Row]:
    """Give the rows that read all of an array at once."""
    cube = f"{scale.mebibytes} MiB of float32, {scale.side}³"
    bars = {
        "raw": ("chunks 64³, raw", 2),
        "zstd": ("chunks 64³, zstd", 1.25),
        "blosc": ("chunks 64³, blosc-lz4 with shuffle", 2),
        "gzip": ("chunks 64³, gzip", 1.5),
        "sharded": ("chunks 32³ in shards 256³, zstd", 1.25),
        "rows": (f"chunks 16×{scale.side}×{scale.side}, raw", 1),
    }
    rows = [
        Row(name, f"{cube}, {how}", "read", name, (), "decode", ahead, None if name == "rows" else 0.9)
        for name, (how, ahead) in bars.items()
    ]
    opened = Row(
        "rows-open", "the same rows, from opening to a tensor, mapped where asked for", "open_read", "rows"
    )
    summed = Row("rows-sum", "the same rows, opened, read and every byte summed", "open_sum", "rows", ahead=1)
    return [*rows, opened, summed]


def parts(scale: Scale) -> list[Row]:
    """Give the rows that read some of an array at a time."""
    each = tuple(selections.each_chunk())
    crops = tuple(selections.crops(scale))
    batch = tuple(selections.overlapping_crops(scale))
    table = tuple(selections.table_rows(scale))
    count = f"{len(each):,} reads of one raw chunk of 16 KiB (time of one)"
    return [
        Row("small", count, "read", "small", each, "files", ahead=1.3),
        Row(
            "crops",
            "random crop of 128³ from the shards (time of one)",
            "read",
            "sharded",
            crops,
            "decode",
            1,
        ),
        Row(
            "batch",
            f"{len(batch)} overlapping crops of 128³, in one array",
            "batch",
            "sharded",
            batch,
            None,
            1,
        ),
        Row(
            "table",
            f"2 random rows of {scale.table_rows:,} (time of one)",
            "read",
            "table",
            table,
            "decode",
            1,
        ),
    ]


def variable(scale: Scale) -> list[Row]:
    """Give the rows of elements of any length."""
    title = f"{scale.strings:,} short strings, vlen-utf8 and zstd"
    return [
        Row("strings-arrow", f"{title}, to pyarrow", "to_arrow", "strings", (), "decode", ahead=3),
        Row("strings-numpy", f"{title}, to NumPy's StringDType", "to_strings", "strings", ahead=1),
    ]


def exchange() -> list[Row]:
    """Give the rows of handing memory over, of the import, and of how long Python stands still."""
    return [
        Row("dlpack", "`__dlpack__` and dropping the capsule", "call", seconds=70e-9),
        Row("numpy", "a NumPy array of the memory", "call", seconds=80e-9),
        Row("torch", "a PyTorch tensor of the memory", "call", seconds=400e-9),
        Row("from-torch", "PyTorch's memory taken over", "call", seconds=160e-9),
        Row("arrow", "`__arrow_c_array__` of one axis of numbers", "call", seconds=150e-9),
        Row("import", "import, over the interpreter's start", "import_time", seconds=30e-3),
        Row("gil", "longest stall of another Python thread during the read of zstd", "stall", "zstd"),
    ]


def series(scale: Scale) -> list[Row]:
    """Give the rows of the same task over size, number of chunks, and threads."""
    sizes = [
        Row(
            f"size-{side}",
            f"{side**3 * 4 >> 20:,} MiB, zstd, chunks 64³: time of one MiB",
            "read",
            f"size-{side}",
            limit="decode",
            series="size",
            x=side**3 * 4 / 2**20,
            units=side**3 * 4 / 2**20,
        )
        for side in scale.sides
    ]
    counts = [
        Row(
            f"count-{count}",
            f"{count:,} raw chunks of 1 KiB: time of one chunk",
            "read",
            f"count-{count}",
            limit="files",
            series="count",
            x=count,
            units=count,
        )
        for count in scale.chunk_counts
    ]
    here = len(os.sched_getaffinity(0))
    threads = [
        Row(
            f"threads-{n}", f"zstd on {n} CPUs", "read", "zstd", limit="decode", cpus=n, series="threads", x=n
        )
        for n in sorted({*(2**power for power in range(here.bit_length())), here})
    ]
    return [*sizes, *counts, *threads]


def cold(scale: Scale) -> list[Row]:
    """Give the rows of reads of what is not in the page cache."""
    return [
        Row("cold-raw", "raw, opened and read from a cold page cache", "open_read", "raw", cold=True),
        Row("cold-zstd", "zstd, opened and read from a cold page cache", "open_read", "zstd", cold=True),
    ]


def chosen(scale: Scale, names: list[str]) -> list[Row]:
    """Give rows by their names or by the names of their series; all where none is named."""
    rows = all_rows(scale)
    known = {row.name for row in rows} | {row.series for row in rows}
    if unknown := set(names) - known:
        raise SystemExit(
            f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in rows)}"
        )
    return [row for row in rows if not names or row.name in names or row.series in names]
