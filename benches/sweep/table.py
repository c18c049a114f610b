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
        "Short workloads beside every Zarr library, in one run, the lowest ratio first",
        "(`make bench FLAGS=--sweep`). The ratio is the time of the fastest other library over that of",
        "zarrow: above 1 zarrow is faster. With one round a row may be off by a third.",
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
    ]
    PAGE.write_text("\n".join(text))
    return PAGE


def _line(summary: dict[str, Any]) -> tuple[float, str] | None:
    """Give a row's ratio, and its line."""
    medians = {
        peer["peer"]: peer["median"] for peer in summary["peers"] if peer["median"] and not peer["wrong"]
    }
    ours = medians.get("zarrow")
    others = {name: median for name, median in medians.items() if name in PEERS and not PEERS[name].is_zarrow}
    if ours is None or not others:
        return None
    fastest = min(others, key=others.__getitem__)
    ratio = others[fastest] / ours
    return ratio, (
        f"| {summary['title']} | {seconds(ours)} | {seconds(others[fastest])} | {fastest} | {ratio:.2f} |"
    )
