"""The data of the programs that are not among the other sets."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benches.programs import cells, copies, geoscience, graphs, versioned

PREFIX = "programs-"
VARIABLES = 24
STEPS, SIDE = 32, 128


def is_set(name: str) -> bool:
    """Return whether this is a set of the programs."""
    return name.startswith(PREFIX)


def writer(name: str) -> Callable[[Path], None]:
    """Return a function that writes the named set."""
    if name.startswith(cells.PREFIX):
        return lambda path: cells.write(path, name.removeprefix(cells.PREFIX))
    if name.startswith(copies.PREFIX):
        kind, _, side = name.removeprefix(copies.PREFIX).partition("-")
        return lambda path: copies.write(path, kind, int(side))
    if name.startswith(geoscience.PREFIX):
        return lambda path: geoscience.write(path, int(name.removeprefix(geoscience.PREFIX)))
    if name.startswith(graphs.PREFIX):
        return lambda path: graphs.write(path, int(name.removeprefix(graphs.PREFIX)))
    return versioned.write if name == versioned.PREFIX else write_dataset


def write_dataset(path: Path) -> None:
    """Write a dataset as xarray does: variables with dimension names, in consolidated metadata."""
    import xarray

    axes = {"time": STEPS, "y": SIDE, "x": SIDE}
    rng = np.random.default_rng(6)
    variables = {
        f"variable_{number}": (tuple(axes), np.round(rng.normal(0, 9, tuple(axes.values())), 1).astype("f4"))
        for number in range(VARIABLES)
    }
    coordinates = {name: np.arange(size) * 0.5 for name, size in axes.items()}
    encoding = {name: {"chunks": (8, 64, 64)} for name in variables}
    dataset = xarray.Dataset(variables, coordinates)
    dataset.to_zarr(path, encoding=encoding, zarr_format=3, consolidated=True)
