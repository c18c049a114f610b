"""Plans that write into a session of icechunk: all elements become visible by one commit, at the end.

1. `setup` creates nodes in a fork of the session, and keeps them in the ledger as `nodes`. A fork of this
   fork is kept as `base`: every run begins with it.
2. With each entry, a run stores its changes in the ledger: references to chunks that are in the repository
   already. A kill loses nothing that was entered.
3. `finish` merges `nodes` and the changes of all runs into the session, and commits it. Another session of
   the branch will do: nodes that other commits replaced are refused, and other nodes do not matter.
4. A pickled plan has a fork for its session. Forks are kept in the ledger as icechunk's bytes, not pickled:
   a ledger from elsewhere must not run code.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import io
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

from zarrow._zarrow import Array, Group, _import
from zarrow.errors import MetadataError, ReadOnlyError, StoreError, UnsupportedError
from zarrow.jobs.appending import Appended
from zarrow.jobs.errors import ConflictError
from zarrow.jobs.ledger import Changes
from zarrow.jobs.ledger_states import FINISHED, RUNNING
from zarrow.jobs.plan import Plan, Work, _remade
from zarrow.jobs.work import Item
from zarrow.store_objects.icechunk_sessions import session_of

_SESSION = "session"


class VersionedPlan(Plan):
    """A plan that writes into a session of icechunk."""

    def __reduce__(self) -> tuple[Any, ...]:
        session, work = self._session, self._work
        with _store_errors():
            store = (session if session._session.is_fork else session.fork()).store
        if work.function is None and work.remake is not None:
            remake: functools.partial[Plan] = _replaced(work.remake, session, store)
            return _remade, (remake, self.fingerprint)
        return VersionedPlan, (_on(work, session, store), self.fingerprint)

    def setup(self, *, overwrite: bool = False, skip_existing: bool = False) -> None:
        """Create arrays and groups in a fork, and begin the ledger (step 1)."""
        if skip_existing:
            raise UnsupportedError("a plan in icechunk skips no existing arrays: leave out skip_existing")
        session = self._session
        if session.read_only:
            raise _read_only()
        ledger = self._ledger.group()
        if ledger is not None:
            _base(ledger)
            return
        with _store_errors():
            created = session.fork()
        inner = self._in(created)
        inner._make_room(overwrite, skip_existing=False)
        inner._create_nodes()
        for item in inner._work.items.values():
            # icechunk refuses chunks behind the end of an array. Only runs see the fork.
            if isinstance(item, Appended):
                item.finish(item.opened())
        with _store_errors():
            paths = {*_changed(created.status()), *self._existing()}
            description = {
                "state": RUNNING,
                "replaced": {path: _node_id(session, path) for path in sorted(paths)},
                "nodes": _text(created),
                "base": _text(created.fork()),
            }
        self._ledger.begin({**self._summary(), **description})

    def finish(self, *, commit: bool | str = True) -> None:
        """Merge the changes of all runs into the session, and commit it (step 3)."""
        ledger, session = self._finished_ledger(), self._session
        if ledger.attrs.get("state") == FINISHED:
            return
        if session.read_only:
            raise _read_only()
        if session._session.is_fork:
            raise UnsupportedError(
                "a fork of a session cannot be committed: call finish() where the plan was made, or make it "
                "again with repository.writable_session(branch)"
            )
        with _store_errors():
            attributes = [(array, _attributes(array)) for array in self._existing().values()]
            if self._merge(ledger, session):
                for array, found in attributes:
                    if _attributes(array) != found:
                        # An append also merges the attributes that it found.
                        array.attrs.put(found)
                self._write_end()
                if commit is False:
                    return
                if session.has_uncommitted_changes:
                    message = commit if isinstance(commit, str) else f"{self._work.kind} by a plan of zarrow"
                    _commit(session, message)
        ledger.attrs.update(state=FINISHED)

    @property
    def _session(self) -> Any:
        return session_of(self._work.target.store)

    def _forget_others(self, others: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep all ledgers: commits of other plans are conflicts."""

    def _target_name(self) -> str:
        """Return a name that the session and its forks have in common."""
        return f"icechunk {[(path, _node_id(self._session, path)) for path in self._existing()]}"

    def _written(self) -> tuple[Mapping[str, Item], Changes | None]:
        """Return the items in a fork of the ledger's (step 2)."""
        ledger = self._ledger.group()
        assert ledger is not None
        fork = _base(ledger)
        return self._in(fork)._work.items, _Changes(fork)

    def _in(self, fork: Any) -> VersionedPlan:
        """Return this plan in a fork."""
        # `copy` would call `__reduce__`.
        other = object.__new__(VersionedPlan)
        other.__dict__.update(self.__dict__)
        other._work = _on(self._work, self._session, fork.store)
        return other

    def _existing(self) -> dict[str, Array]:
        """Return the arrays that the plan writes and does not create, by their paths."""
        targets = [item.target for item in self._work.items.values()]
        return {target.path: target for target in targets if isinstance(target, Array)}

    def _merge(self, ledger: Group, session: Any) -> bool:
        """Merge all changes into the session (step 3). Return False if they were committed before."""
        nodes, base = _fork(ledger, "nodes"), _base(ledger)
        replaced = ledger.attrs.get("replaced")
        if not isinstance(replaced, dict):
            raise _broken("replaced", replaced)
        created = {path for path, old in replaced.items() if _node_id(base, path) != old}
        found = {path: _node_id(session, path) for path in replaced}
        has_nodes = bool(created) and all(found[path] == _node_id(base, path) for path in created)
        if has_nodes and not session.has_uncommitted_changes:
            return False
        for path, old in replaced.items():
            if found[path] != old and not (has_nodes and path in created):
                raise ConflictError(
                    f"another commit to branch {session.branch!r} created, replaced or deleted {path!r}, "
                    "which the plan writes: call forget() to begin again, or reset the branch",
                    path=path,
                )
        # Merge the runs first: an error leaves the session unchanged.
        for changes in self._ledger.changes(len(self.units)):
            nodes.merge(_session_from(changes))
        session.merge(nodes)
        return True


