"""Stores of obstore with options that the engine does not know.

zarrow calls obstore's own functions, which return the version of a value (its ETag) and support puts on the
condition of a version. Their threads do not exist in a forked child.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import
from zarrow.store_objects.store_adapter import AsyncAdapter

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest


def _version(meta: Any) -> str | None:
    """Return the version of a value; None if it is unreliable."""
    tag = meta.get("e_tag")
    return tag if tag and not tag.startswith("W/") else None


def kind_of(store: Any) -> str | None:
    """Return the obstore class of a store, also for a subclass; None for other objects."""
    return next((kind.__name__ for kind in type(store).__mro__ if kind.__module__ == "obstore.store"), None)


class ObstoreAdapter(AsyncAdapter):
    """Asks a store of obstore."""

    forks = False

    def __init__(self, store: Any, source: Any) -> None:
        super().__init__(source, store)
        self.store = store
        kind = kind_of(store)
        self.is_writable = kind != "HTTPStore"
        # A folder and a web server have no conditional puts.
        self.has_conditions = kind in ("S3Store", "GCSStore", "AzureStore", "MemoryStore")
        self.has_suffix = kind != "AzureStore"
        self.obstore: Any = _import("obstore")

    async def get(self, request: _StoreRequest) -> None:
        """Answer with a value, or with a range."""
        options: dict[str, Any] = {}
        if request.range is not None:
            options["range"] = request.range
        elif request.suffix is not None:
            options["range"] = {"suffix": request.suffix}
        if request.if_version is not None:
            options["if_match"] = request.if_version
        try:
            answer = await self.obstore.get_async(self.store, request.key, options=options)
            value = await answer.bytes_async()
        except FileNotFoundError:
            request.missing()
            return
        except self.obstore.exceptions.PreconditionError:
            request.changed()
            return
        request.found(memoryview(value), answer.range[0], answer.meta["size"], _version(answer.meta))

    async def measure(self, request: _StoreRequest) -> None:
        """Answer with the size and the version of a value."""
        assert request.range is not None
        try:
            meta = await self.obstore.head_async(self.store, request.key)
        except FileNotFoundError:
            request.missing()
            return
        version = _version(meta)
        if request.if_version is not None and version != request.if_version:
            request.changed()
            return
        request.found(b"", request.range[0], meta["size"], version)

    async def list(self, request: _StoreRequest) -> None:
        """Answer with the entries below a prefix."""
        prefix = request.key or None
        if not request.recursive:
            found = await self.obstore.list_with_delimiter_async(self.store, prefix)
            values = [(value["path"], value["size"]) for value in found["objects"]]
            request.listed(values, list(found["common_prefixes"]))
            return
        values = []
        async for batch in self.obstore.list(self.store, prefix):
            values.extend((value["path"], value["size"]) for value in batch)
        request.listed(values, [])

    async def put(self, request: _StoreRequest) -> None:
        """Set a value, if its condition is met."""
        errors = self.obstore.exceptions
        mode: Any = "overwrite"
        if request.if_absent:
            mode = "create"
        elif request.if_version is not None:
            mode = {"e_tag": request.if_version}
        try:
            put = await self.obstore.put_async(self.store, request.key, request.body, mode=mode)
        except (errors.AlreadyExistsError, errors.PreconditionError):
            request.conflict()
            return
        except errors.NotSupportedError as error:
            request.unsupported(f"{self.name}: {error}")
            return
        request.changed_it(_version(put))

    async def delete(self, request: _StoreRequest) -> None:
        """Take values away."""

        async def one(key: str) -> None:
            with suppress(FileNotFoundError):
                await self.obstore.delete_async(self.store, key)

        keys = request.keys
        for start in range(0, len(keys), 64):
            await asyncio.gather(*map(one, keys[start : start + 64]))
        request.changed_it()
