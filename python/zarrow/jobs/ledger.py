"""The ledger of a plan: which units are finished. It is a small store beside the other one, in readable JSON.

1. The ledger is a group of Zarr, named by the fingerprint of the plan: another plan finds another ledger, and
   so does a plan after a change of its arrays. Its attributes describe the plan. In a store with a name, the
   ledger is the root of a store, so that nothing remains when it is deleted.
2. Each run of a job has a group below it, which no other process writes. Its attributes have the job, and the
   finished units as ranges of places in the job's range. The store replaces them in one step.
3. A run reads which units are finished when it begins. Two runs of the same job do the same units, with the
   same result.
4. A process takes over a ledger from its owner by a group below it, named by this owner. Of several
   processes, one creates it. Nothing else is deleted than the entries of runs.
5. Where units become visible by a commit, each entry also stores the changes of its units, before the entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import CloudStore, Group, MemoryStore, _StoredValues
from zarrow.api.array_options import Store
from zarrow.api.creation import create_group
from zarrow.api.opening import open_group
from zarrow.errors import (
    MetadataError,
    NodeExistsError,
    NotFoundError,
    ReadOnlyError,
    StorePermissionError,
)
from zarrow.groups.places import joined, without_scheme
from zarrow.jobs.assignment import Job, checked
from zarrow.jobs.errors import UnfinishedError
from zarrow.jobs.owners import is_here, new_owner
from zarrow.jobs.units import Units

# Seconds between two records of a run in a remote store, where each takes a round trip.
_REMOTE_INTERVAL = 1.0

# Begin of the names of processes that do the whole plan.
_USER = "user-"

# Numbers of units in one bitmap.
_WINDOW = 1 << 16


class Changes(Protocol):
    """Changes of a run that its units made, and that only the ledger keeps (step 5)."""

    def pending(self) -> bytes:
        """Return the changes since the last call of `stored`."""

    def stored(self) -> None:
        """Drop the changes, which the ledger has."""


class Record:
    """The finished units of one run of a job (step 2)."""

    def __init__(
        self, values: _StoredValues, path: str, job: Job, total: int, changes: Changes | None = None
    ) -> None:
        self._changes = changes
        # How many times changes were stored.
        self._change_count = 0
        self._values = values
        self._path = path
        self._job = job
        self._numbers = job.numbers(total)
        self._done: list[list[int]] = []
        self._results: dict[str, Any] = {}
        self._interval = 0.0 if values.is_local() else _REMOTE_INTERVAL
        self._stored_at = time.monotonic()
        self._is_stored = True
        self._put()

    def add(self, number: int, result: object) -> None:
        """Add a finished unit. In a remote store, units are stored at most once a second."""
        place = self._numbers.index(number)
        if self._done and self._done[-1][1] == place:
            self._done[-1][1] = place + 1
        else:
            self._done.append([place, place + 1])
        if result is not None:
            self._results[str(number)] = _plain(result)
        self._is_stored = False
        if time.monotonic() - self._stored_at >= self._interval:
            self.store()

    def add_range(self, start: int, stop: int) -> None:
        """Add finished units without results."""
        self._done.append([start, stop])
        self._is_stored = False

    def store(self) -> None:
        """Store the units that were added.

        Raises
        ------
        UnfinishedError
            The ledger was deleted.
        """
        if self._is_stored:
            return
        if self._values.get_each([_document_of(self._path)]) == [None]:
            raise UnfinishedError(
                f"the ledger was deleted while a job ran, with record {self._path!r}: call setup(), and run "
                "all jobs again"
            )
        count = self._change_count
        if self._changes is not None:
            self._values.set(_changes_of(self._path, count), self._changes.pending())
            self._change_count += 1
        try:
            self._put()
        except BaseException:
            # The next entry replaces these changes by more of them.
            self._change_count = count
            raise
        if self._changes is not None:
            self._changes.stored()
        self._stored_at = time.monotonic()
        self._is_stored = True

    def _put(self) -> None:
        """Replace the document of the record, which no other process writes."""
        job = self._job
        attributes: dict[str, Any] = {"job": [job.index, job.count, job.assign], "done": self._done}
        if self._results:
            attributes["results"] = self._results
        if self._change_count:
            attributes["changes"] = self._change_count
        self._values.set(_document_of(self._path), _group(attributes))


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
        self._above, self._fingerprint = store, fingerprint
        self._store = store if below is None else below
        self._path = fingerprint if below is None else ""

    def group(self) -> Group | None:
        """Return the group of the plan; `None` before it is set up."""
        return self._opened("")

    def _opened(self, name: str) -> Group | None:
        try:
            return open_group(self._store, mode="r+", path=self._below(name))
        except NotFoundError:
            return None
        except MetadataError as error:
            error.args = (f"the ledger of the plan cannot be read, delete it to begin anew: {error}",)
            raise

    def begin(self, description: Mapping[str, Any]) -> None:
        """Create the ledger, unless another process did.

        Raises
        ------
        StorePermissionError, ReadOnlyError
            Its place is read-only, as where only the target may be written.
        """
        try:
            create_group(self._store, self._path, attributes=dict(description))
        except NodeExistsError:
            pass
        except (StorePermissionError, ReadOnlyError) as error:
            error.args = (f"{error}: pass ledger=, another store for the list of finished units",)
            raise

    def last_owner(self, ledger: Group) -> Any:
        """Return the process that took over the ledger last, or began it (step 4)."""
        owner = ledger.attrs.get("owner")
        while (successor := self._opened(_successor_of(owner))) is not None:
            owner = successor.attrs.get("owner")
        return owner

    def take_over(self, ledger: Group, last: Any, owner: Any, attributes: Mapping[str, Any]) -> None:
        """Begin the ledger anew, unless another process did so after this one read it (step 4)."""
        try:
            create_group(self._store, self._below(_successor_of(last)), attributes={"owner": owner})
        except NodeExistsError:
            return
        current = self.group()
        if current is None or current.attrs.get("owner") != ledger.attrs.get("owner"):
            return
        current.attrs.update(attributes, owner=owner)
        values = _StoredValues(self._store, create=False)
        for name in values.list(self._path):
            if _job_of(name) is not None:
                values.erase_prefix(self._below(name))

    def erase(self) -> None:
        """Delete the ledger of this plan, not of other plans."""
        with contextlib.suppress(NotFoundError):
            if self._path:
                del open_group(self._store, mode="r+")[self._path]
            else:
                values = _StoredValues(self._store, create=False)
                # The document goes last: after a kill in between, a finished plan is still known as finished.
                for name in values.list(""):
                    if name != "zarr.json":
                        values.erase_prefix(name)
                values.erase_prefix("")
        if isinstance(self._store, str) and "://" not in (folder := without_scheme(self._store)):
            # The folder of all ledgers goes with the last one.
            for empty in (Path(folder), Path(folder).parent):
                with contextlib.suppress(OSError):
                    empty.rmdir()

    def add_user(self) -> str | None:
        """Enter a process that does the whole plan, in a local store; return its name."""
        try:
            values = _StoredValues(self._store, create=False)
        except NotFoundError:
            return None
        if self._path or not values.is_local():
            return None
        name = f"{_USER}{secrets.token_hex(8)}"
        values.set(_document_of(name), _group({"owner": new_owner()}))
        return name

    def remove_user(self, name: str | None, *, is_finished: bool = False) -> bool:
        """Remove a process that does the whole plan; return whether no other one runs on this machine.

        Of a finished plan, the entries of runs go first, so that the others stop.
        """
        if name is None:
            return True
        try:
            values = _StoredValues(self._store, create=False)
        except NotFoundError:
            return True
        values.erase_prefix(name)
        names = values.list("")
        users = [each for each in names if each.startswith(_USER)]
        documents = values.get_each([_document_of(each) for each in users])
        found = [
            _attributes(each, document)
            for each, document in zip(users, documents, strict=True)
            if document is not None
        ]
        if not any(is_here(attributes.get("owner")) for attributes in found):
            return True
        for each in names if is_finished else ():
            if _job_of(each) is not None:
                values.erase_prefix(each)
        return False

    def others(self, store: str, paths: Container[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names of other plans' ledgers with an array of these paths, and their attributes."""
        try:
            values = _StoredValues(self._above, create=False)
        except NotFoundError:
            return
        names = [name for name in values.list("") if name != self._fingerprint]
        for name, document in zip(
            names, values.get_each([_document_of(name) for name in names]), strict=True
        ):
            try:
                attributes = {} if document is None else _attributes(name, document)
            except MetadataError:
                continue
            if any(path in paths for path in paths_of(attributes, store)):
                yield name, attributes

    def skip(self, units: Units, paths: Container[str]) -> None:
        """Enter all units of some arrays as finished."""
        total = len(units)
        record = self.record(checked(0, 1, "contiguous"), total)
        for start, stop in units.ranges(paths):
            record.add_range(start, stop)
        record.store()

    def record(self, job: Job, total: int, changes: Changes | None = None) -> Record:
        """Create the record of a run."""
        name = f"{job.assign}-{job.index}-of-{job.count}-{secrets.token_hex(4)}"
        return Record(_StoredValues(self._store, create=False), self._below(name), job, total, changes)

    def _below(self, name: str) -> str:
        return joined(self._path, name)

    def finished(self, total: int, numbers: range | None = None) -> Finished:
        """Return the finished units of all records; of records without units of `numbers`, none."""
        return Finished(
            [
                (found, _ranges(name, attributes.get("done")))
                for name, found, attributes in self._records(total, numbers)
            ]
        )

    def results(self, total: int) -> dict[int, Any]:
        """Return what the units' functions returned, by the unit's number."""
        results: dict[int, Any] = {}
        for _, _, attributes in self._records(total, None):
            found = dict(attributes.get("results", {}))
            results.update((int(number), result) for number, result in found.items())
        return dict(sorted(results.items()))

    def changes(self, total: int) -> Iterator[bytes]:
        """Yield the changes that all runs stored (step 5)."""
        for name, _, attributes in self._records(total, None):
            count = attributes.get("changes", 0)
            if not isinstance(count, int) or count < 0:
                raise MetadataError(
                    f"record {name!r} of the ledger: expected a number in 'changes', got {count!r}"
                )
            keys = [_changes_of(self._below(name), number) for number in range(count)]
            for key, found in zip(keys, _StoredValues(self._store, create=False).get_each(keys), strict=True):
                if found is None:
                    raise MetadataError(
                        f"the ledger has lost {key!r}, the changes of finished units: call forget(), and "
                        "begin again"
                    )
                yield found

    def _records(self, total: int, numbers: range | None) -> Iterator[tuple[str, range, dict[str, Any]]]:
        try:
            values = _StoredValues(self._store, create=False)
        except NotFoundError:
            return
        jobs = {name: _job_of(name) for name in sorted(values.list(self._path))}
        # Other records are not read: of many workers, each would read those of all.
        ranges = {
            name: job.numbers(total)
            for name, job in jobs.items()
            if job is not None and (numbers is None or _meet(job.numbers(total), numbers))
        }
        documents = values.get_each([_document_of(self._below(name)) for name in ranges])
        for (name, numbered), document in zip(ranges.items(), documents, strict=True):
            if document is not None:
                yield name, numbered, _attributes(name, document)


