"""Copies an array, or a selection of it: a slice with a positive step for each axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from zarrow._zarrow import Array
from zarrow.jobs import blocks
from zarrow.jobs.rechunking_cost import Cost, Rechunking
from zarrow.jobs.units import Unit
from zarrow.jobs.work import Item, read_unit_of, write_unit_of

Selection: TypeAlias = slice | Sequence[slice] | Mapping[str, slice]
"""Slices of the first axes, or of dimensions by name."""


@dataclass(frozen=True)
class Copied(Item):
    """An array that gets the elements of its source, or a selection of them.

    Attributes
    ----------
    starts, steps : tuple of int
        For each axis, the first element of the source, and the distance to the next one; nothing for all.
    """

    starts: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def item_nbytes(self) -> int:
        """The bytes of an element in memory: once, unless the type changes."""
        read, written = (blocks.item_nbytes(each) for each in (self.sources[0], self.divided))
        return read if self.sources[0].data_type == self.divided.data_type else read + written

    @property
    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """Where the elements of the target are in the source."""
        return self.starts, self.steps

    def rechunking(self, memory_nbytes: int) -> Rechunking | None:
        """Return the shapes of the copy; `None` for source chunks of different shapes."""
        array, chunk = self.divided, read_unit_of(self.sources[0])
        if chunk is None:
            return None
        unit = write_unit_of(array)
        place = (self.starts, self.steps)
        return Rechunking(array.shape, unit, chunk, self.item_nbytes, memory_nbytes, *place)

    def costs(self, memory_nbytes: int) -> Mapping[str, Cost]:
        """Return the costs of one pass and of two passes."""
        found = self.rechunking(memory_nbytes)
        if found is None:
            return {}
        two = found.two_passes()
        return {"one_pass": found.one_pass()} | ({} if two is None else {"two_passes": two.cost})

    def shard_nbytes(self, memory_nbytes: int) -> int:
        """Return the bytes of a shard between two passes."""
        found = self.rechunking(memory_nbytes)
        two = None if found is None else found.two_passes()
        return 0 if two is None else two.nbytes

    def identity(self) -> dict[str, Any]:
        """Return the arrays, the metadata that must stay, and the selection."""
        selection = {"starts": list(self.starts), "steps": list(self.steps)} if self.starts else {}
        return super().identity() | selection

    def do(self, function: Callable[..., Any] | None, passes_unit: bool, unit: Unit, target: Any) -> object:
        """Copy a unit."""
        region = unit.region
        if self.starts:
            region = tuple(
                slice(start + part.start * step, start + (part.stop - 1) * step + 1, step)
                for part, start, step in zip(region, self.starts, self.steps, strict=True)
            )
        target[unit.region] = self.sources[0].read(region)
        return None


def slices_of(array: Array, selection: Selection) -> tuple[slice, ...]:
    """Return a slice for each axis of an array, with a start, a stop that is not below it, and a step.

    Raises
    ------
    TypeError
        The selection has anything but slices.
    ValueError
        A step is not positive, or there are more slices than axes.
    """
    if isinstance(selection, Mapping):
        names = array.dimension_names or (None,) * array.ndim
        given = [selection.get(name, slice(None)) if name else slice(None) for name in names]
    else:
        given = [selection] if isinstance(selection, slice) else list(selection)
        if len(given) > array.ndim:
            raise ValueError(f"the selection has {len(given)} axes, but the array has {array.ndim}")
        given += [slice(None)] * (array.ndim - len(given))
    found = []
    for part, extent in zip(given, array.shape, strict=True):
        if not isinstance(part, slice):
            raise TypeError(f"a selection to copy has slices such as slice(0, 10), got {part!r}")
        start, stop, step = part.indices(extent)
        if step < 1:
            raise ValueError(f"the step of a selection to copy is at least 1, got {part!r}")
        found.append(slice(start, max(start, stop), step))
    return tuple(found)
