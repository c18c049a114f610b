"""Files of other formats: exports arrays and tables, and imports them, part by part.

| Format | File | Node |
|---|---|---|
| "npy" | `.npy` | an array |
| "raw" | `.bin`, `.raw` | an array: elements without a header, in C order |
| "safetensors" | `.safetensors` | an array, or all arrays below a group |
| "parquet", "arrow" | `.parquet`, `.arrow`, `.feather` | a table: a group of arrays of the same length |

>>> import numpy as np, zarrow
>>> zarrow.save("rain.zarr", np.arange(6.0).reshape(2, 3))
>>> zarrow.files.export_file("rain.zarr", "rain.npy")
>>> np.load("rain.npy")[1].tolist()
[3.0, 4.0, 5.0]
>>> zarrow.files.import_file("rain.npy", "copy.zarr", chunks=(1, 3)).chunks
(1, 3)
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.files.exporting import export_file
from zarrow.files.importing import import_file
from zarrow.hints.module_names import getattr_of as _getattr_of

__all__ = ["export_file", "import_file"]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
