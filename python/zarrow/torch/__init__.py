"""Batches for PyTorch: `DataLoader` of a plan, and data sets for PyTorch's own loaders.

The plan, its samples and its splits are those of `zarrow.data`. This needs PyTorch, and loads it.

>>> import zarrow.torch
>>> crops = zarrow.torch.Crops("data.zarr/temperature", (24, 4, 4), 100)
>>> for batch in zarrow.torch.DataLoader(crops, batch_size=50):
...     print(batch.shape)
torch.Size([50, 24, 4, 4])
torch.Size([50, 24, 4, 4])

Loaders
    DataLoader                     tensors, read ahead by threads of this process
    Dataset, collate               random access, for samplers of PyTorch
    IterableDataset                for PyTorch's DataLoader, with and without workers
Batches
    Masked                         values and mask of elements that may be missing
    tensordict                     a batch as a TensorDict, for `transform=`
Of zarrow.data
    Plan, Rows, Windows, Crops     samples and their order
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.data import Crops, Plan, Rows, Windows
from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.torch.datasets import Dataset, IterableDataset, collate
from zarrow.torch.loader import DataLoader
from zarrow.torch.tensordicts import tensordict
from zarrow.torch.tensors import Masked

__all__ = [
    "Crops",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "Masked",
    "Plan",
    "Rows",
    "Windows",
    "collate",
    "tensordict",
]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
