"""The chart: whole reads, the other rows against the fastest peer, and the three series."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from benches import figures, limit
from benches.report import AXES, per_unit
from benches.results import Results

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
    "torch.Tensor": "#ee4c2c",
    "tvm_ffi.Tensor": "#8c6d31",
    "pyarrow.Array": "#17becf",
    limit.NAME: "#000000",
}
SERIES = ("size", "count", "threads")
MOST_TICKS = 8


def draw(results: Results, path: Path) -> None:
    """Draw the measurements into an SVG file."""
    rows = results.in_order(programs=False)
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "zarrow", "font.size": 8, "svg.fonttype": "none"})
    measured_series = [series for series in SERIES if any(row["series"] == series for row in rows)]
    width = max(1, len(measured_series))
    mosaic = [["whole"] * width, ["others"] * width, *([measured_series] if measured_series else [])]
    figure, panels = pyplot.subplot_mosaic(mosaic, figsize=(12, 4 * len(mosaic)), layout="constrained")
    whole = [row for row in rows if row["name"] in WHOLE]
    others = [row for row in rows if row["name"] not in WHOLE and not row["series"] and row["fastest"]]
    bars(panels["whole"], whole)
    dots(panels["others"], others)
    for series in measured_series:
        lines(panels[series], [row for row in rows if row["series"] == series], AXES[series])
    measured = {peer["peer"] for row in rows for peer in row["peers"] if peer["median"]}
    found = [name for name in COLOURS if name in measured]
    handles = [Patch(color=COLOURS[name]) for name in found]
    figure.legend(handles, found, loc="outside lower center", ncols=6, frameon=False)
    about = results.about["machine"]
    days = sorted({row["date"][:10] for row in rows})
    when = " to ".join(dict.fromkeys([days[0], days[-1]]))
    version = results.about["versions"]["zarrow"]
    figure.suptitle(f"{about['processor']}, {about['cpus']} CPUs; {when}; zarrow {version}")
    figures.save(figure, path)


def bars(axes: Axes, rows: Summaries) -> None:
    """Draw a group of bars for each row, with the spread."""
    for place, row in enumerate(rows):
        peers = [peer for peer in row["peers"] if peer["median"]]
        width = 0.85 / max(1, len(peers))
        for number, peer in enumerate(peers):
            at = place - 0.425 + (number + 0.5) * width
            spread = [[peer["median"] - peer["p10"]], [peer["p90"] - peer["median"]]]
            colour = COLOURS[peer["peer"]]
            axes.bar(at, peer["median"], width, yerr=spread, color=colour, error_kw={"linewidth": 0.5})
    name_rows(axes, rows)
    axes.set(ylabel="seconds", title="reading a whole array (lower is better)")


def dots(axes: Axes, rows: Summaries) -> None:
    """Draw a column of dots for each row: each peer's time as a multiple of the fastest peer's."""
    for place, row in enumerate(rows):
        peers = [peer for peer in row["peers"] if peer["to_fastest"]]
        axes.axvline(place, color="#dddddd", linewidth=0.5, zorder=0)
        for number, peer in enumerate(peers):
            at = place - 0.2 + 0.4 * number / max(1, len(peers) - 1)
            axes.plot(at, peer["to_fastest"], "o", color=COLOURS[peer["peer"]], markersize=5)
    axes.axhline(1, color="black", linewidth=0.5)
    name_rows(axes, rows)
    title = "other rows: time relative to the fastest other library (lower is better)"
    axes.set(yscale="log", ylabel="ratio", title=title)


def name_rows(axes: Axes, rows: Summaries) -> None:
    """Write the rows' names below."""
    slant: dict[str, Any] = (
        {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(rows) > 10 else {}
    )
    axes.set_xticks(range(len(rows)), [row["name"] for row in rows], **slant)
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
    if len(places := sorted({point["x"] for point in points})) < MOST_TICKS:
        axes.set_xticks(places, [f"{place:,g}" for place in places], minor=False)
        axes.set_xticks([], minor=True)
    axes.spines[["top", "right"]].set_visible(False)
