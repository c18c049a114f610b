"""`python -m benches.gpu [ROW…]`: measures, prints a table, and keeps the figures as JSON."""

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
from benches.gpu.readers import MissingError, Reader, all_readers, elements


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.gpu", description=__doc__)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--mib", type=int, default=1024, help="MiB of elements")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--threads", type=int, nargs="*", default=[], help="threads of zarrow on the host, each a table"
    )
    parser.add_argument("--data", type=Path, default=Path("/dev/shm/zarrow-bench-gpu"))
    parser.add_argument("--json", type=Path, default=Path("build/bench/gpu.json"))
    return parser.parse_args()


def check(path: Path, name: str, result: object) -> None:
    """Compare what was read with a read to the host."""
    if name != "a pinned copy of the elements" and not np.array_equal(
        elements(result), zarrow.open_array(path)[...]
    ):
        sys.exit(f"{name} reads other elements of {path}")


def measure(path: Path, readers: dict[str, Reader], rounds: int) -> dict[str, list[float]]:
    """Time each reader in turn; the first round warms up, and is checked."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for round_number in range(rounds + 1):
        for name, read in readers.items():
            start = time.perf_counter()
            result = read(path)
            seconds = time.perf_counter() - start
            if round_number == 0:
                check(path, name, result)
            else:
                times[name].append(seconds)
            del result
    return times


def table(row: str, threads: int, nbytes: int, times: dict[str, list[float]]) -> str:
    """Give the medians of a row, the fastest first."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    own = medians["zarrow"]
    lines = [f"\n{row}, {threads} threads", "", "| | time | GB/s | to zarrow |", "|---|---|---|---|"]
    for name, seconds in sorted(medians.items(), key=lambda item: item[1]):
        lines.append(
            f"| {name} | {seconds * 1e3:.1f} ms | {nbytes / seconds / 1e9:.1f} | {seconds / own:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure what the command line asks for."""
    arguments = parse()
    if not zarrow.gpu.is_available():
        print(f"skipped: {zarrow.gpu.why_unavailable()}")
        return
    arguments.data.mkdir(parents=True, exist_ok=True)
    nbytes = arguments.mib * MIB
    found = all_readers(nbytes)
    readers = {name: reader for name, reader in found.items() if not isinstance(reader, MissingError)}
    print(*(f"{key}: {value}" for key, value in (machine.describe() | machine.versions()).items()), sep="\n")
    print(
        *(f"without {name}: {why}" for name, why in found.items() if isinstance(why, MissingError)), sep="\n"
    )
    results: list[dict[str, Any]] = []
    for row in arguments.rows:
        path = write(arguments.data, row, arguments.mib)
        for threads in arguments.threads or [zarrow.num_threads()]:
            zarrow.set_num_threads(threads)
            times = measure(path, readers, arguments.rounds)
            results.append({"row": row, "threads": threads, "nbytes": nbytes, "times": times})
            print(table(row, threads, nbytes, times), flush=True)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"build": machine.build(), "rows": results}, indent=1))


if __name__ == "__main__":
    main()
