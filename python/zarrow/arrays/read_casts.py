"""The option `dtype` of `Indexer.read`, and of tensors to share with PyTorch.

1. An indexer reads the elements and casts the result, by the rules of `Array.read(dtype=)`.
2. PyTorch takes only its own types: the engine has names and types of NumPy converted to them (`torch_type`).
"""

from __future__ import annotations

from typing import Any

from zarrow._zarrow import Indexer, _import
from zarrow.arrays import casting
from zarrow.arrays.methods import add_method
from zarrow.errors import DataTypeError

_read = Indexer.read


def add_to_class() -> None:
    """Give the class Indexer its method."""
    add_method(Indexer, "read", read)


def read(
    self: Indexer,
    selection: Any = None,
    *,
    out: Any = None,
    dtype: Any = None,
    device: Any = None,
    stream: Any = None,
    decompress: Any = None,
    **unknown: Any,
) -> Any:
    """Read a selection, and cast it (step 1)."""
    options = {"out": out, "device": device, "stream": stream, "decompress": decompress}
    given = {name: value for name, value in options.items() if value is not None}
    if dtype is None or unknown:
        return _read(self, selection, **given, **unknown)
    if given.keys() - {"out"}:
        raise ValueError(
            "dtype= of an indexer casts on the CPU: pass it without device=, stream= and decompress="
        )
    own = self.array.dtype
    if own.names is None:
        casting.read_type(own, dtype)
    values: Any = _read(self, selection).numpy()
    return casting.cast_elements(values, casting.read_type(values.dtype, dtype), out)


def torch_type(dtype: Any) -> Any:
    """Return the dtype of PyTorch for a dtype of NumPy, or its name (step 2).

    Raises
    ------
    DataTypeError
        PyTorch has no such type.
    """
    of_torch = _import("torch")
    if isinstance(dtype, of_torch.dtype):
        return dtype
    wanted = casting.dtype_of(dtype)
    found = None if wanted is None else getattr(of_torch, wanted.name, None)
    if not isinstance(found, of_torch.dtype):
        raise DataTypeError(f"dtype is {dtype!r}, expected a number type that PyTorch has, as torch.float32")
    return found
