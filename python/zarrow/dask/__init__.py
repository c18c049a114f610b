"""Arrays of dask on this engine, with the signatures of `dask.array`.

>>> import numpy, zarrow, zarrow.dask
>>> zarrow.save("rain.zarr", numpy.ones((4, 6)))
>>> rain = zarrow.dask.from_zarr("rain.zarr", chunks=(2, 6))
>>> zarrow.dask.to_zarr(rain * 2, "twice.zarr")
>>> zarrow.open("twice.zarr")[0, :2].tolist()
[2.0, 2.0]
"""

from __future__ import annotations

from zarrow.dask.reading import from_zarr
from zarrow.dask.writing import store, to_zarr

__all__ = ["from_zarr", "store", "to_zarr"]
