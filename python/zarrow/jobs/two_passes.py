"""A copy in two passes: through an intermediate array beside the target, with a ledger for each pass.

1. The first pass is a separate plan, from the sources to the intermediate arrays. Its ledger is in the same
   store, and the copy's fingerprint includes its fingerprint.
2. The second pass begins after all jobs have finished the first one. A job waits until its deadline, and then
   ends after its part of the first pass: run it again.
3. `finish` stores that the copy is finished, and then erases the intermediate arrays. After each read, a
   running job checks the array's token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zarrow._zarrow import Array, release_memory
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress
from zarrow.errors import NotFoundError, StaleHandleError, ZarrowError
from zarrow.jobs.assignment import Job
from zarrow.jobs.description import why
from zarrow.jobs.intermediates import TOKEN, check_free, erase, name_of, new_token, store_beside
from zarrow.jobs.ledger import name_of as ledger_name
from zarrow.jobs.ledger_states import kept_paths
from zarrow.jobs.plan import Plan, Work
from zarrow.jobs.rechunking_cost import LEAST_NBYTES, MOST_READS, Intermediate
from zarrow.jobs.report import Pass, Report
from zarrow.jobs.selecting import Copied
from zarrow.jobs.threads import run_in_threads
from zarrow.jobs.units import Unit
from zarrow.jobs.work import Item, New, located

# Seconds between two looks whether the first pass is finished.
_FIRST_POLL, _LAST_POLL = 0.1, 5.0


def divided(
    items: Mapping[str, Copied], target: Store, ledger: Store | None, memory_nbytes: int, passes: int | None
) -> tuple[str, Store | None, dict[str, Copied], dict[str, Copied]]:
    """Divide arrays into two passes where this moves fewer bytes.

    Returns
    -------
    tuple
        The name of the intermediate arrays' place and its store, the items of the first pass, and all items
        of the second one.

    Raises
    ------
    ValueError
        Two passes are demanded, and there is no place for the intermediate arrays, or one cannot be made.
    """
    second = dict(items)
    target, ledger = located(target), None if ledger is None else located(ledger)
    name, place = "", store_beside(target, ledger, "")
    if place is None and passes == 2:
        raise ValueError(
            f"{ledger_name(target)} has no place beside it for the intermediate arrays of two passes: pass "
            "passes=1"
        )
    first: dict[str, Copied] = {}
    for path, item in items.items():
        found = None if place is None or passes == 1 else item.rechunking(memory_nbytes)
        if found is None:
            continue
        one, two = found.one_pass(), found.two_passes()
        if two is None:
            continue
        is_better = one.reads > MOST_READS and two.cost.moved < one.moved and two.nbytes >= LEAST_NBYTES
        if not (is_better or passes == 2):
            continue
        name = name or name_of(items, target, ledger, memory_nbytes)
        place = store_beside(target, ledger, name)
        try:
            new = _between(item, place, two, name)
        except (ZarrowError, ValueError, TypeError) as error:
            if passes == 2:
                text = f"passes is 2, but {path or 'the array'!r} has no intermediate array: {error}"
                raise ValueError(text) from error
            continue
        first[path] = replace(item, target=new)
        second[path] = SecondPass(item.sources, item.target, item.starts, item.steps, new, two)
    return name, place, first, second


def _between(item: Copied, store: Store, chosen: Intermediate, name: str) -> New:
    """Return the intermediate array.

    Raises
    ------
    ZarrowError, ValueError, TypeError
        It cannot have this type, or these chunks.
    """
    assert isinstance(item.target, New)
    kept = {"shape", "dtype", "fill_value"}
    own = {name: value for name, value in item.target.options.items() if name in kept}
    new = New(item.sources[0], store, item.target.path, {**own, **_options_of(chosen, name)})
    new.sample  # noqa: B018 -- creates it in memory
    return new


def _options_of(chosen: Intermediate, name: str) -> dict[str, Any]:
    """Return the options of an intermediate array. Compression would take more time than it saves."""
    token = {TOKEN: new_token(name)}
    codecs = {"filters": None, "serializer": "auto", "compressors": None}
    layout = {"chunks": chosen.chunks, "shards": chosen.shards, "chunk_key_encoding": "default"}
    return {**layout, **codecs, "zarr_format": 3, "attributes": token}


@dataclass(frozen=True)
class SecondPass(Copied):
    """An array that is copied from an intermediate array.

    Attributes
    ----------
    intermediate : New
        The array between the passes. `sources` has the source of the first pass.
    chosen : Intermediate
        Its chunks and shards.
    """

    intermediate: New | None = None
    chosen: Intermediate | None = None

    @property
    def read_arrays(self) -> tuple[Array, ...]:
        """The array that units read."""
        assert self.intermediate is not None
        return (self.intermediate.sample,)

    @property
    def places(self) -> tuple[Sequence[int], Sequence[int]]:
        """Nothing: the intermediate array has the selected elements."""
        return (), ()

    def opened(self) -> tuple[Any, Array | None]:
        """Open the target, and the intermediate array for one run; `None` if it was erased."""
        assert self.intermediate is not None
        try:
            between = self.intermediate.opened()
        except NotFoundError:
            between = None
        return super().opened(), between

    def do(self, function: Callable[..., Any] | None, passes_unit: bool, unit: Unit, target: Any) -> object:
        """Copy a unit, unless the intermediate array was erased (step 3)."""
        assert self.intermediate is not None
        array, between = target
        try:
            elements = None if between is None else between.read(unit.region)
            is_same = between is not None and self.intermediate.open().attrs[TOKEN] == between.attrs[TOKEN]
        except (NotFoundError, KeyError):
            is_same = False
        if not is_same:
            store, path = str(self.intermediate.store), self.intermediate.path
            raise StaleHandleError(
                f"the intermediate array in {store} was erased while a job ran: another process finished the "
                "copy, or began it anew",
                store=store,
                path=path,
            )
        array[unit.region] = elements
        return None


class FirstPass(Plan):
    """The plan from the sources to the intermediate arrays."""

    def __init__(self, work: Work, name: str) -> None:
        # The name of the intermediate arrays' place.
        self.name = name
        # Paths of arrays that the copy keeps, and that need no intermediate array.
        self.kept: frozenset[str] = frozenset()
        super().__init__(work)

    @property
    def items(self) -> Iterable[Item]:
        """The arrays of the first pass."""
        return self._work.items.values()

    def erase(self) -> None:
        """Erase the intermediate arrays."""
        erase(self._work.target.store, self.name, self._all_paths())

    def check_free(self) -> None:
        """Refuse a place with anything but intermediate arrays of this copy."""
        check_free(self._work.target.store, self.name, self._all_paths())

    def _all_paths(self) -> list[str]:
        return [new.path for item in self.items for new in item.created]

    def _news(self) -> list[New]:
        items = self._work.items
        return [new for path, item in items.items() if path not in self.kept for new in item.created]

    def _make_room(self, overwrite: bool, skip_existing: bool) -> list[str]:
        self.erase()
        kept = self.kept & self._work.items.keys()
        if kept:
            self._ledger.skip(self.units, kept)
        return sorted(kept)


class TwoPassPlan(Plan):
    """A plan of the second pass, which does the first one before.

    `run` does the units of both passes. The second pass begins when all jobs have finished the first one. A
    job waits for the others as long as `wait` says, and then ends: run it again.
    """

    def __init__(self, work: Work, first: FirstPass) -> None:
        self._first = first
        super().__init__(work)

    @property
    def unit_count(self) -> int:
        """The number of units of both passes."""
        return len(self._first.units) + len(self.units)

    def setup(self, *, overwrite: bool = False, skip_existing: bool = False) -> None:
        """Create arrays and groups without elements, and begin the ledgers of both passes."""
        super().setup(overwrite=overwrite, skip_existing=skip_existing)
        if not self.is_finished:
            ledger = self._ledger.group()
            self._first.kept = frozenset(kept_paths(None if ledger is None else ledger.attrs))
            # Other intermediate arrays of this copy were checked before.
            self._first.setup(overwrite=True)

    def _run(self, job: Job, *, wait: float = 0.0, progress: Progress | None = None) -> Report:
        return Report.joined(run_in_threads(self, job, 1, wait=wait, progress=progress))

    def remaining(self) -> int:
        """Return how many units of both passes the ledgers do not have."""
        left = super().remaining()
        # The ledger of the first pass is deleted when the copy is finished.
        return left + self._first.remaining() if left else 0

    def finish(self, *, commit: bool | str = True) -> None:
        """End the plan as any other, and erase the intermediate arrays (step 3)."""
        super().finish(commit=commit)
        self._erase_first()

    def forget(self) -> None:
        """Delete the ledgers of both passes, and the intermediate arrays."""
        self._erase_first()
        super().forget()

    def describe(self) -> str:
        """Say what both passes do, and why there are two."""
        first, work = self._first.describe().splitlines()[1:], self._work
        head, *second = super().describe().splitlines()
        reasons = [why(path, work.items[path], work.memory_nbytes) for path in self._first._work.items]
        names = ("first pass, to intermediate arrays:", "second pass:", "why:")
        return "\n".join([head, names[0], *first, names[1], *second, names[2], *reasons])

    def summary(self) -> dict[str, Any]:
        """Return what `describe` says as a dict for JSON."""
        return {**super().summary(), "first_pass": self._first.summary()["arrays"]}

    def _erase_first(self) -> None:
        self._first.erase()
        self._first.forget()

    def _claim(self, overwrite: bool) -> None:
        self._first.check_free()
        super()._claim(overwrite)

    def _make_room(self, overwrite: bool, skip_existing: bool) -> list[str]:
        kept = super()._make_room(overwrite, skip_existing)
        # A copy that begins anew has no first pass: its source may have changed since.
        self._erase_first()
        return kept

    def _summary(self) -> dict[str, Any]:
        return {**super()._summary(), "intermediate": self._first.name}

    def _passes(self) -> Sequence[Pass]:
        second = Pass(len(self.units), self._run_second)
        if self.is_finished:
            return [second]
        return [Pass(len(self._first.units), self._first._run), second]

    def _run_second(self, job: Job, *, wait: float = 0.0, progress: Progress | None = None) -> Report:
        until, poll = time.monotonic() + wait, _FIRST_POLL
        while not self.is_finished and self._first.remaining():
            if time.monotonic() >= until:
                return Report(0, 0, wait)
            time.sleep(poll)
            poll = min(2 * poll, _LAST_POLL)
        # The blocks of the first pass have another size, and are not used again.
        release_memory()
        return super()._run(job, wait=max(0.0, until - time.monotonic()), progress=progress)

    def _description(self) -> dict[str, Any]:
        return {**super()._description(), "first": self._first.fingerprint}
