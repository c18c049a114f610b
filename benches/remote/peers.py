"""The readers and writers of remote stores, each used as its documentation recommends.

They are limited to 64 concurrent requests, if they take a limit.
"""

import asyncio
import importlib
import warnings
from collections.abc import Coroutine
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benches.remote.data import SETS
from benches.selections import Selection

REQUESTS = 64
BUCKET = "bench"


def obstore_class(name: str) -> Any:
    """Import a class of obstore, which only the peers' environment has."""
    return getattr(importlib.import_module("obstore.store"), name)


def s3_store(prefix: str, endpoint: str, *, read_only: bool = False) -> Any:
    """Return a folder of the bucket as a store of zarr-python."""
    from zarr.storage import ObjectStore

    store = obstore_class("S3Store")(
        BUCKET,
        prefix=prefix,
        endpoint=endpoint,
        region="us-east-1",
        skip_signature=True,
        client_options={"allow_http": True},
    )
    return ObjectStore(store, read_only=read_only)


class RemotePeer:
    """A library, or a way of using one. The constructor imports the library."""

    name: ClassVar[str]
    package: ClassVar[str]

    def __init__(self, port: int) -> None:
        import zarr

        warnings.simplefilter("ignore")
        self.zarr: Any = zarr
        self.endpoint = f"http://127.0.0.1:{port}"
        zarr.config.set({"async.concurrency": REQUESTS})

    def url(self, name: str) -> str:
        """Return the HTTP URL of a set."""
        return f"{self.endpoint}/{BUCKET}/{name}.zarr"

    def zarr_store(self, name: str) -> Any:
        """Return a set on S3 as a store of zarr-python."""
        return s3_store(f"{name}.zarr", self.endpoint)

    def open(self, name: str) -> Any:
        """Open an array by HTTP."""
        raise NotImplementedError

    def read(self, array: Any, selection: Selection | None) -> Any:
        """Read a selection, or all of the array."""
        return array[...] if selection is None else array[selection]

    def coordinates(self, name: str) -> NDArray[Any]:
        """Open a group on S3 and read all of its arrays, which are alike."""
        raise NotImplementedError("opens no groups here")

    def tree(self, name: str) -> list[str]:
        """Open a group on S3 and name each node below it, with the shapes of arrays."""
        raise NotImplementedError("opens no groups here")

    def shape_of(self, name: str, path: str) -> tuple[int, ...]:
        """Open an array of a group on S3, of version 3."""
        raise NotImplementedError("cannot open arrays of groups here")

    def read_nodes(self, name: str, paths: list[str]) -> list[Any]:
        """Open arrays of a group on S3, all at once, and read each."""
        raise NotImplementedError("cannot open arrays of groups here")

    def each_of(self, name: str) -> list[Any]:
        """Loop over a group on S3 and read each of its arrays, one after the other."""
        raise NotImplementedError("opens no groups here")

    def names(self, name: str) -> list[str]:
        """Name the members of a group on S3."""
        raise NotImplementedError("opens no groups here")

    def open_to_write(self, name: str) -> Any:
        """Open an array on S3."""
        raise NotImplementedError("writes no arrays here")

    def write(self, array: Any, values: NDArray[Any]) -> None:
        """Write all of an array."""
        array[...] = values

    def write_columns(self, array: Any, values: NDArray[Any]) -> None:
        """Write the first columns of an array."""
        array[:, : values.shape[1]] = values

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Store arrays in a group on S3."""
        raise NotImplementedError("stores no groups here")

    def create(self, name: str, path: str, length: int, chunk: int, *, replace: bool = False) -> Any:
        """Create an empty line of float32 in a group on S3, also in the place of an array, and return it."""
        raise NotImplementedError("creates no arrays here")

    def erase(self, name: str, path: str) -> None:
        """Erase an array of a group on S3."""
        raise NotImplementedError("erases no arrays here")

    def set_attribute(self, array: Any, key: str, value: Any) -> None:
        """Set one attribute of an array."""
        array.attrs[key] = value

    def append(self, array: Any, values: NDArray[Any]) -> Any:
        """Append values to an array, and return the array."""
        array.append(values)
        return array

    def write_each(self, array: Any, parts: NDArray[Any]) -> None:
        """Write parts of an array, one after the other on its axis, by calls that are awaited together."""

        async def write_all() -> None:
            size = parts.shape[1]
            places = (slice(number * size, (number + 1) * size) for number in range(len(parts)))
            pairs = zip(places, parts, strict=True)
            await asyncio.gather(*(self.writing(array, place, part) for place, part in pairs))

        asyncio.run(write_all())

    def writing(self, array: Any, place: slice, part: NDArray[Any]) -> Any:
        """Begin to write a part of an array."""
        raise NotImplementedError("writes no arrays here")

    def saved(self, name: str, paths: list[str]) -> list[Any]:
        """Read stored arrays with zarr-python."""
        store = self.zarr_store(name)
        return [self.zarr.open_array(store, path=path, mode="r")[...] for path in paths]


class Zarrow(RemotePeer):
    name = "zarrow"
    package = "zarrow"

    def __init__(self, port: int) -> None:
        super().__init__(port)
        import zarrow

        self.zarrow: Any = zarrow
        self.options = {"anon": True, "endpoint_url": self.endpoint, "region": "us-east-1"}

    def open(self, name: str) -> Any:
        return self.zarrow.open(self.url(name))

    def open_to_write(self, name: str) -> Any:
        return self.zarrow.open(f"s3://{BUCKET}/{name}.zarr", storage_options=self.options)

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        store = self.zarrow.CloudStore(f"s3://{BUCKET}/{name}.zarr", self.options)
        self.zarrow.save(store, arrays)

    def create(self, name: str, path: str, length: int, chunk: int, *, replace: bool = False) -> Any:
        layout = {"shape": (length,), "chunks": (chunk,), "dtype": "float32", "compressors": None}
        return self.open_to_write(name).create_array(path, **layout, overwrite=replace)

    def erase(self, name: str, path: str) -> None:
        del self.open_to_write(name)[path]

    def writing(self, array: Any, place: slice, part: NDArray[Any]) -> Any:
        return array.write_async(place, part)

    def coordinates(self, name: str) -> NDArray[Any]:
        arrays = self.zarrow.load(f"s3://{BUCKET}/{name}.zarr", storage_options=self.options)
        return np.array([np.asarray(array) for _, array in sorted(arrays.items())])

    def tree(self, name: str) -> list[str]:
        members = self.open_to_write(name).members(max_depth=None)
        return [f"{path} {getattr(node, 'shape', '')}" for path, node in sorted(members)]

    def shape_of(self, name: str, path: str) -> tuple[int, ...]:
        url = f"s3://{BUCKET}/{name}.zarr"
        shape: tuple[int, ...] = self.zarrow.open(
            url, path, zarr_format=3, storage_options=self.options
        ).shape
        return shape

    def read_nodes(self, name: str, paths: list[str]) -> list[Any]:
        url = f"s3://{BUCKET}/{name}.zarr"

        async def read(path: str) -> Any:
            array = await self.zarrow.open_async(url, path, storage_options=self.options)
            return (await array.read_async()).numpy()

        async def read_all() -> list[Any]:
            return await asyncio.gather(*(read(path) for path in paths))

        return asyncio.run(read_all())

    def each_of(self, name: str) -> list[Any]:
        group = self.open_to_write(name)
        return [values for _, values in sorted((path, group[path][...].numpy()) for path in group)]

    def names(self, name: str) -> list[str]:
        names: list[str] = self.open_to_write(name).keys()
        return names


class ZarrPython(RemotePeer):
    package = "zarr"

    def read_store(self, name: str) -> Any:
        """Return a set by HTTP as a store."""
        raise NotImplementedError

    def open(self, name: str) -> Any:
        return self.zarr.open_array(self.read_store(name), mode="r")

    def open_to_write(self, name: str) -> Any:
        return self.zarr.open_array(self.zarr_store(name), mode="r+")

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        self.zarr.save_group(self.zarr_store(name), **arrays)

    def create(self, name: str, path: str, length: int, chunk: int, *, replace: bool = False) -> Any:
        layout = {"shape": (length,), "chunks": (chunk,), "dtype": "float32", "compressors": None}
        group = self.zarr.open_group(self.zarr_store(name), mode="r+")
        return group.create_array(path, **layout, overwrite=replace)

    def erase(self, name: str, path: str) -> None:
        del self.zarr.open_group(self.zarr_store(name), mode="r+")[path]

    def writing(self, array: Any, place: slice, part: NDArray[Any]) -> Any:
        return array.async_array.setitem(place, part)

    def coordinates(self, name: str) -> NDArray[Any]:
        group = self.zarr.open_group(self.zarr_store(name), mode="r")
        return np.array([array[...] for _, array in sorted(group.members())])

    def tree(self, name: str) -> list[str]:
        members = self.zarr.open_group(self.zarr_store(name), mode="r").members(max_depth=None)
        return [f"{path} {getattr(node, 'shape', '')}" for path, node in sorted(members)]

    def shape_of(self, name: str, path: str) -> tuple[int, ...]:
        array = self.zarr.open_array(self.zarr_store(name), path=path, mode="r", zarr_format=3)
        shape: tuple[int, ...] = array.shape
        return shape

    def read_nodes(self, name: str, paths: list[str]) -> list[Any]:
        store = self.zarr_store(name)

        async def read(path: str) -> Any:
            array = await self.zarr.api.asynchronous.open_array(store=store, path=path, zarr_format=3)
            return await array.getitem(...)

        async def read_all() -> list[Any]:
            return await asyncio.gather(*(read(path) for path in paths))

        return asyncio.run(read_all())

    def each_of(self, name: str) -> list[Any]:
        group = self.zarr.open_group(self.zarr_store(name), mode="r")
        return [values for _, values in sorted((path, array[...]) for path, array in group.arrays())]

    def names(self, name: str) -> list[str]:
        return list(self.zarr.open_group(self.zarr_store(name), mode="r").keys())


class Obstore(ZarrPython):
    name = "zarr-python+obstore"

    def read_store(self, name: str) -> Any:
        from zarr.storage import ObjectStore

        options = {"allow_http": True}
        return ObjectStore(
            obstore_class("HTTPStore").from_url(self.url(name), client_options=options), read_only=True
        )


class Fsspec(ZarrPython):
    name = "zarr-python+fsspec"
    package = "fsspec"

    def read_store(self, name: str) -> Any:
        return self.url(name)


class Zarrs(Fsspec):
    """zarrs reads HTTP directly if the store is one of fsspec."""

    name = "zarr-python+zarrs"
    package = "zarrs"

    def __init__(self, port: int) -> None:
        super().__init__(port)
        import zarrs  # noqa: F401

        self.zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class Zarrista(RemotePeer):
    name = "zarrista"
    package = "zarrista"

    def __init__(self, port: int) -> None:
        super().__init__(port)
        import zarrista

        self.zarrista: Any = zarrista
        self.loop = asyncio.new_event_loop()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine."""
        return self.loop.run_until_complete(coroutine)

    def open(self, name: str) -> Any:
        store = obstore_class("HTTPStore").from_url(self.url(name), client_options={"allow_http": True})

        async def opened() -> Any:
            return await self.zarrista.AsyncArray.open(store)

        return self.run(opened())

    def read(self, array: Any, selection: Selection | None) -> Any:
        async def result() -> Any:
            return await (array[...] if selection is None else array[selection])

        return self.run(result())


