"""A plan: work that is divided into units, which many processes do, and do again after a kill.

1. `setup` begins the ledger, and then creates arrays and groups without elements. It may run again. Only the
   process that began the ledger erases nodes at the target, before units are written; other processes wait.
2. `run` does the units of a job that the ledger does not have. Each is written completely, so that a unit
   that was interrupted is written again. It is entered into the ledger after it was written.
3. `finish` refuses to end a plan with units that are not finished. Attributes, and then consolidated
   metadata, are written last.
4. A plan is pickled as its work, or as the call that makes it, and its fingerprint. A process that unpickles
   it opens the arrays, and checks that they still have this fingerprint.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, SupportsIndex

from zarrow._zarrow import Group, open
from zarrow.api.array_options import Store
from zarrow.api.consolidation import consolidate_metadata
from zarrow.api.progress import Progress, reporting
from zarrow.errors import NodeExistsError, StaleHandleError, UnsupportedError, ZarrowError
from zarrow.groups.places import joined
from zarrow.jobs import ledger_states as states
from zarrow.jobs import new_nodes
from zarrow.jobs.assignment import Assignment, Job, checked
from zarrow.jobs.completion import complete
from zarrow.jobs.copied_items import require_group
from zarrow.jobs.description import described, summary
from zarrow.jobs.errors import UnfinishedError
from zarrow.jobs.function_identity import identity
from zarrow.jobs.intermediates import forget_other
from zarrow.jobs.ledger import Changes, Ledger, paths_of
from zarrow.jobs.owners import is_alive, new_owner
from zarrow.jobs.report import Pass, Report
from zarrow.jobs.threads import check_threads
from zarrow.jobs.units import Units
from zarrow.jobs.work import Item, New

# Seconds between two looks for a ledger that another process begins.
_POLL = 0.2

# Seconds to wait for another process that erases the target.
_ERASE_WAIT = 60.0


@dataclass(frozen=True)
class Location:
    """A node of a store."""

    store: Store
    path: str


@dataclass(frozen=True)
class Work:
    """The description of a plan, without elements. It is pickled."""

    kind: str
    items: Mapping[str, Item]
    function: Callable[..., Any] | None
    passes_unit: bool
    target: Location
    groups: Mapping[str, tuple[int, Mapping[str, Any]]]
    ledger: Store
    memory_nbytes: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    consolidate: bool = False
    # A function with its arguments that makes the same plan: smaller to pickle than many items (step 4).
    remake: functools.partial[Plan] | None = None


class Plan:
    """Work on arrays that is divided into units, for many processes and many runs.

    `copy`, `map`, `write`, `append` and `collect` make plans. A plan is pickled without elements, in less
    than a kilobyte, so that a scheduler can send it to its workers.
    """

    def __init__(self, work: Work, fingerprint: str | None = None) -> None:
        self._work = work
        # The arrays as they are now: a later change is found.
        self._check(self.fingerprint if fingerprint is None else fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._work.remake is not None:
            return _remade, (self._work.remake, self.fingerprint)
        return Plan, (self._work, self.fingerprint)

    def _check(self, fingerprint: str) -> None:
        if self.fingerprint != fingerprint:
            raise _stale()

    @cached_property
    def units(self) -> Units:
        """The units, as a sequence that is computed when it is asked for."""
        grids = {path: item.grid(self._work.memory_nbytes) for path, item in self._work.items.items()}
        return Units(grids)

    @property
    def unit_count(self) -> int:
        """The number of units, of both passes if there are two."""
        return len(self.units)

    @cached_property
    def fingerprint(self) -> str:
        """The name of the plan: a hash of its arrays, their metadata, its options and its function."""
        text = json.dumps(self._description(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def job(self, index: SupportsIndex, count: SupportsIndex, assign: Assignment = "contiguous") -> Job:
        """Return one of `count` jobs, which have all units together, and none twice.

        Parameters
        ----------
        index
            Number of the job, from 0.
        count
            The number of jobs. It may differ between runs of a plan.
        assign
            `"contiguous"` gives neighbouring units, `"spread"` every `count`-th unit.

        Raises
        ------
        ValueError
            The index is not below the count.
        TypeError
            An argument is no integer.
        """
        return checked(index, count, assign)

    def setup(self, *, overwrite: bool = False, skip_existing: bool = False) -> None:
        """Create arrays and groups without elements, and begin the ledger.

        Several processes may call it. What an earlier call created stays.

        Parameters
        ----------
        overwrite
            Erase existing arrays that the plan creates, and ledgers of other plans for them, so that
            their jobs end. A plan for an existing array erases only ledgers. Without effect after the first
            call.
        skip_existing
            Keep existing arrays instead, and leave out their units. Without effect after the first call.

        Raises
        ------
        NodeExistsError
            There is an array or a group that this plan did not create.
        ConflictError
            The plan writes or appends to an existing array, and another plan for it is not finished.
        StaleHandleError
            The array of an append has changed since the plan was made.
        ValueError
            Both options were passed.
        UnfinishedError
            Another process has been erasing the target for a minute, or was killed on another machine.
        """
        if overwrite and skip_existing:
            raise ValueError("existing arrays are overwritten or skipped: pass only one of the two")
        ledger = self._begun(overwrite, skip_existing)
        if ledger is None:
            return
        try:
            self._create_nodes(states.kept_paths(ledger.attrs))
        except UnsupportedError:
            # The store takes no arrays: nothing was created.
            self.forget()
            raise
        if states.state_of(ledger) == states.CREATING:
            ledger.attrs.update(state=states.RUNNING)

    def run(self, job: Job, *, wait: float = 0.0, progress: Progress | bool | None = None) -> Report:
        """Do the units of a job that are not finished.

        After an error or a kill, units that were finished stay so: run the job again.

        Parameters
        ----------
        job
            Which units: a job of this plan.
        wait
            Seconds to wait for another process that sets up the plan.
        progress
            Called with the number of finished units and the number of all units of the job, after each; or
            True for a bar in a terminal or a notebook.

        Returns
        -------
        Report
            How many units were done.

        Raises
        ------
        UnfinishedError
            The plan is not set up, or its ledger was deleted while the job ran.
        StaleHandleError
            An array of the plan has changed.
        StoreError, CodecError, OutOfMemoryError
            As `Array.read` and `Array.write`.
        """
        if not isinstance(job, Job):
            raise TypeError(
                f"expected a job of the plan, got {type(job).__name__}: type plan.run(plan.job(0, 1))"
            )
        with reporting(progress, self._work.kind, "{} units".format, resumes=True) as report:
            return self._run(job, wait=wait, progress=report)

    def _run(self, job: Job, *, wait: float = 0.0, progress: Progress | None = None) -> Report:
        began = time.monotonic()
        self._wait_for_setup(began + wait)
        total = len(self.units)
        numbers = job.numbers(total)
        if self.is_finished:
            return Report(0, len(numbers), time.monotonic() - began)
        finished = self._ledger.finished(total, numbers)
        done = 0
        remaining = finished.remaining(numbers)
        left = finished.count_remaining(numbers)
        if left:
            targets: dict[str, Any] = {}
            items, changes = self._written()
            record = self._ledger.record(job, total, changes)
            try:
                for number in remaining:
                    unit = self.units[number]
                    item = items[unit.path]
                    if unit.path not in targets:
                        targets[unit.path] = item.opened()
                    function, passes_unit = self._work.function, self._work.passes_unit
                    result = item.do(function, passes_unit, unit, targets[unit.path])
                    record.add(number, result)
                    done += 1
                    if progress is not None:
                        progress(len(numbers) - left + done, len(numbers))
            except BaseException:
                # The first error counts.
                with contextlib.suppress(ZarrowError):
                    record.store()
                raise
            record.store()
        return Report(done, len(numbers) - left, time.monotonic() - began)

    def _passes(self) -> Sequence[Pass]:
        """Return the passes of a run. Each begins after all jobs have finished the previous one."""
        return [Pass(len(self.units), self._run)]

    def remaining(self) -> int:
        """Return how many units the ledger does not have."""
        total = len(self.units)
        return self._ledger.finished(total).count_remaining(range(total))

    def results(self) -> dict[int, Any]:
        """Return what the function of `collect` returned for each finished unit, by its number."""
        return self._ledger.results(len(self.units))

    def finish(self, *, commit: bool | str = True) -> None:
        """End the plan: check that it is finished, then write attributes and consolidated metadata.

        Parameters
        ----------
        commit
            For a session of icechunk: commit it, with this message if it is a `str`. With False, the session
            has all changes, and its owner commits them.

        Raises
        ------
        UnfinishedError
            Some units are not finished.
        StaleHandleError
            An array of the plan has changed.
        ConflictError
            Another commit to the branch changed what the plan writes.
        ReadOnlyError, UnsupportedError
            The session was committed, or is a fork: pass a writable one.
        ValueError
            `commit` is given for a store without commits.
        """
        if commit is not True:
            raise ValueError(f"commit={commit!r} is for sessions of icechunk; other stores have no commits")
        ledger = self._finished_ledger()
        self._write_end(states.kept_paths(ledger.attrs))
        ledger.attrs.update(state=states.FINISHED)

    def _finished_ledger(self) -> Group:
        """Return the ledger of a plan without unfinished units."""
        ledger = self._ledger.group()
        if ledger is None:
            raise UnfinishedError("the plan is not set up: call setup()")
        if states.state_of(ledger) == states.FINISHED:
            return ledger
        total = len(self.units)
        first = next(self._ledger.finished(total).remaining(range(total)), None)
        if first is not None:
            count = self.remaining()
            raise UnfinishedError(
                f"{count} of {total} units are not finished, first {self.units[first]}: run their jobs again"
            )
        return ledger

    def _write_end(self, kept: Container[str] = ()) -> None:
        """Write shapes, attributes and consolidated metadata."""
        items = {path: item for path, item in self._work.items.items() if path not in kept}
        # All arrays are checked before the first one changes.
        targets = [(item, item.opened()) for item in items.values()]
        if self._work.kind == "append" and self._work.remake is not None and not self.is_finished:
            # A new array of the group would stay shorter.
            _remade(self._work.remake, self.fingerprint)
        for item, target in targets:
            item.finish(target)
        target = self._work.target
        if self._work.attributes:
            open(target.store, target.path, mode="r+").attrs.update(self._work.attributes)
        if self._work.consolidate:
            consolidate_metadata(target.store, target.path)

    def complete(
        self,
        *,
        overwrite: bool = False,
        skip_existing: bool = False,
        threads: int = 1,
        progress: Progress | bool | None = None,
    ) -> Report:
        """Do the whole plan in this process, and delete its ledger; after a kill, the rest of it.

        Parameters
        ----------
        overwrite, skip_existing
            As in `setup`. With `overwrite`, a plan that was finished before is done again.
        threads
            How many threads do units, so that reads and writes of a slow store overlap. Each holds the memory
            of a unit.
        progress
            As in `run`.

        Raises
        ------
        NodeExistsError, ConflictError, UnfinishedError, StaleHandleError, StoreError, CodecError
            As `setup`, `run` and `finish`.
        OutOfMemoryError
            As `run`.
        """
        check_threads(threads)
        with reporting(progress, self._work.kind, "{} units".format, resumes=True) as report:
            if overwrite and self.is_finished:
                self.forget()
            self.setup(overwrite=overwrite, skip_existing=skip_existing)
            reports = complete(self, threads, report)
        return Report.joined(reports)

    @property
    def ledger(self) -> Store:
        """The store of the ledgers."""
        return self._work.ledger

    @property
    def is_begun(self) -> bool:
        """Whether the plan has a ledger: it was set up, or is being set up."""
        return self._ledger.group() is not None

    @property
    def is_finished(self) -> bool:
        """Whether the plan has a ledger that says that it was finished."""
        ledger = self._ledger.group()
        return ledger is not None and states.state_of(ledger) == states.FINISHED

    def forget(self) -> None:
        """Delete the ledger of the plan. A plan that was not finished begins anew."""
        self._ledger.erase()

    def describe(self) -> str:
        """Say what the plan does: its units, their memory, and how often stored bytes are read."""
        lines = [f"{self._work.kind}: {self.unit_count} units, fingerprint {self.fingerprint}"]
        for path, grid in self.units.grids.items():
            if not grid.shape or len(grid):
                lines.append(described(path, self._work.items[path], grid, self._work.memory_nbytes))
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        """Return what `describe` says as a dict for JSON."""
        arrays = {
            path: summary(self._work.items[path], grid, self._work.memory_nbytes)
            for path, grid in self.units.grids.items()
        }
        return {"units": self.unit_count, "fingerprint": self.fingerprint, "arrays": arrays}

    def __repr__(self) -> str:
        return f"<zarrow.jobs.Plan {self.describe()}>"

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._work.ledger, self.fingerprint)

    def _description(self) -> dict[str, Any]:
        work, function = self._work, self._work.function
        return {
            "kind": work.kind,
            "function": None if function is None else identity(function),
            "target": self._target(),
            "arrays": {path: item.identity() for path, item in work.items.items()},
            "blocks": {path: list(grid.block) for path, grid in self.units.grids.items()},
        }

    def _target(self) -> list[str]:
        return [self._target_name(), self._work.target.path]

    def _summary(self) -> dict[str, Any]:
        """Return what the ledger says of the plan."""
        found, items = self._description(), self._work.items.items()
        notes = {joined(self._work.target.path, path): note for path, item in items if (note := item.notes())}
        return {
            "plan": {name: found[name] for name in ("kind", "function", "target", "blocks")},
            "units": len(self.units),
            **({self._work.kind: notes} if notes else {}),
        }

    def _target_name(self) -> str:
        """Return the name of the target's store."""
        return str(self._work.target.store)

    def _news(self) -> list[New]:
        return [new for item in self._work.items.values() for new in item.created]

    def _written(self) -> tuple[Mapping[str, Item], Changes | None]:
        """Return the items that a run writes, and changes that the ledger keeps with each entry."""
        return self._work.items, None

    def _create_nodes(self, kept: Container[str] = ()) -> None:
        """Create groups and arrays without elements, or keep existing ones."""
        work = self._work
        groups = {joined(work.target.path, path): made for path, made in work.groups.items()}
        news = [new for path, item in work.items.items() if path not in kept for new in item.created]
        if new_nodes.are_created(work.target.store, groups, news):
            return
        for path, made in groups.items():
            require_group(work.target.store, path, made)
        for new in news:
            new.create()

    def _begun(self, overwrite: bool, skip_existing: bool) -> Group | None:
        """Return a ledger if its target was erased, so that nodes can be created; `None` if they exist."""
        until = time.monotonic() + _ERASE_WAIT
        owner = new_owner()
        while True:
            ledger = self._ledger.group()
            if ledger is None:
                begun = {"state": states.ERASING, "owner": owner, "overwrite": overwrite}
                self._ledger.begin({**self._summary(), **begun})
                continue
            state, last = states.state_of(ledger), self._ledger.last_owner(ledger)
            if state == states.CREATING:
                return ledger
            is_set_up = state in (states.RUNNING, states.FINISHED) and last == ledger.attrs.get("owner")
            if is_set_up and len(new_nodes.existing(news := self._news())) == len(news):
                return None
            if is_set_up or (last != owner and not is_alive(last)):
                # The target was erased after it was set up, or the process that erases it was killed.
                left = None if overwrite else self._unfinished(ledger)
                if left is not None and self._ledger.last_owner(ledger) == last:
                    raise states.unfinished("this plan, which lost other arrays,", left.store, left.path)
                self._ledger.take_over(ledger, last, owner, {"state": states.ERASING, "overwrite": overwrite})
                continue
            if last == owner:
                is_refused = True
                try:
                    self._claim(overwrite)
                    is_refused = not overwrite
                    kept = self._make_room(overwrite, skip_existing)
                    ledger.attrs.update(state=states.CREATING, kept=kept)
                except BaseException as error:
                    # Else this process would wait for itself. The first error counts.
                    with contextlib.suppress(ZarrowError):
                        # A node of another kind is found before anything is erased.
                        if is_refused or isinstance(error, NodeExistsError):
                            self.forget()
                        else:
                            # Some arrays may be empty now: they must not count as finished.
                            ledger.attrs.update(owner=["ended", *owner])
                    raise
                return ledger
            if time.monotonic() >= until:
                raise UnfinishedError(
                    f"process {last} erases the target, or was killed: if it was "
                    "killed, call forget(), then call setup() again"
                )
            time.sleep(_POLL)

    def _claim(self, overwrite: bool) -> None:
        """Refuse other plans that write the same chunks, or delete their ledgers."""
        for path, item in self._work.items.items():
            if overwrite and item.existing is not None:
                self._forget_others(dict(self._others([path])))
            item.claim(other for other in self._others([path]) if other[1].get("state") != states.FINISHED)

    def _unfinished(self, ledger: Group) -> New | None:
        """Return an existing array that this plan created or erased, and did not finish."""
        state, kept = states.state_of(ledger), states.kept_paths(ledger.attrs)
        if state == states.FINISHED or (state == states.ERASING and not ledger.attrs.get("overwrite")):
            return None
        items = [item for path, item in self._work.items.items() if path not in kept]
        return next(iter(new_nodes.existing([new for item in items for new in item.created])), None)

    def _make_room(self, overwrite: bool, skip_existing: bool) -> list[str]:
        """Check that nothing is where the plan creates its nodes, or erase it; return the paths to skip."""
        items = {path: item for path, item in self._work.items.items() if item.created}
        store, overlapping = self._work.target.store, states.Overlapping(self._work.target.path)
        others = dict(self._ledger.others(self._target_name(), overlapping)) if items else {}
        by_item = {path: item.created for path, item in items.items()}
        news = [new for created in by_item.values() for new in created]
        groups = [(store, path) for path in self._paths(self._work.groups)]
        there = {id(new) for new in new_nodes.existing(news, groups=groups, are_kept=skip_existing)}
        existing = {
            path: found
            for path, news in by_item.items()
            if (found := [new for new in news if id(new) in there])
        }
        if existing and not (overwrite or skip_existing):
            new = next(iter(existing.values()))[0]
            raise states.exists(new.store, new.path, self._work.ledger)
        taken = self._paths(existing)
        if skip_existing:
            states.check_finished(others, store, taken)
        replaced = taken if overwrite else set[str]()
        self._forget_others(
            {
                name: found
                for name, found in others.items()
                if states.is_dead(found, store) or not replaced.isdisjoint(paths_of(found))
            }
        )
        if skip_existing and existing:
            self._ledger.skip(self.units, existing)
            return list(existing)
        for item in self._work.items.values() if existing else ():
            item.before_erasing()
        for news in existing.values():
            for new in news:
                new.create(overwrite=True)
        return []

    def _others(self, items: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names of other plans for these items, and the attributes of their ledgers."""
        return self._ledger.others(self._target_name(), self._paths(items))

    def _forget_others(self, others: Mapping[str, Mapping[str, Any]]) -> None:
        """Delete ledgers of other plans: their units would count as finished when they run again."""
        for name, attributes in others.items():
            forget_other(self._work.ledger, name, attributes, self._work.target.store)

    def _paths(self, items: Iterable[str]) -> set[str]:
        """Return the paths of items in the target's store."""
        return {joined(self._work.target.path, item) for item in items}

    def _wait_for_setup(self, until: float) -> None:
        while True:
            ledger = self._ledger.group()
            if ledger is not None and states.state_of(ledger) in (states.RUNNING, states.FINISHED):
                return
            if time.monotonic() >= until:
                raise UnfinishedError(
                    "the plan is not set up, or its arrays have changed since: call setup() once, in one "
                    "process"
                )
            time.sleep(_POLL)


def _stale() -> StaleHandleError:
    return StaleHandleError(
        "the arrays of the plan, or its function, have changed since it was made: make it again"
    )


def _remade(remake: functools.partial[Plan], fingerprint: str) -> Plan:
    """Return an unpickled plan."""
    try:
        plan = remake()
    except ValueError as error:  # A new array that the options do not fit.
        raise _stale() from error
    plan._check(fingerprint)
    return plan
