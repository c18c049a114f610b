"""Appends elements to an array by a plan: readers see them when the plan is finished, all at once.

1. Units write chunks behind the end of the array, which the stored metadata do not have yet. A reader finds
   the old shape, and an unfinished plan changes no element of it.
2. If the array ends within a chunk, one unit writes that chunk again, with the old elements.
3. `finish` stores the new shape. It refuses an array with another shape than the planned one, so that the
   array neither shrinks nor gets elements that the plan did not write.
4. Two plans for one array would write the same chunks. So `setup` begins the ledger, and then refuses to
   continue if an unfinished plan appends to the array, or if the array has another shape than the planned
   one. A plan stores its new shape before its ledger says that it is finished: one of the two is found.
5. Writers without a plan store no such claim: the shape is checked again before each unit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from zarrow._zarrow import Array, _ChunkParts, _StoredValues
from zarrow.errors import NotFoundError, StaleHandleError
from zarrow.groups.places import joined, store_of
from zarrow.jobs import blocks
from zarrow.jobs.errors import ConflictError
from zarrow.jobs.units import Grid, Unit
from zarrow.jobs.work import Item, fixed_metadata, write_unit_of
from zarrow.store_objects.icechunk_sessions import session_of


@dataclass(frozen=True)
class Appended(Item):
    """An array that grows along an axis, from the `start` that it had when the plan was made."""

    axis: int
    start: int
    count: int

    def grid(self, memory_nbytes: int) -> Grid:
        """Return the blocks of the new elements, within a process's memory.

        Raises
        ------
        UnsupportedError
            The chunks of the array differ in shape.
        """
        array, shape = self.divided, self._shape(self.start + self.count)
        unit = write_unit_of(array)
        block = blocks.choose(shape, unit, None, blocks.item_nbytes(array), memory_nbytes)
        first = tuple(self.start if axis == self.axis else 0 for axis in range(len(shape)))
        return Grid(shape, block, first)

    def identity(self) -> dict[str, Any]:
        """Return the array as it was when the plan was made, and what is appended."""
        return {"target": self.planned, "axis": self.axis, "count": self.count}

    def notes(self) -> dict[str, Any]:
        """Return the axis, and its extents before and after."""
        return {"axis": self.axis, "start": self.start, "stop": self.start + self.count}

    def claim(self, others: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Refuse to begin while an unfinished plan writes the array (step 4).

        Parameters
        ----------
        others
            Names and attributes of the ledgers of unfinished plans for this array.

        Raises
        ------
        ConflictError
            Another plan is not finished.
        StaleHandleError
            The array has changed since the plan was made.
        """
        for name, attributes in others:
            if "append" not in attributes:
                super().claim([(name, attributes)])
                continue
            array = self.divided
            array.refresh()
            other = f"plan {name} appends to array {array.path!r} in {array.store}, and is not finished"
            match attributes["append"]:
                case {array.path: {"axis": int(axis), "stop": int(stop)}} if array.shape[axis : axis + 1] == (
                    stop,
                ):
                    advice = (
                        "its elements are in the array already, so that its end was interrupted: if nothing "
                        "else shall be appended, call its finish() or delete its ledger; else"
                    )
                case _:
                    advice = "finish it first; or, if none of its jobs runs,"
            raise ConflictError(
                f"{other}: {advice} pass overwrite=True to setup(), which deletes its ledger", node=array
            )
        self._current(allow_longer=False)

    def do(self, function: Callable[..., Any] | None, passes_unit: bool, unit: Unit, target: Any) -> object:
        """Do a unit, if the array has the planned shape still (step 5)."""
        # In a fork of icechunk the array has its new shape, and other writers are conflicts of commits.
        self._current(allow_longer=session_of(store_of(self.divided)) is not None)
        return super().do(function, passes_unit, unit, target)

    def opened(self) -> Array:
        """Return the array with its new shape, which is not stored yet (step 1).

        Raises
        ------
        StaleHandleError
            Its metadata have changed since the plan was made (step 3).
        """
        shape = self._shape(self.start + self.count)
        array = self._current()
        _, document = self._document(array)
        return _ChunkParts(store_of(array), array.path, array.zarr_format, document).array(shape)

    def finish(self, target: Array) -> None:
        """Store the new shape (step 3)."""
        array = self._current()
        if array.shape[self.axis] == self.start:
            # `resize` would erase the new elements, like those of a killed writer.
            _StoredValues(store_of(array), create=False).set(*self._document(array))
            array.refresh()
        # Consolidated metadata of groups above follow a change of attributes.
        array.attrs.update({})

    def _document(self, array: Array) -> tuple[str, bytes]:
        """Return the key of the array's document, and the document with the new shape."""
        name = "zarr.json" if array.zarr_format == 3 else ".zarray"
        key = joined(array.path, name)
        (document,) = _StoredValues(store_of(array), create=False).get_each([key])
        if document is None:
            raise NotFoundError(f"array {array.path!r} in {array.store} does not exist", node=array)
        return key, json.dumps(
            {**json.loads(document), "shape": self._shape(self.start + self.count)}
        ).encode()

    def _current(self, *, allow_longer: bool = True) -> Array:
        """Return the array with its present metadata, if it is the planned one."""
        array = self.divided
        array.refresh()
        shapes = [self._shape(self.start), *([self._shape(self.start + self.count)] if allow_longer else [])]
        if list(array.shape) not in shapes or {**fixed_metadata(array), "shape": shapes[0]} != self.planned:
            raise StaleHandleError(
                f"array {array.path!r} in {array.store} has changed since the plan was made (its shape is "
                f"{array.shape}, and was {tuple(shapes[0])}): make the plan again",
                node=array,
            )
        return array

    @cached_property
    def planned(self) -> dict[str, Any]:
        """The metadata as they were when the plan was made: with the old extent of the axis."""
        shape = list(self.divided.shape)
        shape[self.axis] = self.start
        return {**fixed_metadata(self.divided), "shape": shape}

    def _shape(self, extent: int) -> list[int]:
        shape: list[int] = self.planned["shape"]
        return [extent if axis == self.axis else other for axis, other in enumerate(shape)]
