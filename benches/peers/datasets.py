"""xarray on arrays of dask or cubed: a dataset is opened lazily, computed in parts and stored."""

import importlib
from pathlib import Path
from typing import Any, ClassVar

from benches.peers.copiers import Cubed
from benches.peers.peer import Peer
from benches.peers.programs import OnEngine
from benches.peers.zarr_reader import Zarrs


class OfDask(Peer):
    """xarray on dask and zarr-python."""

    name = "xarray+dask"
    package = "xarray"
    rows: ClassVar = frozenset[str]()  # those of programs name their peers

    def __init__(self) -> None:
        import dask.array  # noqa: F401
        import xarray

        self.xarray: Any = xarray
        importlib.import_module("flox.xarray")  # xarray imports it when it groups

    def open(self, path: Path) -> Any:
        return self.xarray.open_zarr(path)


class OfDaskOnZarrs(OfDask):
    """The same, with the pipeline of zarrs."""

    name = "xarray+dask+zarrs"
    package = "zarrs"

    def __init__(self) -> None:
        super().__init__()
        Zarrs()


class OfDaskOnEngine(OfDask):
    """The same, with zarrow's engine in its place, by one line."""

    name = "xarray+dask+zarrow"
    is_zarrow = True

    def missing(self) -> str | None:
        return OnEngine().missing()


class OfCubed(OfDask):
    """xarray on cubed and zarr-python."""

    name = "xarray+cubed"
    package = "cubed"

    def __init__(self) -> None:
        super().__init__()
        self.cubed = Cubed()
        importlib.import_module("cubed_xarray")

    def open(self, path: Path) -> Any:
        spec = {"spec": self.cubed.spec()}
        options = {"chunked_array_type": "cubed", "from_array_kwargs": spec}
        return self.xarray.open_dataset(path, engine="zarr", chunks={}, **options)
