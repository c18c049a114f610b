"""Places of intermediate arrays: beside the target of a copy in two passes.

1. The place's name has a hash of the plan's arrays. So no other plan has the same place, and a plan finds its
   own again after a kill.
2. Each array has a token, which begins with this hash. Only such arrays are erased.
3. Erasing first changes the token, and ends with the array's document. A running job would read missing
   chunks: after each read, it checks the token. After a kill, the array is still known.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _StoredValues
from zarrow.api.array_options import Store
from zarrow.errors import NodeExistsError, NotFoundError
from zarrow.groups.places import joined, without_scheme
from zarrow.jobs.ledger import Ledger, beside, paths_of

if TYPE_CHECKING:
    from zarrow.jobs.selecting import Copied

# Attribute with the token.
TOKEN = "zarrow_copy"

# End of the place's name, before the hash.
ENDING = ".intermediate-"

# Name of the folder of chunks.
_CHUNKS = "c"


def name_of(items: Mapping[str, Copied], target: Store, ledger: Store | None, memory_nbytes: int) -> str:
    """Return a hash of what a copy does, and where its ledger is (step 1)."""
    stores = [str(target), str(beside(target, ".jobs") if ledger is None else ledger)]
    places = {below: item.created[0].path for below, item in items.items()}
    identities = {below: item.identity() for below, item in items.items()}
    text = json.dumps([stores, places, identities, memory_nbytes], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def new_token(name: str) -> str:
    """Return a token of a place, which no other call returns."""
    return f"{name}-{secrets.token_hex(8)}"


def store_beside(target: Store, ledger: Store | None, name: str) -> Store | None:
    """Return the store of intermediate arrays, beside the target or else the ledger; `None` without one."""
    ending = ENDING + name
    return beside(target, ending) or (None if ledger is None else beside(ledger, ending))


def forget_other(ledger: Store, name: str, attributes: Mapping[str, Any], target: Store) -> None:
    """Delete another plan's intermediate arrays, the ledger of its first pass, and its own ledger."""
    place = attributes.get("intermediate")
    # People can edit the ledger.
    store = (
        store_beside(target, ledger, place)
        if isinstance(place, str) and re.fullmatch("[0-9a-f]{16}", place)
        else None
    )
    if store is not None:
        paths = paths_of(attributes)
        erase(store, str(place), paths)
        for first, _ in Ledger(ledger, name).others(str(store), paths):
            Ledger(ledger, first).erase()
    Ledger(ledger, name).erase()


def check_free(store: Store, name: str, paths: Collection[str]) -> None:
    """Refuse a place with anything but arrays of this name.

    Raises
    ------
    NodeExistsError
        There is something else.
    """
    with contextlib.suppress(NotFoundError):
        values = _StoredValues(store, create=False)
        for path in paths:
            if not _is_own(values, name, path):
                raise NodeExistsError(
                    f"{joined(str(store), path)} is the place of an intermediate array, and has something "
                    "else: move it, or pass passes=1",
                    store=str(store),
                    path=path,
                )


def erase(store: Store, name: str, paths: Collection[str]) -> None:
    """Erase intermediate arrays (steps 2 and 3), and groups above them that have no other member."""
    with contextlib.suppress(NotFoundError):
        values = _StoredValues(store, create=False)
        for path in paths:
            if not _is_own(values, name, path):
                continue
            document = joined(path, "zarr.json")
            found = _document(values, path)
            if found is not None:
                found["attributes"][TOKEN] = new_token(name)
                values.set(document, json.dumps(found).encode())
            values.erase(joined(path, _CHUNKS))
            values.erase_prefix(joined(path, _CHUNKS))
            values.erase(document)
            _remove_empty(store, path)
            for above in _above(path):
                if values.list(above) == ["zarr.json"]:
                    values.erase(joined(above, "zarr.json"))
                _remove_empty(store, above)
    _remove_empty(store, "")


def _is_own(values: _StoredValues, name: str, path: str) -> bool:
    """Return whether a path has nothing, an intermediate array of this name, or chunks without a document."""
    names = set(values.list(path))
    if "zarr.json" not in names:
        return names <= {_CHUNKS}
    found = _document(values, path)
    return found is not None and str(found["attributes"].get(TOKEN, "")).startswith(f"{name}-")


def _document(values: _StoredValues, path: str) -> dict[str, Any] | None:
    """Return the document of an array with attributes; `None` for another one."""
    try:
        match json.loads(values.get_each([joined(path, "zarr.json")])[0] or b"null"):
            case {"node_type": "array", "attributes": dict()} as found:
                return dict(found)
    except ValueError:
        pass
    return None


def _remove_empty(store: Store, path: str) -> None:
    """Remove a local folder that has at most temporary files of killed writers."""
    if not isinstance(store, str) or "://" in without_scheme(store):
        return
    folder = Path(without_scheme(store), path)
    with contextlib.suppress(OSError):
        left = list(folder.iterdir())
        if all(each.name.startswith(".zarrow-") for each in left):
            for each in left:
                each.unlink()
            folder.rmdir()


def _above(path: str) -> Iterator[str]:
    """Yield the paths above a node, up to the root."""
    while path:
        path = path.rpartition("/")[0]
        yield path
