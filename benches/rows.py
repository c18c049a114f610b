"""The local rows."""

import os

from benches import selections
from benches.row import Row
from benches.scale import Scale, string_bytes

KEPT = 4  # results held at once


def all_rows(scale: Scale) -> list[Row]:
    """Return every row at this scale, in the order of the report."""
    return [
        *whole(scale),
        *kept(scale),
        *parts(scale),
        *variable(scale),
        *written(scale),
        *exchange(),
        *series(scale),
        *cold(scale),
        *late(),
    ]


def whole(scale: Scale) -> list[Row]:
    """Return the rows that read all of an array at once."""
    cube = f"{scale.mebibytes} MiB of float32, {scale.side}³"
    one, inner, layers = 64**3 * 4, 32**3 * 4, 16 * scale.side**2 * 4
    rows = [
        whole_row(scale, "raw", f"{cube}, chunks 64³, raw", one, 2),
        whole_row(scale, "zstd", f"{cube}, chunks 64³, zstd", one, 1.25),
        whole_row(scale, "blosc", f"{cube}, chunks 64³, blosc-lz4 with shuffle", one, 2),
        whole_row(scale, "gzip", f"{cube}, chunks 64³, gzip", one, 1.5),
        whole_row(scale, "sharded", f"{cube}, chunks 32³ in shards 256³, zstd", inner, 1.25),
        whole_row(scale, "rows", f"{cube}, chunks of 16 layers, raw", layers, 1),
    ]
    opened = Row(
        "rows-open",
        "the same layers, from opening to a tensor, mapped on request",
        "open_read",
        "rows",
        to_peer=("numpy.load mmap", 1.2),
        ours="zarrow mmap",
    )
    title = "the same layers, opened, read or mapped, and every byte summed"
    summed = Row("rows-sum", title, "open_sum", "rows", ahead=1, ours="zarrow mmap")
    return [*rows, opened, summed]


def kept(scale: Scale) -> list[Row]:
    """Return the rows of whole reads that keep every result: each read gets fresh memory."""
    title = f"{scale.mebibytes} MiB of float32, {scale.side}³, chunks 64³"
    return [
        Row(
            f"{name}-kept",
            f"{title}, {name}, every result kept (time of one)",
            "read_kept",
            name,
            limit="decode",
            ahead=1,
            of_limit=0.9,
            kept=KEPT,
        )
        for name in ("raw", "zstd", "blosc")
    ]


def whole_row(scale: Scale, name: str, title: str, chunk: int, ahead: float) -> Row:
    """Return the row of one encoding of the main array, with chunks of `chunk` bytes."""
    threads = len(os.sched_getaffinity(0))
    # The result, an encoded and a decoded chunk for each thread, and 32 MiB.
    peak = scale.side**3 * 4 + threads * 2 * chunk + (32 << 20)
    share = None if name == "rows" else 0.9
    return Row(name, title, "read", name, limit="decode", ahead=ahead, of_limit=share, peak=peak)


def parts(scale: Scale) -> list[Row]:
    """Return the rows that read some of an array at a time."""
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
    """Return the rows of variable-length elements."""
    title = f"{scale.strings:,} short strings, vlen-utf8 and zstd"
    peak = 2.2 * string_bytes(scale.strings)
    to_arrow, to_numpy = f"{title}, to pyarrow", f"{title}, to NumPy's StringDType"
    return [
        Row("strings-arrow", to_arrow, "to_arrow", "strings", limit="decode", ahead=3, peak=peak),
        Row("strings-numpy", to_numpy, "to_strings", "strings", to_peer=("copy by NumPy", 2)),
    ]


def written(scale: Scale) -> list[Row]:
    """Return the rows that write the main array: the source in memory, the target a new array in tmpfs."""
    threads = len(os.sched_getaffinity(0))
    rows = []
    for name, title, unit, ahead in (
        ("raw", "chunks 64³, raw", 64**3 * 4, 1.5),
        ("zstd", "chunks 64³, zstd", 64**3 * 4, 1.1),
        ("blosc", "chunks 64³, blosc-lz4 with shuffle", 64**3 * 4, 1.5),
        ("sharded", "chunks 32³ in shards 256³, zstd", min(scale.side, 256) ** 3 * 4, 1.1),
    ):
        # No copy of the source: each thread's current chunk, encoded and not, and 32 MiB.
        peak = threads * 2 * unit + (32 << 20)
        rows.append(
            Row(
                f"write-{name}",
                f"write to tmpfs, {title}",
                "write",
                name,
                limit="write",
                ahead=ahead,
                peak=peak,
            )
        )
    return rows


def exchange() -> list[Row]:
    """Return the rows of sharing memory, of the import, and of the longest stall of Python."""
    return [
        call("dlpack", "`__dlpack__` and dropping the capsule", 70),
        call("dlpack-versioned", "the same with the versioned capsule"),
        call("numpy", "a NumPy array of the memory", 80),
        call("numpy-dlpack", "the same by `numpy.from_dlpack`", 191),
        call("torch", "a PyTorch tensor of the memory", 400),
        call("torch-dlpack", "the same by `torch.from_dlpack`", to_peer=("numpy.load", 1)),
        call("from-numpy", "NumPy's memory taken over"),
        call("from-torch", "PyTorch's memory taken over", 160),
        call("arrow", "`__arrow_c_array__` of one axis of numbers", 150),
        call("tvm", "an empty call of tvm-ffi with it", 235),
        Row("import", "import, over the interpreter's start", "import_time", seconds=30e-3),
        Row("gil", "longest stall of another Python thread during the read of zstd", "stall", "zstd"),
    ]


def call(
    name: str, title: str, nanoseconds: float | None = None, to_peer: tuple[str, float] | None = None
) -> Row:
    """Return the row of a call that shares memory."""
    return Row(name, title, "call", seconds=nanoseconds and nanoseconds * 1e-9, to_peer=to_peer)


def series(scale: Scale) -> list[Row]:
    """Return the rows of the same task over size, number of chunks, and threads."""
    sizes = [
        Row(
            f"size-{side}",
            f"{side**3 * 4 >> 20:,} MiB, zstd, chunks 64³",
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
            f"{count:,} raw chunks of 1 KiB",
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


def late() -> list[Row]:
    """Return the rows of a store with slow answers: fetching and decoding overlap or add up."""
    place = "over HTTP from the same machine, each answer after 30 ms"
    return [
        Row("http", f"zstd, {place}", "read", "zstd", limit="decode", ahead=1, late=30),
        Row("http-sharded", f"shards, {place}", "read", "sharded", limit="decode", ahead=1, late=30),
    ]


def cold(scale: Scale) -> list[Row]:
    """Return the rows of reads from a cold page cache."""
    return [
        Row("cold-raw", "raw, opened and read from a cold page cache", "open_read", "raw", cold=True),
        Row("cold-zstd", "zstd, opened and read from a cold page cache", "open_read", "zstd", cold=True),
    ]


def chosen(scale: Scale, names: list[str]) -> list[Row]:
    """Return rows by their names or by the names of their series; all without names."""
    rows = all_rows(scale)
    known = {row.name for row in rows} | {row.series for row in rows}
    if unknown := set(names) - known:
        raise SystemExit(
            f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in rows)}"
        )
    return [row for row in rows if not names or row.name in names or row.series in names]
