"""Sparse matrices stored as groups: rows of a CSR matrix, or columns of a CSC matrix, without reading all.

1. `indptr` says where each row's elements are; it is read only for the selected rows.
2. Adjacent rows are one run. All runs of `data` and of `indices` are read in one batch, which decodes each
   chunk once.
3. SciPy trusts positions, so they are checked before it gets them.
"""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from zarrow._zarrow import Array, Group, _import, _read_into, read_many
from zarrow.anndata.encoding import encoding_of
from zarrow.errors import IndexingError, MetadataError, NodeTypeError
from zarrow.groups.members import get_arrays

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Rows: TypeAlias = npt.NDArray[np.intp]

FORMATS = {"csr_matrix": 0, "csc_matrix": 1}


def check(group: Group) -> None:
    """Refuse a group that is no sparse matrix."""
    encoding = encoding_of(group)
    if encoding not in FORMATS:
        found = f"encoding-type {encoding!r}" if encoding else "no attribute 'encoding-type'"
        raise NodeTypeError(
            f"{group.name!r} has {found}, expected 'csr_matrix' or 'csc_matrix': type group.tree() to find "
            "one",
            store=group.store,
        )


def read(group: Group, selection: Any = None) -> Any:
    """Read a selection of a sparse matrix (steps 1 to 3)."""
    axis = FORMATS[encoding_of(group)]
    shape, members = parts(group)
    along, across = _normalized(selection, shape)[:: -1 if axis else 1]
    rows, extent = _positions(along, shape[axis])
    is_all = isinstance(across, slice) and across == slice(None)
    # SciPy would truncate floats.
    other = slice(None) if is_all else _positions(across, shape[1 - axis])[0]
    values, indices, pointers = read_rows(group, members, rows)
    new_shape = (extent, shape[1 - axis])[:: -1 if axis else 1]
    matrix = assembled(group, axis, new_shape, values, indices, pointers)
    if is_all:
        return matrix
    return matrix[other, :] if axis else matrix[:, other]


def parts(group: Group) -> tuple[tuple[int, int], tuple[Array, Array, Array]]:
    """Return shape and arrays of a sparse matrix; its metadata are checked."""
    shape: Any = group._attributes().get("shape")
    is_shape = isinstance(shape, list) and len(shape) == 2
    if not is_shape or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise _malformed(group, f"attribute 'shape' is {shape!r}, expected two integers")
    data, indices, indptr = get_arrays(group, "data", "indices", "indptr")
    axis = FORMATS[encoding_of(group)]
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise _malformed(group, "indices and indptr must be integers")
    if indptr.shape != (shape[axis] + 1,) or data.ndim != 1 or indices.shape != data.shape:
        raise _malformed(
            group,
            f"shapes of data {data.shape}, indices {indices.shape} and indptr {indptr.shape} do not fit a "
            f"matrix of shape {tuple(shape)}",
        )
    return (shape[0], shape[1]), (data, indices, indptr)


def assembled(
    group: Group,
    axis: int,
    shape: tuple[int, ...],
    values: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    pointers: npt.NDArray[Any],
) -> Any:
    """Make SciPy's matrix, which shares the memory of its parts (step 3)."""
    if pointers[0] != 0 or pointers[-1] != len(indices) or (pointers[1:] < pointers[:-1]).any():
        raise _malformed(group, "indptr does not rise from 0 to the number of elements")
    if len(indices) and not (indices.min() >= 0 and indices.max() < shape[1 - axis]):
        raise _malformed(group, f"indices are outside of 0 to {shape[1 - axis] - 1}")
    sparse = _import("scipy.sparse")
    make = sparse.csc_matrix if axis else sparse.csr_matrix
    matrix = make((values, indices, pointers), shape=shape, copy=False)
    if indices.dtype == pointers.dtype and indices.dtype.kind == "i" and indices.dtype.itemsize >= 4:
        matrix.indices, matrix.indptr = indices, pointers  # SciPy made them int32 if that suffices
    return matrix