class _Changes:
    """The changes of a run, in its fork."""

    def __init__(self, fork: Any) -> None:
        self._fork = fork

    def pending(self) -> bytes:
        with _store_errors():
            return _bytes(self._fork)

    def stored(self) -> None:
        with _store_errors():
            self._fork.discard_changes()


class _Pickler(pickle.Pickler):
    """Replaces a session and its stores by a name."""

    def __init__(self, file: io.BytesIO, session: Any) -> None:
        super().__init__(file)
        self._session = session

    def persistent_id(self, value: Any) -> str | None:
        found = session_of(value)
        return _SESSION if found is not None and found == self._session else None


class _Unpickler(pickle.Unpickler):
    """Replaces the name by another store."""

    def __init__(self, file: io.BytesIO, store: Any) -> None:
        super().__init__(file)
        self._store = store

    def persistent_load(self, name: Any) -> Any:
        return self._store


def _replaced(value: Any, session: Any, store: Any) -> Any:
    """Return a copy of a value with another store for each store of the session."""
    file = io.BytesIO()
    _Pickler(file, session).dump(value)
    file.seek(0)
    return _Unpickler(file, store).load()


def _on(work: Work, session: Any, store: Any) -> Work:
    """Return the same work in another store. The function stays: some can be pickled only by others."""
    own = dataclasses.replace(work, function=None, remake=None)
    replaced: Work = _replaced(own, session, store)
    return dataclasses.replace(replaced, function=work.function)


def _attributes(array: Array) -> dict[str, Any]:
    array.refresh()
    return dict(array.attrs)


def _changed(diff: Any) -> set[str]:
    """Return the paths of nodes that a fork created or deleted."""
    kinds = (diff.new_groups, diff.new_arrays, diff.deleted_groups, diff.deleted_arrays)
    return {path.strip("/") for paths in kinds for path in paths}


def _node_id(session: Any, path: str) -> str | None:
    """Return what icechunk calls a node: a node that replaces it has another one."""
    try:
        found: str = session.get_node_id(f"/{path}")
    except _import("icechunk").NotFoundError:
        return None
    return found


def _commit(session: Any, message: str) -> None:
    icechunk = _import("icechunk")
    try:
        # Commits of other nodes are no conflict.
        session.commit(message, rebase_with=icechunk.ConflictDetector())
    except icechunk.ConflictError as error:
        raise ConflictError(
            f"another commit to branch {session.branch!r} changed what the plan writes ({error}): to "
            "replace it, make the plan with a new session of the branch, and call finish() again; finished "
            "units stay"
        ) from error


def _bytes(session: Any) -> bytes:
    found: bytes = session.__getstate__()["_session"]
    return found


def _session_from(data: bytes) -> Any:
    fork_type = _import("icechunk.session").ForkSession
    fork = fork_type.__new__(fork_type)
    fork.__setstate__({"_session": data})
    return fork


def _text(session: Any) -> str:
    return base64.b64encode(_bytes(session)).decode()


def _fork(ledger: Group, name: str) -> Any:
    """Return a fork in the ledger, which people can edit."""
    found = ledger.attrs.get(name)
    try:
        return _session_from(base64.b64decode(str(found), validate=True))
    except (ValueError, _import("icechunk").IcechunkError) as error:
        raise _broken(name, found) from error


def _base(ledger: Group) -> Any:
    """Return the fork for runs, after checking its snapshot."""
    fork = _fork(ledger, "base")
    try:
        with _store_errors():
            _node_id(fork, "")
    except StoreError as error:
        raise StoreError(
            f"the repository lacks the snapshot of the ledger, or cannot be read ({error}): if it was "
            "deleted, or its garbage was collected, call forget() to begin again"
        ) from error
    return fork


def _broken(name: str, value: Any) -> MetadataError:
    return MetadataError(f"the ledger has {str(value)[:40]!r} for {name!r}: call forget(), and setup() again")


def _read_only() -> ReadOnlyError:
    return ReadOnlyError(
        "the session is read-only, or was committed: make the plan with repository.writable_session(branch)"
    )


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    """Raise icechunk's errors as `StoreError`."""
    icechunk = _import("icechunk")
    try:
        yield
    except icechunk.IcechunkError as error:
        raise StoreError(f"icechunk: {error}") from error
