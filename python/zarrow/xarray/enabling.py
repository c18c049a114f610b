"""Makes the engine `"zarr"` and `to_zarr` of xarray read and write by zarrow, so that unchanged programs do.

1. `xarray.open_zarr`, `engine="zarr"` and the choice of an engine by a name in `.zarr` all ask xarray's
   table of engines, which `enable` changes.
2. What zarrow does not open, xarray's own engine opens: then also its errors are the same.
3. Chunks for dask are as with xarray's own engine.
4. `to_zarr` of datasets, arrays and trees calls functions of `xarray.backends.writers`, which `enable`
   replaces. What zarrow does not write, these functions write.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Self

import xarray
from xarray.backends import writers
from xarray.backends.common import BACKEND_ENTRYPOINTS
from xarray.backends.plugins import detect_parameters, refresh_engines
from xarray.backends.zarr import ZarrBackendEntrypoint

from zarrow.xarray.entrypoint import ZarrowBackendEntrypoint
from zarrow.xarray.writing import (
    dataset_to_zarr,
    datatree_to_zarr,
    stock_datatree_to_zarr,
    stock_to_zarr,
)

_to_zarr = partial(dataset_to_zarr, is_unchanged=True)
_datatree_to_zarr = partial(datatree_to_zarr, is_unchanged=True)

_NAME = "zarr"
_lock = threading.Lock()
_enabled: list[Enabled] = []


def enable() -> Enabled:
    """Have `xarray.open_zarr`, `engine="zarr"` and `to_zarr` use zarrow, from now on or in a `with` block.

    This applies to the whole process. Stores that zarrow does not open or write are left to xarray's own
    engine.

    Returns
    -------
    Enabled
        A context manager: its end, or its method `disable`, restores xarray's own engine.

    Examples
    --------
    >>> import xarray, zarrow
    >>> _ = xarray.Dataset({"rain": ("day", [1.0, 2.0])}).to_zarr("unchanged.zarr", consolidated=False)
    >>> with zarrow.xarray.enable():
    ...     dataset = xarray.open_zarr("unchanged.zarr", consolidated=False)
    >>> dataset["rain"].values
    array([1., 2.])
    """
    return Enabled()


class Enabled:
    """The state of `enable`, undone by the end of a `with` block or by `disable`."""

    def __init__(self) -> None:
        with _lock:
            _enabled.append(self)
            _apply()

    def disable(self) -> None:
        """Restore xarray's own engine, unless another `enable` is still in effect."""
        with _lock:
            if self in _enabled:
                _enabled.remove(self)
            _apply()

    def __enter__(self) -> Self:
        with _lock:
            if self not in _enabled:
                _enabled.append(self)
            _apply()
        return self

    def __exit__(self, *_: object) -> None:
        self.disable()


def _apply() -> None:
    """Enter the engine in effect into xarray's table (step 1), and the functions that write (step 4)."""
    wanted = _UnchangedEntrypoint if _enabled else ZarrBackendEntrypoint
    module, current = BACKEND_ENTRYPOINTS[_NAME]
    if current is not wanted:
        BACKEND_ENTRYPOINTS[_NAME] = (module, wanted)
        refresh_engines()
    table: Any = writers
    table.to_zarr = _to_zarr if _enabled else stock_to_zarr
    table._datatree_to_zarr = _datatree_to_zarr if _enabled else stock_datatree_to_zarr


class _UnchangedEntrypoint(ZarrowBackendEntrypoint):
    """The engine `"zarr"` while enabled (steps 2 and 3)."""

    _prefers_shards = False
    description = ZarrBackendEntrypoint.description
    open_dataset_parameters = detect_parameters(ZarrBackendEntrypoint.open_dataset)

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether the engine is chosen for a store if none is named: as xarray's own."""
        return ZarrBackendEntrypoint().guess_can_open(filename_or_obj)

    def open_dataset(self, filename_or_obj: Any, **options: Any) -> xarray.Dataset:
        """Open a group as a dataset."""
        # xarray's own engine ignores this option.
        own = {**options, "use_zarr_fill_value_as_mask": None}
        try:
            return super().open_dataset(filename_or_obj, **own)
        except Exception:
            return ZarrBackendEntrypoint().open_dataset(filename_or_obj, **options)

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xarray.DataTree:
        """Open a group and all groups below it as a tree."""
        try:
            return super().open_datatree(filename_or_obj, **options)
        except Exception:
            return ZarrBackendEntrypoint().open_datatree(filename_or_obj, **options)

    def open_groups_as_dict(self, filename_or_obj: Any, **options: Any) -> dict[str, xarray.Dataset]:
        """Open a group and all groups below it as datasets by path."""
        try:
            return super().open_groups_as_dict(filename_or_obj, **options)
        except Exception:
            return ZarrBackendEntrypoint().open_groups_as_dict(filename_or_obj, **options)