class Tensorstore(RemotePeer):
    name = "tensorstore"
    package = "tensorstore"

    def __init__(self, port: int) -> None:
        super().__init__(port)
        import tensorstore

        self.tensorstore: Any = tensorstore
        limit = {"limit": REQUESTS}
        self.context: Any = tensorstore.Context(
            {"http_request_concurrency": limit, "s3_request_concurrency": limit}
        )

    def opened(self, kvstore: Any) -> Any:
        """Open an array."""
        return self.tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, context=self.context).result()

    def open(self, name: str) -> Any:
        return self.opened(f"{self.url(name)}/")

    def read(self, array: Any, selection: Selection | None) -> Any:
        return (array if selection is None else array[selection]).read().result()

    def place(self, path: str) -> dict[str, Any]:
        """Return a driver's specification of a location on S3."""
        place = {"driver": "s3", "bucket": BUCKET, "path": f"{path}/", "endpoint": self.endpoint}
        return {**place, "aws_region": "us-east-1", "aws_credentials": {"type": "anonymous"}}

    def open_to_write(self, name: str) -> Any:
        return self.opened(self.place(f"{name}.zarr"))

    def opening(self, name: str, path: str) -> Any:
        """Begin to open an array of a group on S3, without a cache."""
        spec = {
            "driver": "zarr3",
            "kvstore": self.place(f"{name}.zarr/{path}"),
        }
        return self.tensorstore.open(spec, context=self.context)

    def shape_of(self, name: str, path: str) -> tuple[int, ...]:
        return tuple(self.opening(name, path).result().shape)

    def read_nodes(self, name: str, paths: list[str]) -> list[Any]:
        arrays = [self.opening(name, path) for path in paths]
        return [read.result() for read in [array.result().read() for array in arrays]]

    def each_of(self, name: str) -> list[Any]:
        return [self.opening(name, path).result().read().result() for path in self.names(name)]

    def names(self, name: str) -> list[str]:
        store = self.tensorstore.KvStore.open(self.place(f"{name}.zarr"), context=self.context).result()
        keys = [key.decode() for key in store.list().result()]
        return sorted({key.split("/")[0] for key in keys if key.endswith("/zarr.json")})

    def write(self, array: Any, values: NDArray[Any]) -> None:
        array.write(values).result()

    def write_columns(self, array: Any, values: NDArray[Any]) -> None:
        array[:, : values.shape[1]].write(values).result()

    def create(self, name: str, path: str, length: int, chunk: int, *, replace: bool = False) -> Any:
        return self.creating(name, path, length, chunk, np.dtype("float32"), [], replace).result()

    def creating(
        self,
        name: str,
        path: str,
        length: int,
        chunk: int,
        dtype: np.dtype[Any],
        compressors: list[dict[str, Any]],
        replace: bool = False,
    ) -> Any:
        """Begin to create a line. It has no groups: there is no document of one."""
        spec = {
            "driver": "zarr3",
            "kvstore": self.place(f"{name}.zarr/{path}"),
            "metadata": {
                "shape": [length],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
                "data_type": dtype.name,
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, *compressors],
            },
        }
        return self.tensorstore.open(spec, context=self.context, create=True, delete_existing=replace)

    def erase(self, name: str, path: str) -> None:
        store = self.tensorstore.KvStore.open(self.place(f"{name}.zarr/{path}"), context=self.context)
        store.result().delete_range(self.tensorstore.KvStore.KeyRange()).result()

    def set_attribute(self, array: Any, key: str, value: Any) -> None:
        raise NotImplementedError("changes no attributes of an array")

    def append(self, array: Any, values: NDArray[Any]) -> Any:
        length = array.shape[0]
        grown = array.resize(exclusive_max=[length + len(values)], expand_only=True).result()
        grown[length : length + len(values)].write(values).result()
        return grown

    def write_each(self, array: Any, parts: NDArray[Any]) -> None:
        size = parts.shape[1]
        writes = [array[number * size : (number + 1) * size].write(part) for number, part in enumerate(parts)]
        for write in writes:
            write.result()

    def save(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        zstd = [{"name": "zstd", "configuration": {"level": 1}}]
        opening = [
            (self.creating(name, path, len(values), len(values), values.dtype, zstd), values)
            for path, values in arrays.items()
        ]
        writes = [array.result().write(values) for array, values in opening]
        for write in writes:
            write.result()


class Curl(RemotePeer):
    """Not a reader of Zarr: fetches the chunks of a line into the result by libcurl's multi interface."""

    name = "curl"
    package = "pycurl"

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.pycurl: Any = importlib.import_module("pycurl")
        self.multi: Any = self.pycurl.CurlMulti()
        self.handles: list[Any] = [self.pycurl.Curl() for _ in range(REQUESTS)]
        for handle in self.handles:
            handle.setopt(self.pycurl.BUFFERSIZE, 512 << 10)

    def open(self, name: str) -> Any:
        return name

    def read(self, array: str, selection: Selection | None) -> NDArray[Any]:
        described = SETS[array]
        result = np.empty(described.shape, np.float32)
        place = memoryview(result).cast("B")
        size = described.chunks[0] * 4
        waiting = list(range(len(place) // size))[::-1]
        free, left = list(self.handles), len(waiting)
        while left:
            while free and waiting:
                self.begin(free.pop(), f"{self.url(array)}/c/{(at := waiting.pop())}", place[at * size :])
            self.multi.perform()
            _, done, failed = self.multi.info_read()
            if failed:
                raise OSError(failed[0][2])
            for handle in done:
                self.multi.remove_handle(handle)
                free.append(handle)
                left -= 1
            if left:
                self.multi.select(1.0)
        return result

    def begin(self, handle: Any, url: str, place: memoryview) -> None:
        """Fetch a value into its destination."""
        came = 0

        def take(frame: bytes) -> None:
            nonlocal came
            place[came : came + len(frame)] = frame
            came += len(frame)

        handle.setopt(self.pycurl.URL, url)
        handle.setopt(self.pycurl.WRITEFUNCTION, take)
        self.multi.add_handle(handle)


PEERS: dict[str, type[RemotePeer]] = {
    peer.name: peer for peer in (Zarrow, Obstore, Fsspec, Zarrs, Zarrista, Tensorstore, Curl)
}
