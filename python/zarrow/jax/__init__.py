"""Batches for JAX: `DataLoader` of a plan, and sharded arrays that each host reads at once.

Plans, samples and splits work as in `zarrow.data`. Importing this module imports JAX.

>>> import zarrow
>>> import zarrow.jax
>>> temperature = zarrow.open("data.zarr")["temperature"]
>>> for batch in zarrow.jax.DataLoader(zarrow.jax.Plan(temperature, batch_size=24)):
...     print(batch.shape)
(24, 6, 8)
(24, 6, 8)

Loaders
    DataLoader                     arrays of JAX, read ahead by threads of this process
    RandomAccess                   samples by number, for grain
Arrays
    make_array                     an array of JAX with a sharding
Of zarrow.data
    Plan, Rows, Windows, Crops     samples and their order
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.data import Crops, Plan, RandomAccess, Rows, Windows
from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.jax.loader import DataLoader
from zarrow.jax.sharded import make_array

__all__ = ["Crops", "DataLoader", "Plan", "RandomAccess", "Rows", "Windows", "make_array"]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
