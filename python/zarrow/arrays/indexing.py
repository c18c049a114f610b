"""Parts of decoded arrays, by all indices of NumPy: lists, masks and other arrays of integers among them.

A Tensor handles basic indices itself, as views. This module handles the rest, and the layouts unknown to
NumPy: elements of variable length, and elements that may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zarrow import _zarrow
from zarrow.arrays.numpy_form import numpy_form
from zarrow.errors import IndexingError

if TYPE_CHECKING:
    import numpy

    from zarrow import DecodedArray, MaskedTensor, MaskedVariable, Tensor, Variable


def numpy_index(index: Any) -> Any:
    """Replace decoded arrays in an index by their NumPy forms."""
    if isinstance(index, tuple):
        return tuple(numpy_form(item) for item in index)
    return numpy_form(index)


def part(array: DecodedArray, index: Any) -> Any:
    """Take a part of an array by any index of NumPy: a layout of the same kind, or one string.

    Values of a masked array are shared where NumPy shares them, masks and the bytes of strings where the part
    is a run of elements. An index with arrays copies.
    """
    index = numpy_index(index)
    try:
        if isinstance(array, _zarrow.Tensor):
            return _zarrow.asarray(array.numpy()[index])
        if isinstance(array, _zarrow.MaskedTensor):
            return _masked_part(array, array.data[index], index)
        positions = _positions(array, index)
        if isinstance(array, _zarrow.MaskedVariable):
            return _masked_strings(array, positions, index)
        return _strings(array, positions)  # type: ignore[arg-type]  # of the four layouts this one is left
    except IndexError as error:
        text = str(error)
        if isinstance(index, str):
            text += f": for the elements of another array, type group[{index!r}][...]"
        raise IndexingError(text) from None


def _positions(array: DecodedArray, index: Any) -> numpy.ndarray[Any, Any]:
    """Return the positions of the index's elements, as numbers in C order."""
    np = _zarrow._import("numpy")

    positions: numpy.ndarray[Any, Any] = np.asarray(np.arange(array.size).reshape(array.shape)[index])
    return positions


def _strings(array: Variable, positions: numpy.ndarray[Any, Any]) -> Any:
    """Take these elements: one by itself, a run over the same memory, others copied."""
    np = _zarrow._import("numpy")

    if positions.ndim == 0:
        return array[tuple(map(int, np.unravel_index(int(positions), array.shape)))]
    is_text = array.dtype.kind == "T"
    offsets, chosen = array.offsets.numpy(), positions.reshape(-1)
    if chosen.size and (np.diff(chosen) == 1).all():
        run = offsets[chosen[0] : chosen[-1] + 2]
        return _zarrow._variable(run - run[0], array.data[run[0] : run[-1]], positions.shape, is_text)
    starts, lengths = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    # Byte by byte: where the element begins in the old memory, and how far the byte lies into it.
    within = np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)
    data = array.data.numpy()[np.repeat(starts, lengths) + within]
    return _zarrow._variable(ends, data, positions.shape, is_text)


def _masked_strings(array: MaskedVariable, positions: numpy.ndarray[Any, Any], index: Any) -> Any:
    if positions.ndim == 0:
        return None if array.mask.numpy()[index] else _strings(array.data, positions)
    return _masked_part(array, _strings(array.data, positions), index)


def _masked_part(array: MaskedTensor | MaskedVariable, data: Tensor | Variable, index: Any) -> Any:
    """Give a part of the elements the same part of each level of the mask."""
    np = _zarrow._import("numpy")

    levels = (level.numpy().reshape(array.shape)[index] for level in _zarrow._mask_levels(array))
    return _zarrow._masked(data, [np.ascontiguousarray(level).reshape(-1) for level in levels])
