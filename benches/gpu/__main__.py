"""`python -m benches.gpu [ROW…]`: measures, prints a table, and saves the results as JSON."""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import zarrow
from benches import machine
from benches.gpu.data import MIB, ROWS, write
from benches.gpu.readers import LIMITS, MissingError, Reader, all_readers, elements

OURS = "zarrow"


def parse(line: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.gpu", description=__doc__)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--mib", type=int, default=1024, help="MiB of elements")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[1, 2, 4, 8, 16],
        help="threads of zarrow on the host, one table for each number; 1 2 4 8 16",
    )
    parser.add_argument("--cufile", action="store_true", help="read by cuFile too, which may hang")
    parser.add_argument("--data", type=Path, default=Path("/dev/shm/zarrow-bench-gpu"))
    parser.add_argument("--json", type=Path, default=Path("build/bench/gpu.json"))
    arguments = parser.parse_args(line)
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"unknown rows {', '.join(sorted(unknown))}: expected some of {', '.join(ROWS)}")
    return arguments


def check(path: Path, name: str, result: object) -> None:
    """Compare a result with a read to the host."""
    if name not in LIMITS and not np.array_equal(elements(result), zarrow.open_array(path)[...]):
        sys.exit(f"{name} reads wrong elements of {path}")


def warmed(path: Path, readers: dict[str, Reader]) -> dict[str, Reader]:
    """Read once with each reader and check it. Readers that fail are left out, except zarrow."""
    able: dict[str, Reader] = {}
    for name, read in readers.items():
        try:
            check(path, name, read(path))
        except Exception as error:
            if name == OURS:
                raise
            print(f"{path.parent.stem}: without {name}: {error}")
        else:
            able[name] = read
    return able


def measure(path: Path, readers: dict[str, Reader], rounds: int) -> dict[str, list[float]]:
    """Time each reader in turn."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            start = time.perf_counter()
            result = read(path)
            times[name].append(time.perf_counter() - start)
            del result
    return times


def table(row: str, threads: int, nbytes: int, times: dict[str, list[float]]) -> str:
    """Return the medians of a row, the fastest first."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    own = medians[OURS]
    lines = [f"\n{row}, {threads} threads", "", "| | time | GB/s | to zarrow |", "|---|---|---|---|"]
    for name, seconds in sorted(medians.items(), key=lambda item: item[1]):
        lines.append(
            f"| {name} | {seconds * 1e3:.1f} ms | {nbytes / seconds / 1e9:.1f} | {seconds / own:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    arguments = parse()
    if not zarrow.gpu.is_available():
        print(f"skipped: {zarrow.gpu.why_unavailable()}")
        return
    arguments.data.mkdir(parents=True, exist_ok=True)
    nbytes = arguments.mib * MIB
    found = all_readers(nbytes, arguments.cufile)
    readers = {name: reader for name, reader in found.items() if not isinstance(reader, MissingError)}
    print(*(f"{key}: {value}" for key, value in (machine.describe() | machine.versions()).items()), sep="\n")
    missing = {name: str(why) for name, why in found.items() if isinstance(why, MissingError)}
    print(*(f"without {name}: {why}" for name, why in missing.items()), sep="\n")
    results: list[dict[str, Any]] = []
    for row in arguments.rows:
        path = write(arguments.data, row, arguments.mib)
        able = warmed(path, readers)
        others: dict[str, list[float]] = {}
        for threads in arguments.threads:
            zarrow.set_num_threads(threads)
            # Readers without zarrow choose their threads, and are measured once.
            ours = {name: reader for name, reader in able.items() if name not in others}
            times = measure(path, ours, arguments.rounds)
            others |= {name: values for name, values in times.items() if "zarrow" not in name}
            times = others | times
            results.append({"row": row, "threads": threads, "nbytes": nbytes, "times": times})
            print(table(row, threads, nbytes, times), flush=True)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    report = {"build": machine.build(), "missing": missing, "rows": results}
    arguments.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
