"""The option `dtype` of `Indexer.read` and `Tensor.torch`.

1. An indexer reads the elements and casts the result, by the rules of `Array.read(dtype=)`.
2. PyTorch takes only its own types: names and types of NumPy are converted to them.
"""

from __future__ import annotations

from typing import Any

from zarrow._zarrow import Indexer, Tensor, _import
from zarrow.arrays import casting
from zarrow.arrays.methods import add_method
from zarrow.errors import DataTypeError

_read = Indexer.read
_torch = Tensor.torch


def add_to_classes() -> None:
    """Give the classes Indexer and Tensor these methods."""
    add_method(Indexer, "read", read)
    add_method(Tensor, "torch", torch)
    Tensor.to_torch = Tensor.torch


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


def torch(self: Tensor, *, device: Any = None, dtype: Any = None) -> Any:
    """Return a torch.Tensor of the same memory, or of another type (step 2)."""
    return _torch(self, device=device, dtype=None if dtype is None else _torch_type(dtype))


def _torch_type(dtype: Any) -> Any:
    """Return the dtype of PyTorch for a dtype of NumPy, or its name.

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
