"""What a plan does with each unit: it reads the sources, calls the function, and writes the target.

1. An item of work is an array that is divided into units: one that the plan creates, one that exists, or one
   that is only read.
2. An array that the plan creates is first created in memory: this checks all options, and gives the metadata
   and the write unit.
3. Arrays of the store must keep their metadata, except attributes, while the plan runs. The fingerprint of a
   plan covers them.
4. Two plans for one existing array would overwrite each other's units. So `setup` begins the ledger, and then
   refuses to continue beside the ledger of an unfinished plan for this array: of two plans that begin at the
   same time, at least one finds the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, MemoryStore
from zarrow.api.filled_arrays import full_like, zero_of
from zarrow.api.opening import open_array
from zarrow.errors import NodeExistsError, ShapeError, StaleHandleError, UnsupportedError
from zarrow.jobs import blocks
from zarrow.jobs.errors import ConflictError
from zarrow.jobs.rechunking_cost import Cost
from zarrow.jobs.units import Grid, Unit
from zarrow.store_objects.icechunk_sessions import session_of


@dataclass(frozen=True)
class New:
    """An array that a plan creates like another one (step 2)."""

    like: Array
    store: Any
    path: str
    options: Mapping[str, Any]

    @cached_property
    def sample(self) -> Array:
        """The array, without elements, in memory."""
        return self._create(MemoryStore(), "")

    def create(self, *, overwrite: bool = False) -> Array:
        """Create the array, or return an existing one with the same metadata.

        Raises
        ------
        NodeExistsError
            There is another node.
        """
        try:
            return self._create(self.store, self.path, overwrite=overwrite)
        except NodeExistsError:
            existing = self.open()
            if fixed_metadata(existing) != fixed_metadata(self.sample):
                raise
            return existing

    def open(self) -> Array:
        """Open the array, to write it."""
        return open_array(self.store, mode="r+", path=self.path)

    def opened(self) -> Array:
        """Open the array, to write it, if it is what the plan created.

        Raises
        ------
        StaleHandleError
            Its metadata have changed since the plan was made.
        """
        return unchanged(self.open(), fixed_metadata(self.sample))

    def documents_in_memory(self) -> dict[str, bytes]:
        """Return the documents of the sample by their names."""
        store = MemoryStore()
        self._create(store, "")
        return store.to_dict()

    @cached_property
    def fill_value(self) -> Any:
        """The value of missing chunks: that of the source, or zero if another type does not have it."""
        own, dtype = self.like.fill_value, self.options.get("dtype")
        if dtype is not None:
            try:
                full_like(self.like, own, dtype=dtype, store=MemoryStore())
            except (ValueError, TypeError):
                return zero_of(dtype)
        return own

    def _create(self, store: Any, path: str, **more: Any) -> Array:
        options = {"fill_value": self.fill_value, **self.options, **more}
        return full_like(self.like, options.pop("fill_value"), store=store, path=path, **options)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("sample", "fill_value")}


@dataclass(frozen=True)
class Item:
    """An array that is divided into units (step 1), and the arrays of the same shape that are read for it."""

    sources: tuple[Array, ...]
    target: New | Array | None

    @property
    def created(self) -> tuple[New, ...]:
        """The arrays that the plan creates."""
        return (self.target,) if isinstance(self.target, New) else ()

    @property
    def read_arrays(self) -> tuple[Array, ...]:
        """The arrays that units read."""
        return self.sources

    @property
    def divided(self) -> Array:
        """The array that is divided: by its shape and its write unit."""
        match self.target:
            case New():
                return self.target.sample
            case None:
                return self.sources[0]
            case target:
                return target

    def grid(self, memory_nbytes: int) -> Grid:
        """Return the blocks: whole write units of the target, within a process's memory.

        Raises
        ------
        UnsupportedError
            The chunks of the array differ in shape.
        """
        array = self.divided
        unit = write_unit_of(array)
        arrays = self.read_arrays
        read = read_unit_of(arrays[0]) if arrays else None
        block = blocks.choose(array.shape, unit, read, self.item_nbytes, memory_nbytes, *self.places)
        return Grid(array.shape, block)

    @property
    def item_nbytes(self) -> int:
        """The bytes of an element in memory: of the sources and of the result together."""
        return sum(blocks.item_nbytes(each) for each in [*self.sources, self.divided])

    @property
    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """Where the elements of the target are in the source: starts and steps along all axes, or nothing."""
        return (), ()

    def unit_nbytes(self, grid: Grid) -> int:
        """Return how many bytes of elements a unit holds in memory."""
        return math.prod(grid.block) * self.item_nbytes

    def reads_of_each_byte(self, grid: Grid) -> list[float]:
        """Return how often each stored byte of the sources is read on average."""
        return [
            blocks.reads_of_each_byte(grid.shape, grid.block, read_unit_of(source), *self.places)
            for source in self.read_arrays
        ]

    def costs(self, memory_nbytes: int) -> Mapping[str, Cost]:
        """Return the costs of one pass and of two passes; nothing if there is no choice."""
        return {}

    def shard_nbytes(self, memory_nbytes: int) -> int:
        """Return the bytes of a shard between two passes; 0 if there is no choice."""
        return 0

    def identity(self) -> dict[str, Any]:
        """Return the arrays and the metadata that must stay (step 3)."""
        found: dict[str, Any] = {"sources": [identity_of(source) for source in self.sources]}
        if self.target is not None:
            found["target"] = self.planned
        return found

    def opened(self) -> Any:
        """Open the target, to write it: what `do` and `finish` get.

        Raises
        ------
        StaleHandleError
            Its metadata have changed since the plan was made.
        """
        match self.target:
            case None:
                return None
            case New():
                return self.target.opened()
            case existing:
                planned = self.planned
                existing.refresh()
                return unchanged(existing, planned)

    @cached_property
    def planned(self) -> dict[str, Any]:
        """The metadata of the divided array when the plan was made: a refused change stays refused."""
        return fixed_metadata(self.divided)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "planned"}

    def notes(self) -> dict[str, Any]:
        """Return a note in the ledger for other plans of the array."""
        return {}

    @property
    def existing(self) -> Array | None:
        """The array that the plan writes but does not create."""
        return self.target if isinstance(self.target, Array) else None

    def claim(self, others: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Refuse to begin while an unfinished plan writes the same existing array (step 4).

        Parameters
        ----------
        others
            Names and attributes of the ledgers of unfinished plans for this target.

        Raises
        ------
        ConflictError
            Another plan is not finished.
        """
        if self.existing is None:
            return
        for name, attributes in others:
            kind = attributes["plan"].get("kind")
            if kind == "collect":
                continue
            raise ConflictError(
                f"plan {name} ({kind}) writes array {self.existing.path!r} in {self.existing.store}, and is "
                "not finished: finish it first; or, if none of its jobs runs, pass overwrite=True to "
                "setup(), which deletes its ledger",
                node=self.existing,
            )

    def before_erasing(self) -> None:
        """Prepare the store before existing arrays are erased."""

    def finish(self, target: Any) -> None:
        """End the work after all units."""

    def do(self, function: Callable[..., Any] | None, passes_unit: bool, unit: Unit, target: Any) -> object:
        """Do a unit, and return what the function returns if nothing is written."""
        values = [source.read(unit.region) for source in self.sources]
        result = values[0] if function is None else _called(function, values, unit if passes_unit else None)
        if target is None:
            return result
        if function is not None:
            _check_shape(result, unit, target)
        target[unit.region] = result
        return None