def read_rows(
    group: Group, members: tuple[Array, Array, Array], rows: slice | npt.NDArray[np.intp]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Read the elements of rows: values, positions, and where each row begins (steps 1 and 2)."""
    np = _import("numpy")
    data, indices, indptr = members
    if isinstance(rows, slice):
        stored = indptr[rows.start : rows.stop + 1].numpy().astype("i8")
        first, last = stored[:-1], stored[1:]
        begin, end = rows.start, rows.stop
    else:
        needed = _with_ends(rows)
        stored = indptr.read(needed).numpy().astype("i8")
        at = np.searchsorted(needed, rows)
        first, last = stored[at], stored[at + 1]
        begin, end = int(needed[0]), int(needed[-1])
    is_malformed = (
        (stored[1:] < stored[:-1]).any()
        or stored[0] < 0
        or stored[-1] > data.shape[0]
        or (begin == 0 and stored[0] != 0)
        or (end + 1 == indptr.shape[0] and stored[-1] != data.shape[0])
    )
    if is_malformed:
        raise _malformed(group, "indptr does not rise from 0 to the number of elements")
    pointers = np.zeros(len(first) + 1, "i8")
    np.cumsum(last - first, out=pointers[1:])
    if indptr.dtype == "i4" and pointers[-1] < 2**31:
        pointers = pointers.astype("i4")
    runs = _runs(first, last)
    if not runs:
        return data[:0].numpy(), indices[:0].numpy(), pointers
    if len(runs) == 1:
        values, positions = (
            each.numpy() for each in read_many([(array, runs[0]) for array in (data, indices)])
        )
        return values, positions, pointers
    values, positions = (np.empty(pointers[-1], array.dtype) for array in (data, indices))
    edges = np.cumsum([0, *(run.stop - run.start for run in runs)]).tolist()
    parts = [slice(start, stop) for start, stop in pairwise(edges)]
    _read_into(
        [(array, run) for array in (data, indices) for run in runs],
        [memory[part] for memory in (values, positions) for part in parts],
    )
    return values, positions, pointers


def _with_ends(rows: _Rows) -> _Rows:
    """Return rows and the row behind each, sorted, without repetitions."""
    np = _import("numpy")
    # Sorting is faster than `np.union1d`, since neighbours are mostly in order.
    both = np.sort(np.concatenate((rows, rows + 1)), kind="stable")
    is_new = np.concatenate(([True], both[1:] != both[:-1]))
    found: _Rows = both[is_new] if len(both) else np.zeros(1, np.intp)
    return found


def _runs(first: npt.NDArray[Any], last: npt.NDArray[Any]) -> list[slice]:
    """Return the runs of elements of rows; empty rows give no run, and adjacent rows share one."""
    np = _import("numpy")
    filled = last > first
    first, last = first[filled], last[filled]
    if not len(first):
        return []
    begins = np.flatnonzero(np.concatenate(([True], first[1:] != last[:-1])))
    ends = np.concatenate((begins[1:], [len(first)])) - 1
    return [
        slice(start, stop) for start, stop in zip(first[begins].tolist(), last[ends].tolist(), strict=True)
    ]


def _normalized(selection: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return the index of each axis."""
    if selection is None or selection is Ellipsis:
        return slice(None), slice(None)
    if not isinstance(selection, tuple):
        return selection, slice(None)
    given = [item for item in selection if item is not Ellipsis]
    if len(given) > 2:
        raise IndexingError(f"{len(given)} indices for a sparse matrix of shape {shape}, expected at most 2")
    if len(given) < 2 and len(selection) > len(given) and selection[0] is Ellipsis:
        return (slice(None), *given) if given else (slice(None), slice(None))
    return (*given, slice(None), slice(None))[:2]


def _positions(index: Any, extent: int) -> tuple[slice | npt.NDArray[np.intp], int]:
    """Return rows as a range or as positions, and their number; an integer keeps its axis."""
    np = _import("numpy")
    if isinstance(index, slice):
        start, stop, step = index.indices(extent)
        if step == 1:
            stop = max(start, stop)
            return slice(start, stop), stop - start
        rows = np.arange(start, stop, step)
        return rows, len(rows)
    rows = np.atleast_1d(np.asarray(_as_list(index)))
    if rows.dtype == bool:
        if rows.shape != (extent,):
            raise IndexingError(f"mask has shape {rows.shape}, expected ({extent},)")
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise IndexingError(
            f"index is {index!r}, expected an integer, a slice, a list of positions or a mask"
        )
    rows = rows.astype(np.intp)
    rows = np.where(rows < 0, rows + extent, rows)
    outside = (rows < 0) | (rows >= extent)
    if outside.any():
        position = np.asarray(_as_list(index)).reshape(-1)[outside][0]
        raise IndexingError(f"index {position} is outside of an axis of length {extent}")
    return rows, len(rows)


def _as_list(index: Any) -> Any:
    """Return an integer as a list of one, so that its axis stays."""
    if isinstance(index, bool):
        raise IndexingError(f"index is {index}, expected an integer")
    try:
        return [operator.index(index)]
    except TypeError:
        return index


def _malformed(group: Group, text: str) -> MetadataError:
    return MetadataError(f"{group.name!r}: {text}", node=group)
