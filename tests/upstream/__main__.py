"""`python -m upstream [SUITE:SUBJECT…]`: runs the suites, and compares them with stock.

Without arguments it runs zarr-python's tests on the pipeline and xarray's on the engine.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from pathlib import Path

from upstream import suites
from upstream.outcomes import Comparison, Outcome, Outcomes, compare, read
from upstream.run import outcomes_file, run

DIFFERENCES = Path(__file__).with_name("differences.toml")
USUAL = ("zarr:pipeline", "xarray:engine")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m upstream", description=__doc__)
    parser.add_argument("pairs", nargs="*", default=USUAL, metavar="SUITE:SUBJECT")
    parser.add_argument(
        "--zarr", type=Path, required=True, help="folder of zarr-python's source distribution"
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder for outcomes and logs")
    parser.add_argument(
        "--keep-stock", action="store_true", help="use the outcomes of an earlier run on stock"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    known = {"zarr": suites.zarr(arguments.zarr.resolve()), "xarray": suites.xarray()}
    listed = tomllib.loads(DIFFERENCES.read_text())
    holds = True
    baselines: dict[str, Outcomes] = {}
    for pair in arguments.pairs:
        suite_name, _, subject_name = pair.partition(":")
        suite, subject = known[suite_name], suites.SUBJECTS[subject_name]
        if suite_name not in baselines:
            file = outcomes_file(arguments.folder, suite, suites.STOCK)
            kept = read(file) if arguments.keep_stock else {}
            baselines[suite_name] = kept or run(suite, suites.STOCK, arguments.folder)
        stock = baselines[suite_name]
        comparison = compare(
            stock, run(suite, subject, arguments.folder), listed.get(suite.name, {}).get(subject.name, {})
        )
        print(report(f"{suite.name} on {subject.name}", stock, comparison), flush=True)
        holds &= comparison.holds
    sys.exit(not holds)


def report(title: str, stock: Outcomes, comparison: Comparison) -> str:
    """Describe a comparison: counts, then the tests in which the list and the run disagree, by cause."""
    counts = Counter(outcome.name for outcome in stock.values())
    lines = [
        f"\n{title}: stock has {', '.join(f'{count} {name}' for name, count in sorted(counts.items()))}",
        f"{len(comparison.known)} listed differences, {len(comparison.new)} others",
    ]
    causes: dict[Outcome, list[str]] = {}
    for test, outcome in comparison.new.items():
        causes.setdefault(outcome, []).append(test)
    for (name, reason), tests in sorted(causes.items(), key=lambda cause: -len(cause[1])):
        lines += [f"{len(tests)} {name}: {' '.join(reason.split())[:200]}", *(f"  {test}" for test in tests)]
    lines += [f"no longer differs, or does not exist: {name}" for name in comparison.gone]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
