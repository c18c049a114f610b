"""How decoded arrays pickle: by their buffers, which protocol 5 carries out of band.

1. An array is reduced to a function of this module and its buffers. Protocol 5 hands each to the pickler's
   `buffer_callback` at its own address; without a callback, and before protocol 5, the bytes go into the
   stream.
2. Loading makes an array over the given buffers. It is read-only over `bytes`, as with NumPy.
3. A tensor with permuted axes is pickled in memory order, with the order of its axes. A tensor with gaps is
   copied.

A mapped tensor is pickled by its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, TypeAlias

from zarrow import _zarrow

if TYPE_CHECKING:
    import numpy as np

    from zarrow import (
        Array,
        DecodedArray,
        DecodeLimits,
        Group,
        MaskedTensor,
        MaskedVariable,
        Tensor,
        Variable,
    )

Reduced: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
PROTOCOL_WITH_BUFFERS = 5


def reduce(array: DecodedArray, protocol: int) -> Reduced:
    """Return how to make an array again."""
    if isinstance(array, _zarrow.Tensor):
        return _reduce_tensor(array, protocol)
    if isinstance(array, _zarrow.Variable):
        return _reduce_variable(array, protocol)
    if isinstance(array, _zarrow.MaskedTensor | _zarrow.MaskedVariable):
        return _reduce_masked(array, protocol)
    raise TypeError(f"cannot pickle {type(array).__name__}")


def copied(array: DecodedArray) -> DecodedArray:
    """Copy writable memory. Strings and masks are read-only, and are shared."""
    if isinstance(array, _zarrow.Tensor):
        return array.copy()
    if isinstance(array, _zarrow.MaskedTensor):
        return load_masked(array.data.copy(), list(_zarrow._mask_levels(array)))
    return array


def _reduce_tensor(tensor: Tensor, protocol: int) -> Reduced:
    """Step 3."""
    order = sorted(range(tensor.ndim), key=lambda axis: -abs(tensor.strides[axis]))
    elements = tensor.transpose(*order).numpy()
    if not elements.flags.c_contiguous:
        order = list(range(tensor.ndim))
        elements = tensor.copy().numpy()
    return load_tensor, (_buffer(elements, protocol), elements.dtype, elements.shape, order)


def _reduce_variable(variable: Variable, protocol: int) -> Reduced:
    buffers = [_buffer(part.numpy(), protocol) for part in (variable.offsets, variable.data)]
    return load_variable, (*buffers, variable.shape, variable.dtype.kind == "T")


def _reduce_masked(array: MaskedTensor | MaskedVariable, protocol: int) -> Reduced:
    levels = [_buffer(level.numpy(), protocol) for level in _zarrow._mask_levels(array)]
    return load_masked, (array.data, levels)


def _buffer(elements: np.ndarray[Any, Any], protocol: int) -> PickleBuffer | bytes | bytearray:
    """Return the memory of contiguous elements in the form of the pickle protocol (step 1)."""
    # As bytes: for some types there is no format.
    # For mypy: an array is a buffer, which its stub says from Python 3.12 on.
    flat: Any = elements.reshape(-1).view("u1")
    if protocol >= PROTOCOL_WITH_BUFFERS:
        return PickleBuffer(flat)
    return bytearray(flat) if flat.flags.writeable else bytes(flat)


def load_tensor(buffer: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: Sequence[int]) -> Tensor:
    """Make a tensor over a buffer, with the axes in this memory order."""
    np = _zarrow._import("numpy")

    # The buffer then knows that it is in use: a bytearray cannot be resized.
    elements = _zarrow.from_numpy(np.frombuffer(buffer, np.uint8).view(dtype).reshape(shape))
    assert isinstance(elements, _zarrow.Tensor)
    return elements.transpose(*sorted(range(len(order)), key=order.__getitem__))


def load_variable(offsets: Any, data: Any, shape: tuple[int, ...], is_text: bool) -> Variable:
    """Make an array of strings or bytes over its buffers."""
    return _zarrow._variable(offsets, data, shape, is_text)


def load_masked(data: Tensor | Variable, levels: list[Any]) -> MaskedTensor | MaskedVariable:
    """Make a masked array over its elements and the buffers of its mask."""
    return _zarrow._masked(data, levels)


def load_node(
    store: Any, path: str, mode: Any, cache_bytes: int, limits: DecodeLimits | None, durability: Any
) -> Array | Group:
    """Open an array or a group anew, as it was opened."""
    node: Array | Group = _zarrow.open(
        store, path, mode=mode, cache_bytes=cache_bytes, limits=limits, durability=durability
    )
    return node
