"""The remote rows, and their bars."""

from benches.remote import changing
from benches.remote.data import MEMBERS, NODES, SETS
from benches.remote.row import RemoteRow

READERS = ("zarrow", "zarr-python+obstore", "zarr-python+fsspec", "zarrista", "tensorstore")
WRITERS = ("zarrow", "zarr-python+obstore", "tensorstore")
OPENERS = ("zarrow", "zarr-python+obstore")
LATE = {"delay_ms": 30}


def all_rows() -> list[RemoteRow]:
    """Return every row, in the order of the report."""
    return [*late(), *costs(), *faults(), *opened(), *written(), *changed()]


def late() -> list[RemoteRow]:
    """Return the rows with answers after 30 ms."""
    small, shards, crops = SETS["small"], SETS["shards"], SETS["cube"]
    return [
        RemoteRow(
            "late",
            "256 chunks of 64 KiB, each answer after 30 ms",
            "read",
            "small",
            (*READERS, "zarr-python+zarrs", "curl"),
            ("seconds", "requests"),
            LATE,
            "1.15 times 120 ms, four rounds of 64",
            nbytes=small.nbytes,
            requests=256,
        ),
        RemoteRow(
            "late-shards",
            "64 shards with unknown indexes, each answer after 30 ms",
            "read_anew",
            "shards",
            READERS,
            ("seconds", "requests"),
            LATE,
            "1.15 times 60 ms: indexes, then chunks",
            nbytes=shards.nbytes,
            requests=64,
        ),
        RemoteRow(
            "late-crops",
            "20 crops of 64³ from shards, one after the other, each answer after 30 ms (time of one)",
            "crops",
            "cube",
            READERS,
            ("seconds", "requests"),
            LATE,
            nbytes=20 * 64**3 * 4,
            requests=crops.shards_of_crops,
        ),
    ]


def costs() -> list[RemoteRow]:
    """Return the rows about the cost of a read, from a server without delay."""
    return [
        RemoteRow(
            "raw",
            "256 MiB in raw chunks of 1 MiB",
            "read",
            "raw",
            (*READERS, "curl"),
            ("cpu_per_gb", "seconds"),
            bar="1.15 times curl, 0.7 times tensorstore, 0.5 times zarr-python+obstore",
            nbytes=SETS["raw"].nbytes,
            requests=256,
        ),
        RemoteRow(
            "requests",
            "2,048 chunks of 16 KiB",
            "read",
            "tiny",
            (*READERS, "curl"),
            ("cpu_per_request", "seconds"),
            bar="120 µs a request",
            nbytes=SETS["tiny"].nbytes,
            requests=2048,
        ),
        RemoteRow(
            "memory",
            "512 MiB in raw chunks of 4 MiB, each answer after 30 ms",
            "read",
            "large",
            READERS,
            ("peak", "seconds"),
            LATE,
            "the result and 256 MiB",
            fresh=True,  # memory recycled from an earlier run would not be counted
            nbytes=SETS["large"].nbytes,
            requests=128,
        ),
    ]


def faults() -> list[RemoteRow]:
    """Return the rows with a faulty server."""
    return [
        RemoteRow(
            "stalls",
            "256 chunks of 64 KiB after 10 ms, 2 % of the answers 2 s late",
            "read",
            "small",
            ("zarrow", "zarr-python+obstore", "tensorstore"),
            ("seconds", "p99", "extra_requests"),
            {"delay_ms": 10, "stalls": 0.02, "stall_ms": 2000, "seed": 1},
            "p99 at most twice the median, 5 % more requests",
            runs=20,
            nbytes=SETS["small"].nbytes,
            requests=256,
        ),
        RemoteRow(
            "dead",
            "the first read of 256 chunks of 64 KiB, with one dead connection",
            "read",
            "small",
            ("zarrow", "zarr-python+obstore", "tensorstore"),
            ("seconds", "requests"),
            {"delay_ms": 10, "dead": 5},
            "6 s",
            fresh=True,
            nbytes=SETS["small"].nbytes,
            requests=256,
        ),
    ]