def read_unit_of(array: Array) -> tuple[int, ...] | None:
    """Return the smallest block of an array that is read by itself: a chunk, in a shard the inner one."""
    return array.chunks or array.write_unit


def unchanged(target: Array, planned: Mapping[str, Any], work: str = "plan") -> Array:
    """Return an array that has the metadata that it had when the work was planned.

    Raises
    ------
    StaleHandleError
        Its metadata have changed.
    """
    if fixed_metadata(target) != planned:
        raise StaleHandleError(
            f"array {target.path!r} in {target.store} has changed since the {work} was made: make it again",
            node=target,
        )
    return target


def write_unit_of(array: Array, advice: str = "plans do not divide them") -> tuple[int, ...]:
    """Return the smallest block of an array that is written without reading.

    Raises
    ------
    UnsupportedError
        The chunks of the array differ in shape.
    """
    if array.write_unit is None:
        raise UnsupportedError(
            f"array {array.path!r} in {array.store} has chunks of different shapes: {advice}", node=array
        )
    return array.write_unit


def fixed_metadata(array: Array) -> dict[str, Any]:
    """Return the metadata without the attributes, which may change while a plan runs."""
    return {key: value for key, value in array.metadata.items() if key != "attributes"}


def _check_shape(result: Any, unit: Unit, target: Array) -> None:
    """Refuse elements of another shape, which would be repeated to fill the region."""
    expected = tuple(part.stop - part.start for part in unit.region)
    shape = tuple(result.shape) if hasattr(result, "shape") else np.shape(result)
    if shape != expected:
        raise ShapeError(f"the function returned shape {shape} for {unit}, expected {expected}", node=target)


def _called(function: Callable[..., Any], values: list[Any], unit: Unit | None) -> Any:
    arrays = [value.numpy() if hasattr(value, "numpy") else value for value in values]
    return function(*arrays) if unit is None else function(*arrays, unit)


def identity_of(array: Array) -> dict[str, Any]:
    """Return where a source is, and the metadata that must stay (step 3)."""
    session = session_of(array.__reduce__()[1][0])
    if session is not None:
        # Each fork of a writable session has another snapshot.
        name = f"icechunk {session.get_node_id(f'/{array.path}')}"
        name += f" {session.snapshot_id}" if session.read_only else ""
    else:
        # The name of a store object is no path.
        name = array.store if array.store.startswith("<") else located(array.store)
    return {"store": name, "path": array.path, "metadata": fixed_metadata(array)}


def located(store: Any) -> Any:
    """Return a store as processes in other folders find it: paths are absolute."""
    if isinstance(store, Array | Group):
        raise TypeError(
            f"a store is expected, got zarrow.{type(store).__name__}: pass x.store, and path=x.path; "
            'or type group["name"] = other_group["name"] to copy into a group'
        )
    if isinstance(store, os.PathLike):
        store = os.fspath(store)
    if isinstance(store, str) and "://" not in store:
        if not store:
            raise ValueError("the name of a store is empty: pass '.' for the current folder")
        return os.path.normpath(Path(store).absolute())
    return store
