"""The results of the remote rows: as plain data, as tables on stdout, and as a page of the documentation."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benches import machine, report
from benches.remote.changes_page import PROMISES
from benches.remote.row import Measure, RemoteRow
from benches.remote.rows import all_rows

PAGE = Path("docs/remote.md")
VERSIONS = ("zarrow", "zarr", "obstore", "fsspec", "zarrs", "zarrista", "tensorstore", "pycurl")


class Results:
    """The last measurement of each row, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}

    def add(self, row: RemoteRow, peers: list[dict[str, Any]]) -> None:
        """Keep a row."""
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        self.rows[row.name] = {"date": date, "build": machine.build(), "peers": peers}
        self.path.write_text(json.dumps(self.rows, indent=1))


def median(values: list[Any]) -> float | None:
    """Return the median, or None without values."""
    return float(np.median(values)) if values else None


def percent_99(values: list[float]) -> float | None:
    """Return the 99th percentile."""
    return float(np.percentile(values, 99)) if values else None


def cpu_per_gb(row: RemoteRow, peer: dict[str, Any]) -> float | None:
    """Return the seconds of CPU time per 10⁹ bytes of elements."""
    cpu = median(peer["cpu"])
    return None if cpu is None else cpu / row.nbytes * 1e9


def cpu_per_request(row: RemoteRow, peer: dict[str, Any]) -> float | None:
    """Return the seconds of CPU time per request."""
    cpu = median(peer["cpu"])
    return None if cpu is None else cpu / row.requests


def extra_requests(row: RemoteRow, peer: dict[str, Any]) -> float | None:
    """Return the share of requests beyond the required ones."""
    count = sum(peer["requests"])
    return count / (len(peer["requests"]) * row.requests) - 1 if count else None


def seconds(row: RemoteRow, peer: dict[str, Any]) -> float | None:
    """Return the time of one run, or of one crop."""
    time = median(peer["seconds"])
    return time if time is None or row.task != "crops" else time / 20


MEASURES: dict[
    Measure, tuple[str, Callable[[RemoteRow, dict[str, Any]], float | None], Callable[[float], str]]
] = {
    "seconds": ("time", seconds, report.seconds),
    "p99": ("time of the slowest in 100", lambda row, peer: percent_99(peer["seconds"]), report.seconds),
    "cpu_per_gb": ("CPU time for 1 GB", cpu_per_gb, report.seconds),
    "cpu_per_request": ("CPU time for a request", cpu_per_request, report.seconds),
    "extra_requests": ("extra requests", extra_requests, lambda share: f"{share:.1%}"),
    "peak": (
        "memory over the result",
        lambda row, peer: over(row, peer),
        lambda size: f"{size / 2**20:,.0f} MiB",
    ),
    "requests": ("requests", lambda row, peer: median(peer["requests"]), lambda count: f"{count:,.0f}"),
}
"""Heading, value and format of each measure."""


def over(row: RemoteRow, peer: dict[str, Any]) -> float | None:
    """Return the maximum resident bytes of a run beyond its result."""
    return max(peer["peak"]) - row.nbytes if peer["peak"] else None


def cells(row: RemoteRow, peers: list[dict[str, Any]]) -> list[list[str]]:
    """Return the lines of a table: the peers, best first, each with its multiple of zarrow's value."""
    _, value, _ = MEASURES[row.measures[0]]
    ours = next((value(row, peer) for peer in peers if peer["peer"] == "zarrow"), None)
    lines = []
    for peer in sorted(peers, key=lambda peer: value(row, peer) or float("inf")):
        texts = []
        for measure in row.measures:
            _, give, written = MEASURES[measure]
            given = give(row, peer)
            texts.append("-" if given is None else written(given))
        own = value(row, peer)
        ratio = f"{own / ours:.2f}" if own and ours and own > 0 and ours > 0 else "-"
        lines.append([peer["peer"], *texts, ratio, str(len(peer["seconds"])), note(peers, peer)])
    return [
        ["", *(MEASURES[measure][0] for measure in row.measures), "times zarrow", "runs", "notes"],
        *lines,
    ]


def note(peers: list[dict[str, Any]], peer: dict[str, Any]) -> str:
    """Return remarks about a peer's values."""
    checks = [other["check"] for other in peers if other["check"]]
    expected = max(set(checks), key=checks.count, default=None)
    notes = ["WRONG VALUES"] if peer["check"] and peer["check"] != expected else []
    return "; ".join([*notes, *([peer["missing"][:90]] if peer["missing"] else [])])


def behind(results: Results) -> list[str]:
    """Return the rows in which other libraries are better, with zarrow's multiple of their values."""
    lines = []
    for row in all_rows():
        (_, column, *_), *peers = cells(row, results.rows[row.name]["peers"])
        better = peers[: [name for name, *_ in peers].index("zarrow")]
        # The third last cell is the ratio, or "-" if a value is not positive.
        ratios = [
            line[0] if line[-3] == "-" else f"{1 / float(line[-3]):.1f} times {line[0]}" for line in better
        ]
        if ratios:
            lines.append(f"- `{row.name}`, {column}: {', '.join(ratios)}")
    return (
        ["Other libraries are better in these rows, with zarrow's value as a multiple of theirs:", "", *lines]
        if lines
        else ["zarrow has the best value in each row."]
    )


def row_table(row: RemoteRow, result: dict[str, Any]) -> str:
    """Draw one row."""
    bar = f" (the bar: {row.bar})" if row.bar else ""
    return f"\n{row.name}: {row.title}{bar}\n{report.table(cells(row, result['peers']))}"


def write_page(results: Results) -> Path:
    """Write the page."""
    facts = machine.describe() | {name: machine.version_of(name) for name in VERSIONS}
    dates = sorted({results.rows[row.name]["date"] for row in all_rows()})
    builds = list(dict.fromkeys(results.rows[row.name]["build"] for row in all_rows()))
    text = [
        "# Remote reads and writes, measured",
        "",
        "zarrow compared with other libraries on one server, a program of the benchmarks, on this machine,",
        "by HTTP/1.1 without TLS (`make bench FLAGS=--remote`). The server delays its answers in the rows",
        "that say so. Each library runs in a separate process. zarr-python, tensorstore and curl are",
        "limited to 64 concurrent requests; zarrow begins with 64 and may use more; zarrista and zarrs'",
        "pipeline choose their number. Values are medians of a few interleaved rounds; the column *runs*",
        "has their number. Server and reader share the CPUs, and the machine had other work: compare the",
        "values of one row only with each other. CPU time is the time of all threads of the reader's",
        "process, in user and in kernel mode, without the server. *The bar* is the target that we set for",
        "zarrow. *times zarrow* is the first column's value, divided by zarrow's. `curl` is not a reader",
        "of Zarr: it fetches the same values into the result by libcurl's multi interface.",
        "",
        *behind(results),
        "",
        f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}.",
        f"Builds of zarrow: {', '.join(builds)}.",
        "",
        *(f"- {key}: {value}" for key, value in facts.items()),
        "",
    ]
    text += PROMISES.split("\n")
    for row in all_rows():
        heading, *lines = cells(row, results.rows[row.name]["peers"])
        text += [f"## {row.name}", "", f"{row.title[0].upper()}{row.title[1:]}.", ""]
        text += [f"The bar: {row.bar}.", ""] if row.bar else []
        text += [f"| {' | '.join(heading)} |", f"|{'---|' * len(heading)}"]
        text += [*(f"| {' | '.join(line)} |" for line in lines), ""]
    PAGE.write_text("\n".join(text))
    return PAGE
