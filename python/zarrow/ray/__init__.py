"""Datasets of Ray on this engine: `read_zarr` as `ray.data.read_zarr`, and `write_zarr`.

>>> import numpy, zarrow, zarrow.ray
>>> zarrow.save("rain.zarr", numpy.ones((4, 6)))
>>> rain = zarrow.ray.read_zarr("rain.zarr", chunk_shapes=[2])
>>> rain.count()
2
"""

from __future__ import annotations

from zarrow.ray.reading import ZarrDatasource, metadata, read_zarr
from zarrow.ray.writing import ZarrDatasink, write_zarr

__all__ = ["ZarrDatasink", "ZarrDatasource", "metadata", "read_zarr", "write_zarr"]
