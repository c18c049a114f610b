"""Rows of a sparse matrix, as AnnData stores it, for batches of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, _import
from zarrow.anndata import sparse
from zarrow.anndata.encoding import encoding_of
from zarrow.data.permutation import Numbers
from zarrow.data.sources import Draw, Out, SizeOf, Source, chunks_of
from zarrow.errors import UnsupportedError

# SciPy makes smaller indices larger.
_INDEX_NBYTES = 4


class SparseRows(Source):
    """One sample for each row of a CSR matrix; a batch is a `scipy.sparse.csr_matrix`.

    The engine reads the elements of all rows of a read at once. Sizes are estimated for rows of average
    length, since only the matrix has them.
    """

    def __init__(self, group: Group) -> None:
        if sparse.FORMATS[encoding_of(group)]:
            raise UnsupportedError(
                f"{group.name!r} is a sparse matrix stored by columns, and a row would need all columns: "
                "store it by rows, zarrow.save(path, anndata.AnnData(group.to_scipy().tocsr()))",
                node=group,
            )
        # Imported here, since the import takes longer than the first batch.
        _import("scipy.sparse")
        (self.count, columns), self._members = sparse.parts(group)
        self._group, self.sample_shape = group, (columns,)
        self._mean = self._members[0].shape[0] / max(self.count, 1)

    @property
    def sample_nbytes(self) -> int:
        """Bytes of a row of average length."""
        data, indices, indptr = (array.dtype.itemsize for array in self._members)
        return round(self._mean * (data + max(indices, _INDEX_NBYTES))) + indptr

    @property
    def has_fixed_size(self) -> bool:
        """False: rows differ in size."""
        return False

    @property
    def _nbytes(self) -> int:
        return sum(array.nbytes or 0 for array in self._members)

    def _arrays(self) -> tuple[Array, ...]:
        return self._members

    def _replace_arrays(self, arrays: tuple[Array, ...]) -> None:
        data, indices, indptr = arrays
        self._members = data, indices, indptr

    def _filled(self, count: int) -> Any:
        shape = (count, *self.sample_shape)
        return _import("scipy.sparse").csr_matrix(shape, dtype=self._members[0].dtype)

    def _summary(self) -> str:
        data, shape = self._members[0], (self.count, *self.sample_shape)
        return (
            f"{type(self).__name__} {self.sample_shape} of {data.dtype} {shape}, "
            f"{data.shape[0]} elements in chunks {data.chunks}, shards {data.shards}"
        )

    def _definition(self) -> tuple[object, ...]:
        return "sparse rows", self._members[0].shape[0]

    def _blocks(self) -> tuple[int, int]:
        return max(1, int(chunks_of(self._members[0])[0] / max(self._mean, 1))), 0

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        # Sorted rows without repetitions are few runs, and need each chunk once.
        rows, order = np.unique(places, return_inverse=True)
        parts = sparse.read_rows(self._group, self._members, rows)
        matrix = sparse.assembled(self._group, 0, (len(rows), *self.sample_shape), *parts)
        return matrix if np.array_equal(rows, places) else matrix[order]

    def _touched(self, places: Numbers, draw: Draw, size_of: SizeOf) -> list[int]:
        counts = []
        for array, mean in zip(self._members, (self._mean, self._mean, 1.0), strict=True):
            size = size_of(array)[0]
            first, last = (places * mean // size), ((places + 1) * mean // size)
            counts.append(len(np.union1d(first, np.minimum(last, max(array.shape[0] - 1, 0) // size))))
        return counts
