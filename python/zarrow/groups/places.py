"""Where nodes are stored, as texts that can be compared.

A place is the real path of a folder or the URL of a store, and then the path of the node. Two names of one
folder have one place. The place of a store object without a name is unknown, except for sessions of icechunk.
"""

from __future__ import annotations

import os
from typing import Any

from zarrow._zarrow import Array, CloudStore, Group, open
from zarrow.errors import NotFoundError, ReadOnlyError
from zarrow.store_objects.icechunk_sessions import session_of


def place(store: Any, path: str) -> str | None:
    """Return the place of a node; `None` in a store object without a name."""
    if isinstance(store, CloudStore):
        store = store.__reduce__()[1][0]
    elif isinstance(store, os.PathLike):
        store = os.fspath(store)
    if not isinstance(store, str):
        session = session_of(store)
        if session is None or session.read_only:
            return None
        # Sessions of other snapshots do not see what this one writes.
        store = f"icechunk://{session.branch}@{session.snapshot_id}"
    store = without_scheme(store)
    if "://" not in store:
        from pathlib import Path

        # Folders on the way to a node may be links, too.
        return Path(store, path.strip("/")).resolve().as_posix()
    return joined(store.rstrip("/"), path.strip("/"))


def without_scheme(store: str) -> str:
    """Return the path of a `file://` URL, and any other store as it is."""
    scheme, separator, rest = store.partition("://")
    if not separator or scheme.lower() != "file":
        return store
    from urllib.parse import unquote

    return unquote(rest.removeprefix("localhost"))


def node_at(store: Any, path: str = "") -> Array | Group | None:
    """Open a node to read it, or return `None` if it does not exist."""
    try:
        return open(store, path, mode="r")
    except NotFoundError:
        return None


def joined(*names: str) -> str:
    """Return the path of names below each other."""
    return "/".join(name for name in names if name)


def place_of(node: Array | Group) -> str | None:
    """Return the place of an opened node."""
    return place(store_of(node), node.path)


def store_of(node: Array | Group) -> Any:
    """Return the store of a node, with its options, as the node is pickled with it."""
    return node.__reduce__()[1][0]


def refuse_read_only(node: Array | Group) -> None:
    """Refuse a node that was opened to be read: its store alone may be writable.

    Raises
    ------
    ReadOnlyError
        The node was opened with mode `"r"`, or its store is read-only.
    """
    if node._is_read_only():
        refuse_references(node.store)
        kind, session = "array" if isinstance(node, Array) else "group", session_of(store_of(node))
        is_session = session is not None and session.read_only
        advice = "make a repository.writable_session(branch)" if is_session else "open it with mode='r+'"
        raise ReadOnlyError(f"{kind} {node.path!r} in {node.store} is read-only: {advice}", node=node)


def refuse_references(store: Any) -> None:
    """Refuse to write to a location of references.

    Raises
    ------
    ReadOnlyError
        The location is one.
    """
    if isinstance(store, str) and store.startswith("reference://"):
        raise ReadOnlyError(f"references are only read: {store}", store=store)


def place_below(above: str, name: str) -> str:
    """Return the place of a member of a group, by the place of the group."""
    if "://" in above:
        return f"{above}/{name}"
    from pathlib import Path

    found = Path(above, name)
    return found.resolve().as_posix() if found.is_symlink() else found.as_posix()


def is_within(one: str, other: str | None) -> bool:
    """Return whether a node is another one, or below it."""
    return other is not None and (one == other or one.startswith(other + "/"))


def may_be_one_server(one: CloudStore, other: CloudStore) -> bool:
    """Whether two stores may have the same server and account."""
    places = [_server_of(store) for store in (one, other)]
    return all(
        len({place[option] for place in places if option in place}) < 2 for option in ("endpoint", "account")
    )


def _server_of(store: CloudStore) -> dict[str, str]:
    """Return the endpoint and the account that the options of a store name."""
    options = dict(store.__reduce__()[1][1] or {})
    options.update(options.pop("client_kwargs", None) or {})
    return {
        option: str(value).rstrip("/")
        for name, value in options.items()
        for option in ("endpoint", "account")
        if str(name).lower().endswith((option, f"{option}_url", f"{option}_name"))
    }
