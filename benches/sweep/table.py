"""The table of the sweep, as a page of the documentation."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benches.peers import PEERS
from benches.report import seconds

PAGE = Path("docs/sweep.md")
BAR = 0.95

WHOLE = (
    "a promise: a value is written whole or not at all, and no write is lost. That takes six system calls per"
    " chunk (open, write, rename, check for a lock, check that the file still has its name, close); {other}"
    " makes four (open, stat, write, close), and overwrites in place"
)
CHECKED = (
    "a promise: documents may come from anyone. All their values are checked before any is used, unknown ones"
    " are refused, depth and size are bounded, and the folder stays open: every key is resolved from it"
)
SHARED = (
    "a promise: a read returns the state of the store at its start. {other} seems to decode a chunk once for"
    " all threads that need it at the same time: with 8 threads instead of one its processor time for a crop"
    " of float32-zstd falls from 4.1 to 2.6 ms, and zarrow's stays at 3.8. `cache_bytes` caches decoded"
    " chunks"
)
FEW = "{other} reads the elements on all threads; zarrow reads few bytes on one thread"
REASONS = {
    "sweep-write-small-chunks-raw": WHOLE,
    "sweep-open": CHECKED,
    "sweep-open-element": CHECKED,
    "sweep-line-along-the-first-axis-float32-raw": FEW,
    "sweep-threads-float32-zstd": SHARED,
    "sweep-threads-sharded-zstd": SHARED,
}
"""Known causes, for rows that may be below the bar."""


def write_table(facts: dict[str, Any], summaries: Sequence[dict[str, Any]]) -> Path:
    """Write the page, the slowest rows first."""
    lines = [line for summary in summaries if (line := _line(summary))]
    left_out = [summary["title"] for summary in summaries if not _line(summary)]
    rounds = min(
        len(peer["seconds"]) for summary in summaries for peer in summary["peers"] if peer["seconds"]
    )
    lines.sort()
    ratios = [ratio for ratio, _ in lines]
    behind = sum(ratio < BAR for ratio in ratios)
    text = [
        "# The sweep",
        "",
        "Short workloads of every Zarr library, in one run, the lowest ratio first",
        "(`make bench FLAGS=--sweep`). The ratio is the time of the fastest other library divided by",
        "zarrow's: above 1 zarrow is faster. With one round a row may be off by a third.",
        "",
        f"{len(lines)} rows, rounds: {rounds}, CPUs: {len(os.sched_getaffinity(0))}. Median ratio"
        f" {np.median(ratios):.1f}; {behind} rows below {BAR}.",
        "",
        *(f"- {key}: {value}" for key, value in facts.items()),
        "",
        *([f"Without a figure: {', '.join(left_out)}.", ""] if left_out else []),
        "| Row | zarrow | fastest other | | ratio |",
        "|---|---|---|---|---|",
        *(line for _, line in lines),
        "",
        *_reasons(summaries),
    ]
    PAGE.write_text("\n".join(text))
    return PAGE


def _reasons(summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Return the cause of each row below the bar, if known."""
    reasons = []
    for summary in summaries:
        ratio, fastest = _ratio(summary) or (BAR, "")
        if ratio < BAR:
            reason = REASONS.get(summary["name"], "no cause was found")
            reasons.append(
                (ratio, f"- **{summary['title']}** ({ratio:.2f}): {reason.format(other=fastest)}.")
            )
    return [f"Rows below {BAR}:", "", *(line for _, line in sorted(reasons)), ""] if reasons else []


def _line(summary: dict[str, Any]) -> tuple[float, str] | None:
    """Return a row's ratio, and its line."""
    if (found := _ratio(summary)) is None:
        return None
    ratio, fastest = found
    medians = _medians(summary)
    ours, other = seconds(medians["zarrow"]), seconds(medians[fastest])
    return ratio, f"| {summary['title']} | {ours} | {other} | {fastest} | {ratio:.2f} |"


def _ratio(summary: dict[str, Any]) -> tuple[float, str] | None:
    """Return a row's ratio, and the fastest other library."""
    medians = _medians(summary)
    others = {name: median for name, median in medians.items() if name in PEERS and not PEERS[name].is_zarrow}
    if "zarrow" not in medians or not others:
        return None
    fastest = min(others, key=others.__getitem__)
    return others[fastest] / medians["zarrow"], fastest


def _medians(summary: dict[str, Any]) -> dict[str, float]:
    """Return the time of each peer with correct values."""
    return {peer["peer"]: peer["median"] for peer in summary["peers"] if peer["median"] and not peer["wrong"]}
