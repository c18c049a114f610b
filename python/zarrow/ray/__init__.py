"""Datasets of Ray on this engine: `read_zarr` as `ray.data.read_zarr`, and `write_zarr`.

Ray is imported when one of these names is first used.

>>> import numpy, zarrow, zarrow.ray
>>> zarrow.save("rain.zarr", numpy.ones((4, 6)))
>>> rain = zarrow.ray.read_zarr("rain.zarr", chunk_shapes=[2])
>>> rain.count()
2
"""

from __future__ import annotations

import typing as _typing

from zarrow.hints.module_names import getattr_of as _getattr_of

if _typing.TYPE_CHECKING:
    from zarrow.ray.reading import ZarrDatasource, metadata, read_zarr
    from zarrow.ray.writing import ZarrDatasink, write_zarr

__all__ = ["ZarrDatasink", "ZarrDatasource", "metadata", "read_zarr", "write_zarr"]


if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> _typing.Any:
        """Import Ray on first access."""
        if name not in __all__:
            return _getattr_of(__name__)(name)
        from zarrow.ray import reading, writing

        return getattr(writing if name in ("ZarrDatasink", "write_zarr") else reading, name)
