"""An engine for xarray: reads Zarr by zarrow, with xarray's own CF decoding.

>>> import xarray, zarrow
>>> dataset = xarray.Dataset({"rain": ("day", [1.0, 2.0])}, coords={"day": [1, 2]})
>>> _ = dataset.to_zarr("rain.zarr", consolidated=False)
>>> xarray.open_dataset("rain.zarr", engine="zarrow", consolidated=False)["rain"].sum().item()
3.0

Open
    open_zarr                      `xarray.open_zarr` with this engine
    enable                         `engine="zarr"` uses this engine from now on

Read
    load                           many variables in one batch

Write
    to_zarr                        `Dataset.to_zarr` with this engine
"""

from __future__ import annotations

try:
    import xarray as _xarray  # noqa: F401  # the error below names the remedy
except ModuleNotFoundError as error:
    if error.name != "xarray":
        raise
    raise ImportError("zarrow.xarray needs xarray: pip install 'xarray>=2026.9'") from error

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.xarray.enabling import enable
from zarrow.xarray.entrypoint import ZarrowBackendEntrypoint
from zarrow.xarray.loading import load
from zarrow.xarray.opening import open_zarr
from zarrow.xarray.writing import to_zarr

__all__ = ["ZarrowBackendEntrypoint", "enable", "load", "open_zarr", "to_zarr"]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