def opened() -> list[RemoteRow]:
    """Return the rows about metadata."""
    return [
        RemoteRow(
            "open-coordinates",
            "open a group of 12 coordinates on S3 and read them all, each answer after 30 ms",
            "open_coordinates",
            "coordinates",
            OPENERS,
            ("seconds", "requests"),
            LATE,
            "3 round trips: 90 ms; zarrow uses load, which requests all at once",
        ),
        RemoteRow(
            "open-tree",
            "open a tree of 200 nodes with consolidated metadata and see each, each answer after 30 ms",
            "open_tree",
            "tree",
            OPENERS,
            ("seconds", "requests"),
            LATE,
            "4 round trips: 120 ms",
        ),
        *[
            RemoteRow(
                name,
                f"{title} on S3, each answer after 30 ms",
                task,
                data,
                WRITERS,
                ("seconds", "requests"),
                LATE,
                "tensorstore, given the version and the names",
                fresh=fresh,
            )
            for name, title, task, data, fresh in (
                ("open-one", "the first open of an array of version 3", "open_one", "nodes", True),
                ("open-many", f"open {NODES} arrays at once and read each", "open_many", "nodes", True),
                ("loop", f"loop over a group of {MEMBERS} arrays and read each", "loop", "members", False),
                ("list", f"name the {MEMBERS} members of a group", "list", "members", False),
            )
        ],
    ]


def written() -> list[RemoteRow]:
    """Return the rows that write to S3."""
    small = SETS["write-late"]
    bar = "1.2 times the faster of zarr-python+obstore and tensorstore"
    return [
        RemoteRow(
            "write-late",
            "write 256 chunks of 64 KiB to S3, each answer after 30 ms",
            "write",
            "write-late",
            WRITERS,
            ("seconds", "requests"),
            LATE,
            bar,
            nbytes=small.nbytes,
            requests=256,
        ),
        RemoteRow(
            "write-late-parts",
            "write a part of each of 256 chunks to S3, each answer after 30 ms",
            "write_parts",
            "write-late-parts",
            WRITERS,
            ("seconds", "requests"),
            LATE,
            bar,
            nbytes=small.nbytes,
            requests=512,
        ),
        RemoteRow(
            "write-late-group",
            "store a group of 60 small arrays on S3, each answer after 30 ms",
            "save",
            "coordinates",
            WRITERS,
            ("seconds", "requests"),
            LATE,
            bar,
        ),
        *(
            RemoteRow(
                f"write-{kind}",
                f"write 512 MiB to S3, {title}",
                "write",
                f"write-{kind}",
                WRITERS,
                ("seconds", "cpu_per_gb", "requests"),
                nbytes=SETS[f"write-{kind}"].nbytes,
                requests=count,
            )
            for kind, title, count in (
                ("raw", "raw chunks of 4 MiB", 128),
                ("zstd", "zstd chunks of 4 MiB", 128),
                ("sharded", "zstd chunks of 1 MiB in shards of 64 MiB", 8),
            )
        ),
    ]


def changed() -> list[RemoteRow]:
    """Return the rows of single changes on S3."""
    bar = "the faster peer's round trips, and one for each promise that it does not give"
    return [
        RemoteRow(
            f"change-{name}",
            f"{title} on S3, each answer after 30 ms",
            task,
            f"write-{name}",
            WRITERS,
            ("seconds", "requests"),
            LATE,
            bar,
        )
        for name, title, task in (
            ("create", "create an empty array in a group", "create"),
            ("replace", f"replace an array of {changing.REPLACED} chunks by an empty one", "replace"),
            ("erase", f"erase an array of {changing.ERASED} chunks", "erase"),
            ("attributes", f"set {changing.ATTRIBUTES} attributes one after the other", "set_attributes"),
            ("append", f"append a chunk {changing.APPENDS} times", "append"),
            ("write-async", f"write {changing.WRITTEN} chunks by calls awaited together", "write_each"),
        )
    ]


def chosen(names: list[str]) -> list[RemoteRow]:
    """Return the named rows, or all without names."""
    rows = all_rows()
    if unknown := set(names) - {row.name for row in rows}:
        known = ", ".join(row.name for row in rows)
        raise SystemExit(f"no such row: {', '.join(sorted(unknown))}; there are {known}")
    return [row for row in rows if not names or row.name in names]
