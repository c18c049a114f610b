"""The tables on stdout."""

import textwrap
from collections.abc import Sequence
from typing import Any

from benches.summary import verdicts


def seconds(value: float | None) -> str:
    """Format a time with three digits, in a fitting unit."""
    if value is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(cells: Sequence[Sequence[str]]) -> str:
    """Align columns: the first and the last to the left, the others to the right."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    aligned = [
        [
            cell.ljust(width) if column in (0, len(widths) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in cells
    ]
    return "\n".join("  ".join(line).rstrip() for line in aligned)


def row_table(summary: dict[str, Any]) -> str:
    """Draw one row, the fastest peer first."""
    peers = sorted(summary["peers"], key=lambda peer: peer["median"] or float("inf"))
    counted = [name for name in ("read", "written") if any(peer.get(name) is not None for peer in peers)]
    cells = [["", "median", "p10 to p90", "to fastest", "to limit", "peak memory", *counted, "rounds", ""]]
    for peer in peers:
        spread = f"{seconds(peer['p10'])} to {seconds(peer['p90'])}" if peer["median"] else "-"
        cells.append(
            [
                peer["peer"],
                seconds(peer["median"]),
                spread,
                ratio(peer["to_fastest"]),
                ratio(peer["to_limit"]),
                *(mebibytes(peer.get(name)) for name in ("peak", *counted)),
                str(len(peer["seconds"])),
                note(peer),
            ]
        )
    verdict = "".join(f"\n{summary['bars']['ours']}: {line}" for line in verdicts(summary))
    return f"\n{summary['name']}: {summary['title']}\n{table(cells)}{verdict}"


def ratio(value: float | None) -> str:
    """Format a ratio; below 1 the peer is faster."""
    return "-" if value is None else f"{value:.2f}"


def mebibytes(value: int | None) -> str:
    """Format a number of bytes."""
    return "-" if value is None else f"{value / 2**20:.1f} MiB"


def note(peer: dict[str, Any]) -> str:
    """Return remarks about a peer's times."""
    notes = [remark] if (remark := peer["remark"]) else []
    if peer["wrong"]:
        notes.append("WRONG VALUES")
    if peer["first_only"]:
        notes.append("the very first run")
    if peer["dropped"] is not None:
        notes.append(f"{peer['dropped']:.0%} of the files was cold")
    if peer["missing"]:
        notes.append(textwrap.shorten(peer["missing"], 90))
    return "; ".join(notes)


def series_table(name: str, points: Sequence[dict[str, Any]]) -> str:
    """Draw a series: a line for each peer, a column for each point."""
    peers = list(dict.fromkeys(peer["peer"] for point in points for peer in point["peers"]))
    medians = [{peer["peer"]: peer["median"] for peer in point["peers"]} for point in points]
    cells = [["", *(f"{point['x']:,g}" for point in points)]]
    for peer in peers:
        values = zip(medians, points, strict=True)
        cells.append([peer, *(seconds(per_unit(median.get(peer), point)) for median, point in values)])
    return f"\n{name}: {AXES[name]}\n{table(cells)}"


AXES = {
    "size": "time of one MiB over MiB",
    "count": "time of one chunk over chunks",
    "threads": "time over CPUs",
}


def per_unit(median: float | None, point: dict[str, Any]) -> float | None:
    """Return the time of one unit of a series."""
    return None if median is None else median / float(point["units"])
