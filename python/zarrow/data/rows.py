"""Samples that are indices along an axis."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from zarrow._zarrow import Array
from zarrow.data.element_sizes import numpy_form
from zarrow.data.permutation import Numbers
from zarrow.data.sources import Draw, Location, Out, SizeOf, Source, checked_axis, opened_array
from zarrow.hints.parameters import says_parameters


@says_parameters
class Rows(Source):
    """One sample for each index along an axis, without that axis.

    Parameters
    ----------
    array
        The array, or its path.
    axis
        The axis of samples.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import data
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> data.Rows(temperature).count, data.Rows(temperature, axis=1).sample_shape
    (48, (48, 8))
    """

    def __init__(self, array: Array | Location, axis: int = 0) -> None:
        array = opened_array(array)
        super().__init__(array)
        self.axis = checked_axis(array, axis)
        self.count = array.shape[self.axis]
        self.sample_shape = array.shape[: self.axis] + array.shape[self.axis + 1 :]
        self._order: Numbers | None = None

    def _definition(self) -> tuple[object, ...]:
        return "rows", self.axis

    def _with_order(self, order: Numbers | None) -> Self:
        """Return the same samples with the places of another source: `order` has the row at each place."""
        made = copy.copy(self)
        made._order = order
        return made

    @property
    def _numbers(self) -> Numbers | None:
        return self._order

    def _at(self, places: Numbers) -> Numbers:
        return places if self._order is None else self._order[places]

    def _blocks(self) -> tuple[int, int]:
        return self._chunks()[self.axis], 0

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        selection = (*(slice(None),) * self.axis, self._at(places))
        if out is not None:
            return self.array.read(selection, out=np.moveaxis(out, 0, self.axis))
        return np.moveaxis(numpy_form(self.array.read(selection)), self.axis, 0)

    def _touched(self, places: Numbers, draw: Draw, size_of: SizeOf) -> list[int]:
        return self._touched_along(self.axis, self._at(places), size_of)