def _plain(value: Any) -> Any:
    """Return a result with lists and numbers of Python for those of NumPy, which JSON lacks."""
    match value:
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise TypeError(f"results have str as keys, got {list(value)[:3]}")
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _group(attributes: Mapping[str, Any]) -> bytes:
    """Return the document of a group."""
    document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return json.dumps(document, indent=2).encode()


def _document_of(path: str) -> str:
    return f"{path}/zarr.json"


def _changes_of(path: str, number: int) -> str:
    return f"{path}/{number}.changes"


def _attributes(name: str, document: bytes) -> dict[str, Any]:
    """Return the attributes of a record, which people can edit."""
    try:
        match json.loads(document):
            case {"attributes": dict(attributes)}:
                return attributes
    except ValueError:
        pass
    raise MetadataError(
        f"record {name!r} of the ledger is not a group of Zarr with attributes: {document[:80]!r}"
    )


def paths_of(
    attributes: Mapping[str, Any], store: str | None = None, without: Container[str] = ()
) -> set[str]:
    """Return the paths of a plan's arrays, if they are in this store. People can edit the ledger."""
    match attributes.get("plan"):
        case {"target": [str(found), str(above)], "blocks": dict(blocks)} if store in (None, found):
            names = [below for below in blocks if below not in without]
            return {joined(above, below) for below in names}
    return set()


