"""Turns samples into the values of a table, as plain data for JSON."""

from dataclasses import asdict
from typing import Any

import numpy as np

from benches import limit
from benches.peers import PEERS
from benches.rounds import Samples
from benches.row import Row


def summarise(row: Row, all_samples: list[Samples]) -> dict[str, Any]:
    """Return medians, spreads and ratios of a row.

    A ratio is a peer's median over the median of the fastest other library, or of the limit: below 1 is
    faster.
    """
    medians = {samples.peer: float(np.median(samples.seconds)) for samples in all_samples if samples.seconds}
    others = [name for name in medians if name != limit.NAME and not PEERS[name].is_zarrow]
    fastest = min(others, key=medians.__getitem__, default=None)
    checks = [samples.check for samples in all_samples if samples.check]
    expected = max(set(checks), key=checks.count, default=None)
    return {
        "name": row.name,
        "title": row.title,
        "series": row.series,
        "x": row.x,
        "units": row.units,
        "bars": {
            bar: getattr(row, bar) for bar in ("ours", "ahead", "of_limit", "to_peer", "seconds", "peak")
        },
        "fastest": fastest,
        "peers": [
            {
                **asdict(samples),
                "median": (median := medians.get(samples.peer)),
                "p10": float(np.percentile(samples.seconds, 10)) if samples.seconds else None,
                "p90": float(np.percentile(samples.seconds, 90)) if samples.seconds else None,
                "to_fastest": median / medians[fastest] if median and fastest else None,
                "to_limit": median / medians[limit.NAME] if median and limit.NAME in medians else None,
                "wrong": bool(samples.check) and samples.check != expected,
            }
            for samples in all_samples
        ],
    }


def verdicts(summary: dict[str, Any]) -> list[str]:
    """Compare zarrow with the bars of a row."""
    bars, lines = summary["bars"], []
    peers = {peer["peer"]: peer for peer in summary["peers"] if peer["median"]}
    medians = {name: peer["median"] for name, peer in peers.items()}
    if bars["ours"] not in peers:
        return []
    ours = medians[bars["ours"]]
    readers = [name for name in medians if name in PEERS and PEERS[name].suffix == ".zarr"]
    readers = [name for name in readers if not PEERS[name].is_zarrow]
    if bars["ahead"] and readers:
        best = min(readers, key=medians.__getitem__)
        lines.append(f"{medians[best] / ours:.2f} times as fast as {best}; the bar is {bars['ahead']:g}")
    if bars["of_limit"] and limit.NAME in medians:
        lines.append(f"{medians[limit.NAME] / ours:.2f} of the limit; the bar is {bars['of_limit']:g}")
    if bars["to_peer"] and (other := bars["to_peer"][0]) in medians:
        lines.append(
            f"{ours / medians[other]:.2f} times the time of {other}; the bar is {bars['to_peer'][1]:g}"
        )
    if bars["seconds"]:
        lines.append(f"{ours / bars['seconds']:.2f} of the allowed time")
    if bars["peak"] and (peak := peers[bars["ours"]]["peak"]):
        lines.append(f"{peak / bars['peak']:.2f} of the allowed memory")
    return lines
