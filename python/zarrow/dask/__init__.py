"""Arrays of dask on this engine, with the signatures of `dask.array`; and tables for `dask.dataframe`.

>>> import numpy, zarrow, zarrow.dask
>>> zarrow.save("rain.zarr", numpy.ones((4, 6)))
>>> rain = zarrow.dask.from_zarr("rain.zarr", chunks=(2, 6))
>>> zarrow.dask.to_zarr(rain * 2, "twice.zarr")
>>> zarrow.open("twice.zarr")[0, :2].tolist()
[2.0, 2.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from zarrow.dask.reading import from_zarr
from zarrow.dask.writing import store, to_zarr
from zarrow.hints.module_names import getattr_of as _getattr_of

if _TYPE_CHECKING:
    from zarrow.dask.table_reading import read_table
    from zarrow.dask.table_writing import to_table

__all__ = ["from_zarr", "read_table", "store", "to_table", "to_zarr"]

# Dataframes of dask need pandas and pyarrow, which arrays do not.
_TABLES = {"read_table": "table_reading", "to_table": "table_writing"}
_missing = _getattr_of(__name__)


if not _TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> _Any:
        """Import the functions for tables on first access."""
        if name in _TABLES:
            import importlib

            return getattr(importlib.import_module(f"zarrow.dask.{_TABLES[name]}"), name)
        return _missing(name)
