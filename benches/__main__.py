"""`python -m benches [ROW…]`: writes missing data, measures, and reports."""

import argparse
from pathlib import Path

from benches import chart, data, loaders, remote, report, writers
from benches.programs import program_rows
from benches.results import Results
from benches.rounds import measure
from benches.row import Row
from benches.rows import chosen
from benches.scale import FULL, NORMAL, QUICK, Scale
from benches.summary import summarise
from benches.sweep import sweep_rows, write_table

ROUNDS = 7
BUILD = Path("build/bench")
CHART = Path("docs/benchmarks.svg")  # redrawn when every row was measured


def main() -> None:
    """Run the command line."""
    arguments = parse()
    BUILD.mkdir(parents=True, exist_ok=True)
    if arguments.remote:
        remote.run(arguments.rows, arguments.rounds or (1 if arguments.quick else ROUNDS), BUILD)
        return
    if arguments.loaders:
        loaders.run(arguments.rows, arguments.rounds or (1 if arguments.quick else 3), BUILD)
        return
    if arguments.writers:
        writers.run(arguments.rows, arguments.rounds or (1 if arguments.quick else 3), BUILD)
        return
    scale = QUICK if arguments.quick else FULL if arguments.full else NORMAL
    rounds = arguments.rounds or (2 if arguments.quick else ROUNDS)
    rows = chosen_rows(scale, arguments)
    folder = scale.folder(arguments.data)
    data.write(scale, folder, {row.data for row in rows})
    kind = "-quick" if arguments.quick else ""
    results = Results(BUILD / f"results{kind}.json", scale)
    facts = results.about["machine"] | results.about["versions"]
    print(*(f"{key}: {value}" for key, value in facts.items()), sep="\n")
    for row in rows:
        results.add(row, summarise(row, measure(row, scale, folder, rounds, BUILD / "stderr.log")))
        print(report.row_table(results.rows[row.name]), flush=True)
    if arguments.sweep:
        measured = [results.rows[row.name] for row in sweep_rows() if row.name in results.rows]
        if len(measured) == len(sweep_rows()):
            print(write_table(facts, measured))
        return
    if arguments.programs:
        return
    for series in dict.fromkeys(row.series for row in rows if row.series):
        points = [point for point in results.in_order() if point["series"] == series]
        print(report.series_table(series, points))
    picture = CHART if results.complete and not arguments.quick else BUILD / f"benchmarks{kind}.svg"
    chart.draw(results, picture)
    print(f"\n{results.path}\n{picture}")


def chosen_rows(scale: Scale, arguments: argparse.Namespace) -> list[Row]:
    """Return the rows named on the command line, from the sweep with `--sweep`, or from the programs."""
    if not arguments.sweep and not arguments.programs:
        return chosen(scale, arguments.rows)
    rows = sweep_rows() if arguments.sweep else program_rows(scale)
    return [row for row in rows if not arguments.rows or row.name in arguments.rows]


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("rows", nargs="*", help="rows, or series of rows (default: all)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small data and few rounds, as a trial")
    size.add_argument("--full", action="store_true", help="with the array of 4 GiB")
    parser.add_argument("--sweep", action="store_true", help="the short rows, for docs/sweep.md")
    parser.add_argument("--programs", action="store_true", help="zarr-python and xarray on zarrow")
    parser.add_argument("--loaders", action="store_true", help="loaders of samples for training")
    parser.add_argument("--writers", action="store_true", help="writers of frames")
    parser.add_argument("--remote", action="store_true", help="the remote rows, for docs/remote.md")
    parser.add_argument(
        "--rounds", type=int, help=f"counted runs for each peer (default: {ROUNDS}; quick: 2)"
    )
    parser.add_argument("--data", type=Path, default=BUILD, help=f"folder for the data (default: {BUILD})")
    return parser.parse_args()


if __name__ == "__main__":
    main()