def beside(store: Store, ending: str) -> Store | None:
    """Return a store with this ending of its name; `None` for a store object without a name.

    It is `None` also beside a whole bucket: that would be another bucket.
    """
    if isinstance(store, str):
        return None if _is_other_bucket(store, ending) else store.rstrip("/") + ending
    if isinstance(store, CloudStore):
        make, (url, *options) = store.__reduce__()
        if _is_other_bucket(url, ending):
            return None
        other: CloudStore = make(url.rstrip("/") + ending, *options)
        return other
    return None


def name_of(store: Store) -> str:
    """Return what a message calls a store that has no place beside it."""
    return f"the whole bucket {store}" if isinstance(store, str | CloudStore) else type(store).__name__


def for_one_call(store: Store, given: Store | None) -> Store | None:
    """Return the ledger of work that one call completes: in memory, where a store has no place beside it."""
    if given is None and beside(store, ".jobs") is None:
        return MemoryStore()
    return given


def _is_other_bucket(url: str, ending: str) -> bool:
    """Return whether an ending of the name changes the name of a bucket."""
    scheme, separator, rest = url.partition("://")
    is_bucket = separator != "" and scheme != "file" and "/" not in rest.strip("/")
    return is_bucket and ending[:1] not in ("", "/")


def _successor_of(owner: Any) -> str:
    """Return the name of the group by which a process takes over a ledger: people can edit owners."""
    return "after-" + hashlib.sha256(json.dumps(owner, default=str).encode()).hexdigest()[:32]


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
                f"record {name!r} of the ledger: expected ranges such as [[0, 12]] in 'done', got {value!r}"
            )
    return ranges
