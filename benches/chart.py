"""The chart: whole reads, the other rows against the fastest peer, and the three series."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.patches import Patch
from matplotlib.axes import Axes

from benches import limit
from benches.report import AXES, per_unit

Summaries = list[dict[str, Any]]
WHOLE = ("raw", "zstd", "blosc", "gzip", "sharded", "rows")
COLOURS = {
    "zarrow": "#d1495b",
    "zarrow mmap": "#e8899a",
    "zarrow out=": "#f2b8c1",
    "zarrow cache_bytes": "#8f2d3b",
    "zarr-python": "#30638e",
    "zarr-python fused": "#5b8db8",
    "zarr-python+zarrs": "#9cc3e6",
    "zarrista": "#2a9d8f",
    "tensorstore": "#edae49",
    "numpy.load": "#777777",
    "numpy.load mmap": "#aaaaaa",
    "h5py": "#7b5ea7",
    "blosc2": "#b79ad6",
    "copy by NumPy": "#555555",
    limit.NAME: "#000000",
}
SERIES = ("size", "count", "threads")


def draw(rows: Summaries, document: dict[str, Any], path: Path) -> None:
    """Draw what was measured into an SVG file."""
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "zarrow", "font.size": 8, "svg.fonttype": "none"})
    figure, panels = pyplot.subplot_mosaic(
        [["whole"] * 3, ["others"] * 3, list(SERIES)], figsize=(12, 12), layout="constrained"
    )
    whole = [row for row in rows if row["name"] in WHOLE]
    others = [row for row in rows if row["name"] not in WHOLE and not row["series"] and row["fastest"]]
    bars(panels["whole"], whole, "median")
    panels["whole"].set(ylabel="seconds", title="reading a whole array (shorter is faster)")
    bars(panels["others"], others, "to_fastest")
    panels["others"].set(yscale="log", ylabel="time over that of the fastest peer", title="other rows")
    panels["others"].axhline(1, color="black", linewidth=0.5)
    for series in SERIES:
        lines(panels[series], [row for row in rows if row["series"] == series], AXES[series])
    found = [name for name in COLOURS if any(peer["peer"] == name for row in rows for peer in row["peers"])]
    handles = [Patch(color=COLOURS[name]) for name in found]
    figure.legend(handles, found, loc="outside lower center", ncols=6, frameon=False)
    about = document["machine"]
    days = sorted(row["date"][:10] for row in rows)
    figure.suptitle(
        f"{about['processor']}, {about['cpus']} CPUs; {days[-1]}; zarrow {document['versions']['zarrow']}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def bars(axes: Axes, rows: Summaries, value: str) -> None:
    """Draw a group of bars for each row, with the spread where the value is a time."""
    for place, row in enumerate(rows):
        peers = [peer for peer in row["peers"] if peer[value]]
        width = 0.85 / max(1, len(peers))
        for number, peer in enumerate(peers):
            at = place - 0.425 + (number + 0.5) * width
            spread = None
            if value == "median":
                spread = [[peer["median"] - peer["p10"]], [peer["p90"] - peer["median"]]]
            axes.bar(
                at, peer[value], width, yerr=spread, color=COLOURS[peer["peer"]], error_kw={"linewidth": 0.5}
            )
    axes.set_xticks(range(len(rows)), [row["name"] for row in rows])
    axes.spines[["top", "right"]].set_visible(False)


def lines(axes: Axes, points: Summaries, title: str) -> None:
    """Draw a line for each peer of a series."""
    for name, colour in COLOURS.items():
        line = [
            (point["x"], per_unit(peer["median"], point))
            for point in points
            for peer in point["peers"]
            if peer["peer"] == name and peer["median"]
        ]
        if line:
            axes.plot(*zip(*line, strict=True), color=colour, marker="o", markersize=3, linewidth=1)
    axes.set(xscale="log", yscale="log", ylabel="seconds", title=title)
    axes.spines[["top", "right"]].set_visible(False)
