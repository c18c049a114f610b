"""The ledger of a plan: which units are finished. It is a small store beside the other one, in readable JSON.

1. The ledger is a group of Zarr, named by the fingerprint of the plan: another plan finds another ledger, and
   so does a plan after a change of its arrays. Its attributes describe the plan. In a store with a name, the
   ledger is the root of a store, so that nothing remains when it is deleted.
2. Each run of a job has a group below it, which no other process writes. Its attributes have the job, and the
   finished units as ranges of places in the job's range. The store replaces them in one step.
3. A run reads which units are finished when it begins. Two runs of the same job do the same units, with the
   same result.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array, CloudStore, Group, _StoredValues
from zarrow.api.array_options import Store
from zarrow.api.creation import create_group
from zarrow.api.opening import open_group
from zarrow.errors import MetadataError, NodeExistsError, NotFoundError
from zarrow.jobs.assignment import Job, checked
from zarrow.jobs.errors import UnfinishedError

# Seconds between two records of a run in a remote store, where each takes a round trip.
_REMOTE_INTERVAL = 1.0

# Numbers of units in one bitmap.
_WINDOW = 1 << 16


class Record:
    """The finished units of one run of a job (step 2)."""

    def __init__(self, group: Group, numbers: range) -> None:
        self._group = group
        self._numbers = numbers
        self._done: list[list[int]] = []
        self._results: dict[str, Any] = {}
        self._interval = _REMOTE_INTERVAL if group._is_remote() else 0.0
        self._stored_at = time.monotonic()
        self._is_stored = True

    def add(self, number: int, result: object) -> None:
        """Add a finished unit. In a remote store, units are stored at most once a second."""
        place = self._numbers.index(number)
        if self._done and self._done[-1][1] == place:
            self._done[-1][1] = place + 1
        else:
            self._done.append([place, place + 1])
        if result is not None:
            self._results[str(number)] = result
        self._is_stored = False
        if time.monotonic() - self._stored_at >= self._interval:
            self.store()

    def store(self) -> None:
        """Store the units that were added.

        Raises
        ------
        UnfinishedError
            The ledger was deleted.
        """
        if self._is_stored:
            return
        attributes: dict[str, Any] = {"done": self._done}
        if self._results:
            attributes["results"] = self._results
        try:
            self._group.attrs.update(attributes)
        except NotFoundError as error:
            raise UnfinishedError(
                f"the ledger in {self._group.store} was deleted while a job ran: call setup(), and run all "
                "jobs again",
                kind="unfinished",
            ) from error
        self._stored_at = time.monotonic()
        self._is_stored = True


class Finished:
    """The finished units in all records, when they were read (step 3)."""

    def __init__(self, records: list[tuple[range, list[list[int]]]]) -> None:
        self._records = records

    def mask(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Return, for each unit from `start` to `stop`, whether it is finished."""
        mask = np.zeros(stop - start, np.bool_)
        for numbers, done in self._records:
            for first, end in done:
                # Finished numbers of this range, from the first that is not before `start`.
                part = numbers[first:end]
                skipped = max(0, -(-(start - part.start) // part.step)) if part else 0
                part = part[skipped:]
                if part and part.start < stop:
                    mask[part.start - start : min(part.stop, stop) - start : part.step] = True
        return mask

    def remaining(self, numbers: range) -> Iterator[int]:
        """Yield the numbers of unfinished units in a range."""
        for first, is_done in self._windows(numbers):
            yield from (first + place * numbers.step for place in np.flatnonzero(~is_done).tolist())

    def count_remaining(self, numbers: range) -> int:
        """Return how many units of a range are not finished."""
        return sum(int(is_done.size - np.count_nonzero(is_done)) for _, is_done in self._windows(numbers))

    def _windows(self, numbers: range) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        """Yield parts of a range: the first number, and which units are finished."""
        at_once = max(1, _WINDOW // numbers.step)
        for place in range(0, len(numbers), at_once):
            part = numbers[place : place + at_once]
            yield part.start, self.mask(part.start, part[-1] + 1)[:: part.step]


class Ledger:
    """The ledger of a plan."""

    def __init__(self, store: Store, fingerprint: str) -> None:
        below = beside(store, f"/{fingerprint}")
        self._store = store if below is None else below
        self._path = fingerprint if below is None else ""

    def group(self) -> Group | None:
        """Return the group of the plan; `None` before it is set up."""
        try:
            return open_group(self._store, mode="r+", path=self._path)
        except NotFoundError:
            return None

    def begin(self, description: Mapping[str, Any]) -> None:
        """Create the ledger, unless another process did."""
        with contextlib.suppress(NodeExistsError):
            create_group(self._store, self._path, attributes=dict(description))

    def erase(self) -> None:
        """Delete the ledger of this plan, not of other plans."""
        with contextlib.suppress(NotFoundError):
            if self._path:
                del open_group(self._store, mode="r+")[self._path]
            else:
                _StoredValues(self._store, create=False).erase_prefix("")
        if isinstance(self._store, str) and "://" not in self._store:
            # The folder of all ledgers goes with the last one.
            with contextlib.suppress(OSError):
                Path(self._store).rmdir()
            with contextlib.suppress(OSError):
                Path(self._store).parent.rmdir()

    def record(self, job: Job, total: int) -> Record:
        """Create the record of a run."""
        name = f"{job.assign}-{job.index}-of-{job.count}-{secrets.token_hex(4)}"
        attributes = {"job": [job.index, job.count, job.assign], "done": []}
        path = f"{self._path}/{name}" if self._path else name
        return Record(create_group(self._store, path, attributes=attributes), job.numbers(total))

    def finished(self, total: int, numbers: range | None = None) -> Finished:
        """Return the finished units of all records; of records without units of `numbers`, none."""
        return Finished([(range_, done) for range_, done, _ in self._records(total, numbers)])

    def results(self, total: int) -> dict[int, Any]:
        """Return what the units' functions returned, by the unit's number."""
        results: dict[int, Any] = {}
        for _, _, found in self._records(total, None):
            results.update((int(number), result) for number, result in found.items())
        return dict(sorted(results.items()))

    def _records(
        self, total: int, numbers: range | None
    ) -> Iterator[tuple[range, list[list[int]], dict[str, Any]]]:
        group = self.group()
        for name in () if group is None else group:
            job = _job_of(name)
            if job is None or (numbers is not None and not _meet(job.numbers(total), numbers)):
                continue
            record = cast("Group", group)[name]
            if isinstance(record, Array):
                raise MetadataError(f"the ledger of the plan has an array {name!r}", kind="metadata")
            attributes = record.attrs
            yield (
                job.numbers(total),
                _ranges(name, attributes.get("done")),
                dict(attributes.get("results", {})),
            )


def beside(store: Store, ending: str) -> Store | None:
    """Return a store with this ending of its name; `None` for a store object without a name."""
    if isinstance(store, str):
        return store.rstrip("/") + ending
    if isinstance(store, CloudStore):
        make, (url, *options) = store.__reduce__()
        other: CloudStore = make(url.rstrip("/") + ending, *options)
        return other
    return None


def _job_of(name: str) -> Job | None:
    """Return the job of a record by its name; `None` for a foreign member."""
    try:
        assign, index, _, count, _ = name.split("-")
        return checked(int(index), int(count), assign)
    except ValueError:
        return None


def _meet(one: range, other: range) -> bool:
    """Whether two ranges may have a number in common."""
    if not one or not other or one[0] > other[-1] or other[0] > one[-1]:
        return False
    return one.step != other.step or (one.start - other.start) % one.step == 0


def _ranges(name: str, value: Any) -> list[list[int]]:
    """Return the ranges of a record, which people can edit."""
    ranges = value if isinstance(value, list) else [value]
    for item in ranges:
        if not (
            isinstance(item, list)
            and len(item) == 2
            and all(isinstance(end, int) for end in item)
            and 0 <= item[0] <= item[1]
        ):
            raise MetadataError(
                f"record {name!r} of the ledger: expected ranges such as [[0, 12]] in 'done', got {value!r}",
                kind="metadata",
            )
    return ranges
