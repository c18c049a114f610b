"""Documents of arrays that grow: as they were read, claimed, and replaced together.

1. Elements are written behind the end of an array, where no reader sees them. Then its document gets the new
   shape, unless another writer has changed it.
2. If one of several documents has changed, or a request fails, the old documents are restored.
3. A document is ours while its claim is (`append_claims`). A renewed claim may be stored before its answer
   arrives, or without one: each number of ours counts.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from zarrow._zarrow import Array, Group, _StoredValues, open
from zarrow.api import concurrent_calls
from zarrow.errors import NotFoundError, StaleHandleError, ZarrowError
from zarrow.groups.append_claims import Claims, claimed, split

_NAMES = {2: ".zarray", 3: "zarr.json"}


def key_of(array: Array) -> str:
    """Return the key of an array's document."""
    return "/".join(filter(None, (array.path, _NAMES[array.zarr_format])))


class ArrayDocuments:
    """Documents of arrays by key, as they were read.

    Attributes
    ----------
    contents
        The documents without claims.
    others
        The numbers of other writers' claims.
    claims
        The claims on these documents, which are renewed until `replace`.
    """

    claims: Claims | None = None

    def __init__(self, stored: _StoredValues, keys: Sequence[str]) -> None:
        self._stored = stored
        self._own: defaultdict[str, set[bytes]] = defaultdict(set)
        self.others: dict[str, bytes] = {}
        self.contents: dict[str, bytes] = {}
        self._versions: dict[str, str] = {}
        self._is_local = stored.is_local()
        if self._is_local:
            found = [(value or b"", "") for value in stored.get_each(keys)]
        else:
            found = [value or (b"", "") for value in stored.get_versions(keys)]
        for key, (value, version) in zip(keys, found, strict=True):
            if not value:
                raise NotFoundError(f"{key!r} does not exist: the array was erased")
            self.contents[key], number = split(value)
            self._versions[key] = version
            if number is not None:
                self.others[key] = number

    @property
    def are_conditional(self) -> bool:
        """Whether the store replaces documents on a condition: known after the first claim."""
        return self._is_local or (self._stored.has_conditions() and all(self._versions.values()))

    def shape(self, key: str) -> list[int]:
        """Return the shape that a document says."""
        shape = json.loads(self.contents[key]).get("shape")
        if not isinstance(shape, list):
            raise changed(key)
        return shape

    def longer(self, key: str, axis: int, added: int) -> bytes:
        """Return the document of an array with more elements along an axis."""
        metadata = json.loads(self.contents[key])
        metadata["shape"][axis] += added
        return json.dumps(metadata, indent=2).encode()

    def claim(self, key: str, number: bytes) -> bool:
        """Put a claim on a document, or replace the own one."""
        self._own[key].add(number)
        version = self._stored.set_if(key, claimed(self.contents[key], number), self._versions[key])
        if version is None:
            return False
        self._versions[key] = version
        return True

    def claimed_keys(self) -> list[str]:
        """Return the keys of documents that may have a claim."""
        return list(self._own)

    def release(self, key: str) -> None:
        """Remove the own claim from a document."""
        [found] = self._stored.get_versions([key])
        if found is not None:
            content, number = split(found[0])
            if number in self._own[key]:
                self._stored.set_if(key, content, found[1])

    def is_ours(self, key: str) -> bool:
        """Return whether no other writer has changed a document since it was claimed (step 3)."""
        [found] = self._stored.get_versions([key])
        now, number = (None, None) if found is None else split(found[0])
        # The engine keeps a claim in a document that it changes.
        return now == self.contents[key] and number in self._own[key]

    def replace(self, after: Mapping[str, bytes], kept: list[str]) -> str | None:
        """Replace all documents, or none; return the key of one that has changed (step 2).

        On an error, `kept` has the keys of documents that may be replaced.
        """
        if self._is_local:
            return self._stored.commit([(key, self.contents[key], new) for key, new in after.items()])
        if self.claims is not None:
            self.claims.keep()
        refused: list[str] = []
        others: set[str] = set()

        def put(key: str) -> None:
            if self._stored.set_if(key, after[key], self._versions[key]) is None:
                refused.append(key)
                others.add(key)

        try:
            concurrent_calls.run([partial(put, key) for key in after])
        except BaseException:
            refused.append("")
            raise
        finally:
            if refused:
                # Equal bytes of another writer are not ours.
                ours = {key: new for key, new in after.items() if key not in others}
                kept.extend(ours)
                self._restore(ours, kept)
        if refused:
            return refused[0]
        # The new documents have no claims.
        self._own.clear()
        return None

    def _restore(self, after: Mapping[str, bytes], kept: list[str]) -> None:
        """Put the old documents in place of the new ones, and remove these keys from `kept`."""
        with contextlib.suppress(ZarrowError, OSError):
            # A lost answer may hide that a document was replaced.
            found = self._stored.get_versions(list(after))
            for (key, new), now in zip(after.items(), found, strict=True):
                is_new = now is not None and now[0] == new
                if not is_new or (now and self._stored.set_if(key, self.contents[key], now[1]) is not None):
                    kept.remove(key)


def changed(key: str) -> StaleHandleError:
    """Return the error for a document that another writer has changed."""
    return StaleHandleError(f"{key!r} was changed by another writer during the append: repeat it")


def is_consolidated(store: Any, path: str) -> bool:
    """Return whether a group above a node has consolidated metadata."""
    names, found = path.split("/"), list[bool]()

    def look(above: str) -> None:
        with contextlib.suppress(NotFoundError):
            node = open(store, above, mode="r")
            found.append(isinstance(node, Group) and node._is_consolidated())

    if path:
        concurrent_calls.run([partial(look, "/".join(names[:count])) for count in range(len(names))])
    return any(found)
