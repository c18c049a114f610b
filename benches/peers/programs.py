"""zarr-python on zarrow's pipeline, and xarray on its engine."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benches.peers.peer import Peer
from benches.peers.zarr_reader import ZarrPython
from benches.selections import Selection


def lacks(module: str) -> str | None:
    """Return why a module of zarrow cannot be used."""
    return None if importlib.util.find_spec(module) else f"this version has no {module}"


class OnPipeline(ZarrPython):
    """zarr-python with the pipeline of zarrow."""

    name = "zarr-python+zarrow"
    is_zarrow = True
    rows: ClassVar = frozenset[str]()  # those of programs name their peers

    def missing(self) -> str | None:
        if reason := lacks("zarrow.zarr_python"):
            return reason
        importlib.import_module("zarrow.zarr_python").enable()
        return None


class Loaded:
    """The variables of a dataset in memory, as one array."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack([np.asarray(self.dataset[name]) for name in sorted(self.dataset.data_vars)])


class Xarray(Peer):
    """xarray on zarr-python, without dask."""

    name = "xarray"
    package = "xarray"
    rows: ClassVar = frozenset[str]()  # those of programs name their peers

    def __init__(self) -> None:
        import xarray

        self.xarray: Any = xarray

    def open(self, path: Path) -> Any:
        return self.xarray.open_dataset(path, engine="zarr", chunks=None, cache=False)

    def read(self, array: Any, selection: Selection | None) -> Any:
        # Loading into a copy leaves the lazy arrays of the original.
        return Loaded(array.copy().load())


class OnEngine(Xarray):
    """xarray with zarrow's engine in its place, by one line."""

    name = "xarray+zarrow"
    is_zarrow = True

    def missing(self) -> str | None:
        if reason := lacks("zarrow.xarray"):
            return reason
        self.engine: Any = importlib.import_module("zarrow.xarray")
        self.engine.enable()
        return None


class LoadedAtOnce(OnEngine):
    """The same, with `zarrow.xarray.load` for all variables at once."""

    name = "zarrow.xarray.load"

    def read(self, array: Any, selection: Selection | None) -> Any:
        return Loaded(self.engine.load(array.copy()))
