"""Standard jobs on a dataset in layers, by xarray: pencils, means of months, and a climatology.

Each opens the dataset lazily, and stores its result. The grid is that of ERA5, divided by the scale, with 256
steps of 6 hours.
"""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benches.peers import Peer
from benches.row import Row
from benches.scale import Scale

PREFIX = "programs-era-"
PEERS = ("xarray+dask", "xarray+dask+zarrs", "xarray+dask+zarrow", "xarray+cubed")
STEPS, DAYS, YEARS = 256, 16, 4
NAME = "temperature"
WINDOW = 5

Run = Callable[[], tuple[float, Any]]


def grid(side: int) -> tuple[int, int]:
    """Return the numbers of latitudes and longitudes."""
    return 721 * side // 1024, 1440 * side // 1024


def write(path: Path, side: int) -> None:
    """Write the dataset as xarray does, one step in a chunk."""
    import pandas
    import xarray

    latitudes, longitudes = grid(side)
    hours = pandas.date_range("2000-01-01", periods=STEPS, freq="6h")
    coordinates = {
        "time": hours,
        "latitude": np.linspace(90, -90, latitudes),
        "longitude": np.arange(longitudes) * 360 / longitudes,
    }
    north = 15 * np.cos(np.radians(coordinates["latitude"]))[:, None]
    values = np.random.default_rng(9).normal(273, 4, (STEPS, latitudes, longitudes)) + north
    dataset = xarray.Dataset({NAME: (tuple(coordinates), np.round(values, 1).astype("f4"))}, coordinates)
    encoding = {NAME: {"chunks": (1, latitudes, longitudes)}}
    dataset.to_zarr(path, encoding=encoding, zarr_format=3, consolidated=True)


def pencils(dataset: Any) -> Any:
    """Rechunk to all times of small tiles."""
    # By default, xarray wraps the arrays of cubed in those of dask.
    kind = "cubed" if type(dataset[NAME].data).__module__.startswith("cubed") else "dask"
    tiles = dataset.chunk({"time": -1, "latitude": 40, "longitude": 40}, chunked_array_type=kind)
    tiles[NAME].encoding.pop("chunks", None)
    return tiles


def monthly(dataset: Any) -> Any:
    """Average months, with the steps taken for days."""
    import pandas

    days = pandas.date_range("2000-01-01", periods=STEPS, freq="D")
    return _without_chunks(dataset.assign_coords(time=days).resample(time="MS").mean())


def climatology(dataset: Any) -> Any:
    """Average each hour of the year over the years, then days in a window with weights."""
    import pandas
    import xarray

    years = [pandas.date_range(f"{2000 + year}-01-01", periods=DAYS * 4, freq="6h") for year in range(YEARS)]
    values = dataset[NAME].assign_coords(time=np.concatenate(years))
    hours = values.time.dt.dayofyear * 4 + values.time.dt.hour // 6
    means = values.groupby(hours.rename("hour_of_year")).mean()
    weights = xarray.DataArray([1, 2, 3, 2, 1], dims="window").astype("f4") / 9
    # The same hour of days: 4 steps apart.
    days = [means.shift(hour_of_year=4 * (place - WINDOW // 2)) * weights[place] for place in range(WINDOW)]
    return _without_chunks(sum(days[1:], days[0]).to_dataset(name=NAME))


def _without_chunks(dataset: Any) -> Any:
    """Return a dataset without the chunks of the stored one."""
    dataset[NAME].encoding.clear()
    return dataset


JOBS = {job.__name__: job for job in (pencils, monthly, climatology)}


class Stored:
    """The variable of a stored dataset."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Sums depend on the order of chunks in the last digits.
        return np.round(np.asarray(zarr.open_array(self.path / NAME, mode="r")[...]), 2)


def transformed(peer: Peer, row: Row, path: Path) -> Run:
    """Open a dataset, do a job on it and store the result in memory, after deleting the previous one."""
    folder = Path(tempfile.gettempdir(), f"transformed-{peer.name}")

    def run() -> tuple[float, Any]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        started = time.perf_counter()
        JOBS[row.index](peer.open(path)).to_zarr(folder / "result.zarr")
        return time.perf_counter() - started, Stored(folder / "result.zarr")

    return run


def jobs(scale: Scale) -> list[Row]:
    """Return the rows of jobs."""
    side = scale.transformed
    latitudes, longitudes = grid(side)
    size = f"{STEPS * latitudes * longitudes * 4 >> 20} MiB of float32 in layers"
    bars: dict[str, Any] = {
        "peers": PEERS,
        "ours": "xarray+dask+zarrow",
        "to_peer": ("xarray+dask", 1.0),
        "counts_bytes": True,
    }
    titles = {"pencils": "rechunk to pencils", "monthly": "means of months", "climatology": "climatology"}
    return [
        Row(f"{PREFIX}{name}", f"{title}, {size}", "transformed", f"{PREFIX}{side}", index=name, **bars)
        for name, title in titles.items()
    ]
