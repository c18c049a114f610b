"""`python -m benches [ROW…]`: writes what data is missing, measures, and reports."""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

from benches import chart, data, machine, report
from benches.rounds import measure
from benches.row import Row
from benches.rows import all_rows, chosen
from benches.scale import FULL, NORMAL, QUICK, Scale
from benches.summary import summarise

ROUNDS = 7


def main() -> None:
    """Run what the command line asks for."""
    arguments = parse()
    scale = QUICK if arguments.quick else FULL if arguments.full else NORMAL
    rounds = arguments.rounds or (2 if arguments.quick else ROUNDS)
    rows = chosen(scale, arguments.rows)
    build: Path = arguments.build
    folder = scale.folder(arguments.data or build)
    data.write(scale, folder, {row.data for row in rows})
    results = build / ("results-quick.json" if arguments.quick else "results.json")
    run: dict[str, Any] = {"machine": machine.describe(), "versions": machine.versions(), "side": scale.side}
    document = earlier(results, run)
    print(
        *(f"{key}: {value}" for part in ("machine", "versions") for key, value in run[part].items()), sep="\n"
    )
    for row in rows:
        show(row, scale, folder, rounds, build, document)
        results.write_text(json.dumps(document, indent=1))
    for series in dict.fromkeys(row.series for row in rows if row.series):
        points = [point for point in in_order(document, scale) if point["series"] == series]
        print(report.series_table(series, points))
    if not machine.reads_http():
        print(
            "\nhttp: a store that answers after 30 ms is left out: this version of zarrow does not read HTTP"
        )
    picture = build / "benchmarks-quick.svg" if arguments.quick else arguments.chart
    chart.draw(in_order(document, scale), document, picture)
    print(f"\n{results}\n{picture}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("rows", nargs="*", help="rows, or series of rows (default: all)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small data and few rounds, to see that all runs")
    size.add_argument("--full", action="store_true", help="with the array of 4 GiB")
    parser.add_argument(
        "--rounds", type=int, help=f"runs that count, for each peer (default: {ROUNDS}; quick: 2)"
    )
    parser.add_argument("--build", type=Path, default=Path("build/bench"), help="where results go")
    parser.add_argument("--data", type=Path, help="where the data goes (default: where results go)")
    parser.add_argument(
        "--chart", type=Path, default=Path("docs/benchmarks.svg"), help="where the chart goes"
    )
    return parser.parse_args()


def earlier(results: Path, run: dict[str, Any]) -> dict[str, Any]:
    """Give what was measured before on the same machine with the same versions, for the rows not run now."""
    if results.exists():
        document: dict[str, Any] = json.loads(results.read_text())
        if {key: document.get(key) for key in run} == run:
            return document
    return run | {"rows": {}}


def show(row: Row, scale: Scale, folder: Path, rounds: int, build: Path, document: dict[str, Any]) -> None:
    """Measure a row, print its table and keep it."""
    summary = summarise(row, measure(row, scale, folder, rounds, build / "stderr.log"))
    summary["date"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    document["rows"][row.name] = summary
    print(report.row_table(summary), flush=True)


def in_order(document: dict[str, Any], scale: Scale) -> list[dict[str, Any]]:
    """Give the rows that were measured, in the order of the report."""
    rows = document["rows"]
    return [rows[row.name] for row in all_rows(scale) if row.name in rows]


if __name__ == "__main__":
    main()
