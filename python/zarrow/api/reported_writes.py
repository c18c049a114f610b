"""`progress=` of `Array.write` and `Array.append`: a large block is written in whole chunks or shards.

1. Only a NumPy array with the shape of the block is divided, or an array of a store or of h5py. Other values
   are written at once. Appended numbers are always divided, and become visible together.
2. A part that is refused, such as an integer that does not fit, leaves the parts before it written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Never

from zarrow._zarrow import Array
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount, size_of
from zarrow.api.reported_reads import READ_NBYTES, divided, parts_of_block, shape_of
from zarrow.arrays.methods import add_method
from zarrow.interchange.lazy_arrays import is_divided, is_read_in_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zarrow.arrays._array import _Index


def add_to_class() -> None:
    """Give the class Array this method."""
    add_method(Array, "write", write)


def write(
    self: Array,
    selection: _Index,
    value: Any,
    *,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
    durability: Literal["none", "file", "full"] | None = None,
    write_empty_chunks: bool = False,
    progress: Progress | bool | None = None,
    **unknown: Never,
) -> None:
    """Write values to a selection.

    Chunks are encoded on all cores, straight from the values' memory. At most one chunk per thread is
    copied at a time; integers and floats of another type are cast in that copy. Every reader sees each
    chunk entirely old or entirely new, even if this process is killed. If the selection covers part of a
    chunk (or of a shard), the rest is read and kept. A lock serializes writers of parts of one chunk,
    across all threads and processes that use zarrow; it ends with its process. A chunk that extends past
    the array's edge, as this Array knows it, is also read and locked, so that elements which others have
    appended stay. If such a chunk does not decode, a write of its whole part inside the array replaces
    it.

    Parameters
    ----------
    selection
        Integers, slices, `...`, lists, masks and a field, as for `__getitem__`. If a position is
        repeated, its last value stays, as in NumPy. If a field is written, the other fields stay, so that
        its chunks count as partly covered.
    value
        Anything that `zarrow.asarray` takes: arrays of any library, also on a GPU, scalars, sequences,
        text. Values are broadcast to the shape of the selection by NumPy's rules. Other types are cast as
        `casting` says; a Python number or a NumPy scalar is accepted if the stored type can represent it
        (floats are rounded). Text too long for the type is refused. Missing elements (masked, None) need
        an optional type, or an attribute `_FillValue`, which is stored instead. Do not write to the
        values' memory during the call.
    casting
        Which casts are allowed, as in NumPy. "same_kind", the default, casts floats to floats of any
        size, and integers to floats and integers. Integers must fit; a float that becomes infinite is
        reported according to `numpy.errstate(over=...)`, by default as a RuntimeWarning. "unsafe" also
        casts floats to integers, and keeps the low bits of values that do not fit.
    durability
        How much is on the disk when the call returns. "none": no guarantee, as in other Zarr libraries.
        A killed process loses nothing, but a power failure may lose the last writes. "file": the bytes of
        each chunk, so that it is entirely old or new after a power failure. "full": also the file names,
        so that it is new. The default is that of `open`.
    write_empty_chunks
        Store chunks that contain only the fill value, compared bit by bit. By default such chunks are left
        out, and erased if they exist. In arrays of version 2 with a null fill value they are always stored,
        because readers disagree about missing chunks.
    progress
        Called with the bytes that are written and all bytes, or True for a bar. A large block of numbers is
        written part by part, if its values are an array of NumPy, h5py or a store: after an error, some
        parts are written.

    Raises
    ------
    IndexingError
        The selection lies outside the array (an `IndexError`).
    ShapeError
        The values do not fit the selection (a `ValueError`).
    DataTypeError
        `casting` forbids the cast, or elements are missing (a `TypeError`).
    OverflowError
        An integer does not fit the stored type. Nothing is written.
    FloatingPointError
        A float would become infinite, and `numpy.errstate(over="raise")` is set. Nothing is written.
    CodecError, UnsupportedError
        A codec cannot encode with its configuration, or a partly covered chunk does not decode; several
        fields were selected (write them one by one), or a field of elements that may be missing.
    NotFoundError, StaleHandleError
        The array was erased, replaced by one with other chunks, or made smaller than the selection since
        it was opened. If that happened before the call, nothing is written.
    ReadOnlyError, StoreError
        The store cannot be written (an `OSError`): `kind` is "read_only", "permission", "no_space" or
        "write". Some chunks may already be new; the others are old.
    KeyboardInterrupt
        Ctrl-C stops a long write between chunks.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> before = temperature[24:26]
    >>> temperature[24:26] = np.zeros((6, 8), np.float32)
    >>> temperature.write(np.s_[24:26], before, durability="full")
    >>> temperature.write_unit
    (24, 6, 8)
    """
    if unknown:
        from zarrow.hints.unknown_keywords import refuse_keywords

        refuse_keywords("Array.write", unknown)
    if progress is None:
        self._write(selection, value, casting, durability, write_empty_chunks)
        return
    with reporting(progress, "write") as report:
        parts = None if report is None else parts_of_value(self, selection, value)
        amount = Amount(report, size_of(value))
        amount.begin(size_of(value))
        if parts is None:
            self._write(selection, value, casting, durability, write_empty_chunks)
        else:
            for target, source in parts:
                self._write(target, value[source], casting, durability, write_empty_chunks)
                amount.add(value.dtype.itemsize * math.prod(part.stop - part.start for part in source))
        amount.finish_all()


def append(array: Array, value: Any, axis: int, progress: Progress | bool) -> tuple[int, ...]:
    """Append elements for `Array.append`."""
    with reporting(progress, "append") as report:
        if report is None:
            return array._append(value, axis, None)
        total = size_of(value)
        report(0, total)

        def report_part(done: int, count: int) -> None:
            report(total * done // count, total)

        shape = array._append(value, axis, (READ_NBYTES, report_part))
        report(total, total)
        return shape


def parts_of_value(
    array: Any, selection: _Index, value: Any
) -> Iterator[tuple[tuple[slice | int, ...], tuple[slice, ...]]] | None:
    """Return the parts' places in the array and in the value; None if it is written at once (step 1)."""
    if not isinstance(array, Array) or not (is_divided(value) or is_read_in_parts(value)):
        return None
    block, unit = divided(array, selection), array.write_unit
    if block is None or unit is None or value.shape != shape_of(block):
        return None
    return parts_of_block(block, unit, array.dtype.itemsize)
