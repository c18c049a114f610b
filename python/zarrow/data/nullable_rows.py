"""Rows of a nullable column of AnnData: values with a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, read_many
from zarrow.anndata import elements
from zarrow.data.permutation import Numbers
from zarrow.data.rows import Rows
from zarrow.data.sources import Draw, Out


class NullableRows(Rows):
    """One sample for each row of a nullable column; a batch is a masked array.

    Text is an array of objects, with None for a missing element.
    """

    def __init__(self, group: Group) -> None:
        values, self._mask = elements.values_and_mask(group, elements.Batch())
        super().__init__(values)
        self._element_nbytes += 1

    @property
    def has_fixed_size(self) -> bool:
        """False: elements may be missing."""
        return False

    def _arrays(self) -> tuple[Array, ...]:
        return self.array, self._mask

    def _replace_arrays(self, arrays: tuple[Array, ...]) -> None:
        self.array, self._mask = arrays

    def _filled(self, count: int) -> Any:
        values = super()._filled(count)
        return _masked(values, np.ones(values.shape, bool))

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        rows = self._at(places)
        decoded = read_many([(self.array, rows), (self._mask, rows)])
        return _masked(decoded[0].numpy(), decoded[1].numpy())


def _masked(values: Any, mask: Any) -> Any:
    if values.dtype.kind == "T":
        found = values.astype(object)
        found[mask] = None
        return found
    return np.ma.MaskedArray(values, mask)
