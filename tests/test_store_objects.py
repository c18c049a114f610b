"""Store objects of other libraries, and mappings: real ones, some over servers on the loopback interface."""

from __future__ import annotations

import asyncio
import collections
import functools
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import icechunk
import numpy as np
import pytest
import zarr
import zarr.storage
from obstore.store import HTTPStore, LocalStore, MemoryStore, S3Store

import zarrow
from zarrow.errors import (
    NotFoundError,
    ReadOnlyError,
    StoreError,
    StorePermissionError,
    UnsupportedError,
)
from zarrow.store_objects import native, resolve

pytestmark = pytest.mark.filterwarnings(
    # Python warns of every fork of a process with threads; what zarrow promises of it is what is tested.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    "ignore::zarr.errors.ZarrUserWarning",
)

VALUES = np.arange(60 * 40, dtype="i4").reshape(60, 40)
NAMES = ["Oslo", "Rome", "Quito"]


class OwnStore(zarr.storage.MemoryStore):
    """A subclass of a user's own, which the engine must not take for its parent."""


class OwnMapping(collections.UserDict[str, bytes]):
    """A mapping that is no dict."""


def icechunk_session() -> Any:
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    return repository.writable_session("main").store


def memory_files(name: str) -> Any:
    fs = fsspec.filesystem("memory")
    if fs.exists(f"/{name}"):
        fs.rm(f"/{name}", recursive=True)
    return fs


# Each kind of store, made in a folder.
KINDS: dict[str, Callable[[Path], Any]] = {
    "dict": lambda _: {},
    "mapping": lambda _: zarrow.PythonStore(OwnMapping(), sole_writer=True),
    "zarr-local": lambda folder: zarr.storage.LocalStore(folder / "local"),
    "zarr-memory": lambda _: zarr.storage.MemoryStore(),
    "zarr-own": lambda _: zarrow.PythonStore(OwnStore(), sole_writer=True),
    "zarr-logging": lambda _: zarrow.PythonStore(
        zarr.storage.LoggingStore(zarr.storage.MemoryStore(), log_level="CRITICAL"), sole_writer=True
    ),
    "zarr-fsspec-local": lambda folder: zarr.storage.FsspecStore.from_url(f"file://{folder}/fsspec"),
    "zarr-fsspec-memory": lambda _: zarrow.PythonStore(
        zarr.storage.FsspecStore.from_mapper(fsspec.FSMap("/from-zarr", memory_files("from-zarr"))),
        sole_writer=True,
    ),
    "zarr-obstore": lambda _: zarr.storage.ObjectStore(MemoryStore()),
    "obstore-local": lambda folder: LocalStore(folder / "obstore", mkdir=True),
    "obstore-memory": lambda _: MemoryStore(),
    "fsmap-local": lambda folder: fsspec.get_mapper(f"file://{folder}/fsmap"),
    "fsmap-memory": lambda _: zarrow.PythonStore(
        fsspec.FSMap("/mapper", memory_files("mapper")), sole_writer=True
    ),
    "icechunk": lambda _: icechunk_session(),
}
# Those whose library does not work in a forked child.
WITHOUT_FORK = {"icechunk", "obstore-memory", "zarr-obstore"}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Any:
    return KINDS[kind](tmp_path)


def fill(store: Any) -> Any:
    """A group with arrays of each kind."""
    root = zarrow.create_group(store, attributes={"title": "rain"})
    root.create_array("plain", data=VALUES, chunks=(16, 10))
    root.create_array("group/sharded", data=VALUES, chunks=(8, 8), shards=(32, 24), compressors=None)
    root["names"] = NAMES
    return root


SELECTIONS = [np.s_[...], np.s_[3:50:7, 5], np.s_[::-1, 30:], np.s_[[3, 59, 0]]]


def check(root: Any) -> None:
    for name in ("plain", "group/sharded"):
        for selection in SELECTIONS:
            np.testing.assert_array_equal(np.asarray(root[name].oindex[selection]), VALUES[selection])
    assert root["names"][:].tolist() == NAMES


def test_a_tree_is_written_and_read(store: Any) -> None:
    fill(store)
    root = zarrow.open(store)
    check(root)
    assert sorted(root.keys()) == ["group", "names", "plain"] and dict(root.attrs) == {"title": "rain"}
    assert root["plain"].nbytes_stored() > 0
    assert zarrow.open(store, "group/sharded", mode="r")[8, 8] == VALUES[8, 8]
    assert zarrow.load(store, "names").tolist() == NAMES
    root.consolidate_metadata()
    assert zarrow.open(store)["plain"].shape == (60, 40)


def test_parts_attributes_and_erasing(store: Any, kind: str) -> None:
    root = zarrow.create_group(store)
    expected = np.zeros((20, 12), "i4")
    array = root.create_array("a", shape=(20, 12), dtype="i4", chunks=(6, 5))
    shards = root.create_array("b", shape=(20, 12), dtype="i4", chunks=(3, 3), shards=(9, 6))
    parts = [(np.s_[:], np.s_[:], 5), (np.s_[2:9], np.s_[1:11], 7), (np.s_[3:4], np.s_[:], 0)]
    for rows, columns, value in parts:
        expected[rows, columns] = value
        array[rows, columns] = value
        shards[rows, columns] = value
        np.testing.assert_array_equal(np.asarray(array[...]), expected)
        np.testing.assert_array_equal(np.asarray(shards[...]), expected)
    array.append(np.ones((2, 12), "i4"))
    array.attrs["units"] = "mm"
    found = zarrow.open(store, "a")
    assert found.shape == (22, 12) and found.attrs["units"] == "mm" and int(found[21, 11]) == 1
    del root["a"]
    assert sorted(zarrow.open(store).keys()) == ["b"]
    with pytest.raises(NotFoundError):
        zarrow.open(store, "a")
    replaced = root.create_array("b", data=np.arange(3), overwrite=True)
    assert replaced[...].tolist() == zarrow.open(store, "b")[...].tolist() == [0, 1, 2]


def test_what_zarr_python_writes_is_read_and_the_other_way_round(tmp_path: Path) -> None:
    makers: list[Callable[[], Any]] = [
        zarr.storage.MemoryStore,
        OwnStore,
        lambda: zarr.storage.LocalStore(tmp_path / "both"),
        lambda: zarr.storage.ObjectStore(MemoryStore()),
        icechunk_session,
    ]
    for make in makers:
        store = make()
        theirs = zarr.create_group(store)
        theirs.create_array("x", data=VALUES, chunks=(7, 40))
        root = zarrow.open(store)
        np.testing.assert_array_equal(np.asarray(root["x"][...]), VALUES)
        root.create_array("y", data=VALUES[:5], chunks=(2, 40))
        np.testing.assert_array_equal(theirs["y"][...], VALUES[:5])  # type: ignore[index]


def test_known_stores_are_read_by_the_engine_itself(tmp_path: Path) -> None:
    for made in (
        zarr.storage.LocalStore(tmp_path),
        LocalStore(tmp_path),
        zarr.storage.ObjectStore(LocalStore(tmp_path)),
        fsspec.get_mapper(f"file://{tmp_path}"),
        zarr.storage.FsspecStore.from_url(f"file://{tmp_path}"),
    ):
        assert native.resolve(made) == (tmp_path, False)
    assert resolve(OwnStore())[0].name == "test_store_objects.OwnStore"  # type: ignore[index, union-attr]
    assert resolve(object()) is None and resolve(7) is None and resolve([b"a"]) is None


def test_what_is_read_only_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "data.zarr"
    fill(folder)
    for store in (
        zarr.storage.LocalStore(folder, read_only=True),
        zarr.storage.ObjectStore(LocalStore(folder), read_only=True),
        zarr.storage.LoggingStore(zarr.storage.LocalStore(folder, read_only=True), log_level="CRITICAL"),
    ):
        root = zarrow.open(store)
        check(root)
        with pytest.raises(ReadOnlyError):
            root["plain"][0] = 1
        with pytest.raises(ReadOnlyError):
            zarrow.create_array(store, "new", shape=3, dtype="u1")
        assert pickle.loads(pickle.dumps(root))["plain"][0, 1] == 1
    check(zarrow.open(folder))


def test_without_conditions_parts_are_refused_and_whole_chunks_written() -> None:
    store = OwnMapping()
    array = zarrow.create_array(store, shape=8, dtype="u1", chunks=4)
    array[:4] = 1
    with pytest.raises(UnsupportedError, match="write whole chunks"):
        array[3:5] = 2
    with pytest.raises(UnsupportedError):
        array.attrs["a"] = 1
    assert array[...].tolist() == [1] * 4 + [0] * 4
    ours = zarrow.open(zarrow.PythonStore(store, sole_writer=True))
    ours[3:5] = 2
    assert array[...].tolist() == [1, 1, 1, 2, 2, 0, 0, 0]


@pytest.mark.parametrize("name", ["dict", "zarr-memory", "icechunk", "obstore-memory", "mapping"])
def test_writers_of_parts_of_one_chunk_lose_nothing(name: str, tmp_path: Path) -> None:
    store = KINDS[name](tmp_path)
    zarrow.create_array(store, shape=32, dtype="u1", chunks=32)

    def write(number: int) -> None:
        zarrow.open(store)[number] = number + 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(32)))
    assert zarrow.open(store)[...].tolist() == list(range(1, 33))


def test_threads(store: Any) -> None:
    fill(store)
    root = zarrow.open(store)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: check(root), range(24)))


def test_async_code(store: Any) -> None:
    fill(store)

    async def read() -> None:
        root = await zarrow.open_async(store)
        arrays = [root["plain"], root["group/sharded"]] * 8
        found = await asyncio.gather(*(array.read_async(np.s_[5:55]) for array in arrays))
        assert all((np.asarray(one) == VALUES[5:55]).all() for one in found)

    asyncio.run(read())


def in_child(read: Callable[[], None], pipe: Any) -> None:
    try:
        read()
        pipe.send(None)
    except BaseException as error:
        pipe.send(error)
        raise


def run_in_child(start: str, read: Callable[[], None]) -> BaseException | None:
    """What a child raises that a process starts so."""
    context = multiprocessing.get_context(start)
    ours, theirs = context.Pipe()
    child = context.Process(target=in_child, args=(read, theirs))  # type: ignore[attr-defined]
    child.start()
    theirs.close()
    if not ours.poll(60):
        child.kill()
        pytest.fail("the child hangs")
    found: BaseException | None = ours.recv()
    child.join()
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_workers(store: Any, kind: str) -> None:
    fill(store)
    root = zarrow.open(store)
    check(root)
    found = run_in_child("fork", lambda: check(root))
    if kind in WITHOUT_FORK:
        assert isinstance(found, UnsupportedError) and "spawn" in str(found)
    else:
        assert found is None
    check(root)


@pytest.mark.parametrize(
    "name", ["dict", "mapping", "zarr-local", "zarr-memory", "obstore-local", "fsmap-local"]
)
def test_spawned_workers(name: str, tmp_path: Path) -> None:
    store = KINDS[name](tmp_path)
    root = fill(store)
    assert run_in_child("spawn", functools.partial(check, root)) is None


def test_pickles(store: Any, kind: str) -> None:
    root = fill(store)
    if kind in ("icechunk", "obstore-memory", "zarr-obstore"):
        with pytest.raises((TypeError, ValueError)):
            pickle.dumps(root)
    else:
        check(pickle.loads(pickle.dumps(root)))


def test_an_icechunk_session_that_is_read_only_pickles(tmp_path: Path) -> None:
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    fill(session)
    session.commit("rain")
    reader = zarrow.open(repository.readonly_session("main"))
    check(reader)
    with pytest.raises(ReadOnlyError):
        reader.attrs["a"] = 1
    check(pickle.loads(pickle.dumps(reader)))


def test_the_same_object_is_the_same_store() -> None:
    values: dict[str, bytes] = {}
    fill(values)
    assert zarrow.open(values)["plain"] == zarrow.open(values, "plain")
    assert zarrow.open(values) != zarrow.open(dict(values))


class Failing(zarr.storage.MemoryStore):
    """A store that answers as it is told."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        super().__init__()
        self.answer: Callable[[Any], Any] | None = None
        self.later = answer

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        found = await super().get(key, prototype, byte_range)
        if self.answer is None or key.endswith("zarr.json"):
            return found
        return self.answer(found)


def raising(error: BaseException) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        raise error

    return answer


def failing(answer: Callable[[Any], Any]) -> Any:
    store = Failing(answer)
    root = zarr.create_group(store)
    root.create_array("a", data=np.arange(64, dtype="u1"), chunks=(8,), compressors=None)
    root.create_array("s", data=np.arange(64, dtype="u1"), chunks=(8,), shards=(32,), compressors=None)
    store.answer = answer
    return zarrow.open(store)


def test_what_a_store_raises_is_the_cause() -> None:
    for name in ("a", "s"):
        with pytest.raises(StoreError, match="no such luck") as caught:
            failing(raising(LookupError("no such luck")))[name][...]
        assert isinstance(caught.value.__cause__, LookupError)
        assert caught.value.store == "test_store_objects.Failing" and caught.value.path == name
        with pytest.raises(StorePermissionError):
            failing(raising(PermissionError("not for you")))[name][...]
        with pytest.raises(StoreError, match="cancelled"):
            failing(raising(asyncio.CancelledError()))[name][...]
        with pytest.raises(SystemExit):
            failing(raising(SystemExit(3)))[name][...]
    # The thread that asks is there still.
    check(fill({}))


def test_answers_of_wrong_types_and_lengths_are_errors() -> None:
    def longer(found: Any) -> Any:
        return type(found).from_bytes(found.to_bytes() + b"more")

    def shorter(found: Any) -> Any:
        return type(found).from_bytes(found.to_bytes()[:-1])

    for answer in (longer, shorter, lambda _: "text", lambda _: 7, lambda _: [b"a"], lambda _: b""):
        for name in ("a", "s"):
            with pytest.raises(zarrow.ZarrowError) as caught:
                failing(answer)[name][...]
            assert caught.value.kind not in ("internal", "interrupted"), (name, caught.value)
    # None says that nothing is there.
    assert failing(lambda _: None)["a"][...].tolist() == [0] * 64


@pytest.mark.parametrize("value", [None, "text", 7, [1], object()])
def test_a_mapping_of_no_bytes(value: Any) -> None:
    with pytest.raises(StoreError, match="expected bytes"):
        zarrow.open({"zarr.json": value})


def test_values_may_be_any_buffer() -> None:
    store: dict[str, Any] = {}
    zarrow.create_array(store, data=VALUES, chunks=(16, 10))
    for make in (bytearray, memoryview, lambda value: np.frombuffer(value, "i1")):
        other = {key: make(value) for key, value in store.items()}
        np.testing.assert_array_equal(np.asarray(zarrow.open(other)[...]), VALUES)


def test_a_store_that_is_closed_meanwhile(tmp_path: Path) -> None:
    import dbm.dumb

    with dbm.dumb.open(str(tmp_path / "file"), "n") as database:
        root = fill(zarrow.PythonStore(Encoded(database), sole_writer=True))
        check(root)
    with pytest.raises(StoreError, match="closed") as caught:
        root["plain"][...]
    assert caught.value.__cause__ is not None


class Encoded(collections.UserDict[str, bytes]):
    """A database of Python's own as a mapping of keys to bytes."""

    def __init__(self, database: Any) -> None:
        self.data = database

    def __iter__(self) -> Iterator[str]:
        return (key.decode() for key in self.data)

    def __contains__(self, key: object) -> bool:
        return key in self.data


HANGING = """
import os, sys, threading, time, asyncio
import numpy as np, zarr, zarr.storage, zarrow

class Hangs(zarr.storage.MemoryStore):
    hangs = False
    async def get(self, key, prototype, byte_range=None):
        if self.hangs and not key.endswith("zarr.json"):
            await asyncio.sleep(3600)
        return await super().get(key, prototype, byte_range)

class Blocks(dict):
    hangs = False
    def __getitem__(self, key):
        if self.hangs and not key.endswith("zarr.json"):
            time.sleep(3600)
        return super().__getitem__(key)

for store in (Hangs(), Blocks()):
    array = zarrow.create_array(store, data=np.arange(100), chunks=10)
    store.hangs = True
    threading.Timer(0.3, lambda: os.kill(os.getpid(), __import__("signal").SIGINT)).start()
    try:
        array[...]
    except KeyboardInterrupt:
        print("interrupted")
    store.hangs = False
print("end", flush=True)
"""


def test_a_store_that_hangs_is_stopped_by_ctrl_c_and_the_process_ends() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.stdout.split() == ["interrupted", "interrupted", "end"], finished.stderr
    assert finished.returncode == 0, finished.stderr


def test_a_read_that_is_cancelled_cancels_what_the_store_does() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    class Waits(zarr.storage.MemoryStore):
        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            if key.endswith("zarr.json"):
                return await super().get(key, prototype, byte_range)
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.set()
                raise

    array = zarrow.create_array(Waits(), shape=8, dtype="u1", chunks=8)

    async def read() -> None:
        task = asyncio.ensure_future(array.read_async())
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())
    assert cancelled.wait(30)


def test_a_store_goes_when_nobody_has_it() -> None:
    import weakref

    store = OwnMapping()
    array = zarrow.create_array(store, data=np.arange(10))
    assert array[...].shape == (10,)
    gone = weakref.ref(store)
    del store, array
    for _ in range(200):
        gc.collect()
        if gone() is None:
            break
        threading.Event().wait(0.05)
    assert gone() is None


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., S3Store]:
    import boto3

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    keys = {"access_key_id": "key", "secret_access_key": "secret"}
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="objects")

    def make(prefix: str, **options: Any) -> S3Store:
        return S3Store(
            "objects",
            prefix=prefix,
            endpoint=endpoint,
            region="us-east-1",
            client_options={"allow_http": True},
            **keys,
            **options,
        )

    return make


def test_an_s3_store_of_obstore_becomes_ours(s3: Callable[..., S3Store]) -> None:
    store = s3("native/data.zarr")
    found = native.resolve(store)
    assert found is not None and isinstance(found[0], zarrow.CloudStore)
    assert found[0].name == "s3://objects/native/data.zarr"
    root = fill(zarr.storage.ObjectStore(store))
    check(zarrow.open(store))
    assert run_in_child("fork", lambda: check(root)) is None
    root["plain"][3:5, 2] = 7
    assert zarrow.open(store)["plain"][4, 2] == 7


def test_what_cannot_be_mapped_is_asked_by_obstore(s3: Callable[..., S3Store]) -> None:
    store = s3("asked/data.zarr", unsigned_payload=True)
    assert native.resolve(store) is None
    root = fill(store)
    check(zarrow.open(store))
    root["plain"][3:5, 2] = 7
    root.attrs["title"] = "snow"
    assert zarrow.open(store)["plain"][4, 2] == 7 and zarrow.open(store).attrs["title"] == "snow"
    del root["plain"]
    assert sorted(zarrow.open(store).keys()) == ["group", "names"]


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "web").mkdir()
    handler = functools.partial(Handler, directory=str(tmp_path / "web"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_web_servers(web: str, tmp_path: Path) -> None:
    fill(tmp_path / "web" / "data.zarr")
    headers = {"X-Rain": "yes"}
    stores: list[Any] = [
        HTTPStore.from_url(
            f"{web}/data.zarr", client_options={"allow_http": True, "default_headers": headers}
        ),
        fsspec.get_mapper(f"{web}/data.zarr"),
        zarr.storage.FsspecStore.from_url(f"{web}/data.zarr", {"client_kwargs": {"headers": headers}}),
    ]
    for store in stores:
        found = native.resolve(store)
        assert found is not None and isinstance(found[0], zarrow.CloudStore)
        root = zarrow.open(store)
        np.testing.assert_array_equal(np.asarray(root["plain"][...]), VALUES)
    # A client of the user's own is not guessed at.
    asked = fsspec.get_mapper(f"{web}/data.zarr", client_kwargs={"trust_env": True})
    assert native.resolve(asked) is None
    np.testing.assert_array_equal(np.asarray(zarrow.open(asked, "group/sharded")[3:40, 7]), VALUES[3:40, 7])


def manifest_store(url: str, places: dict[str, tuple[int, int]], registry: Any) -> Any:
    """An array `a` of four chunks, parts of one object, and one within the manifest."""
    from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
    from virtualizarr.manifests.utils import create_v3_array_metadata

    metadata = create_v3_array_metadata(
        shape=(10,),
        data_type=np.dtype("<i4"),
        chunk_shape=(2,),
        fill_value=0,
        codecs=[{"name": "bytes", "configuration": {"endian": "little"}}],
    )
    entries: dict[str, Any] = {
        key: {"path": url, "offset": offset, "length": length} for key, (offset, length) in places.items()
    }
    entries["3"] = {"path": "", "offset": 0, "length": 8, "data": np.array([70, 71], "<i4").tobytes()}
    manifest = ChunkManifest(entries, shape=(5,))
    group = ManifestGroup(arrays={"a": ManifestArray(metadata, manifest)}, attributes={"title": "rain"})
    return ManifestStore(group, registry=registry)


PLACES = {"0": (5, 8), "1": (13, 8), "2": (40, 8)}
EXPECTED = [0, 1, 2, 3, 10, 11, 70, 71, 0, 0]


def object_bytes() -> bytes:
    return b"head:" + np.arange(4, dtype="<i4").tobytes() + b"-" * 19 + np.array([10, 11], "<i4").tobytes()


def registry_of(url: str, store: Any) -> Any:
    from obspec_utils.registry import ObjectStoreRegistry

    return ObjectStoreRegistry({url: store})


def test_references_are_read_where_they_are_allowed(web: str, tmp_path: Path) -> None:
    (tmp_path / "web" / "files").mkdir()
    (tmp_path / "web" / "files" / "rain.nc").write_bytes(object_bytes())
    registry = registry_of(web, HTTPStore.from_url(web, client_options={"allow_http": True}))
    store = manifest_store(f"{web}/files/rain.nc", PLACES, registry)
    root = zarrow.open(store)
    assert dict(root.attrs) == {"title": "rain"} and list(root.keys()) == ["a"]
    for allow in (
        [],
        [f"{web}/file"],
        ["http://localhost/"],
        [f"{web.replace('http', 'https')}"],
        ["file:///"],
    ):
        refused = zarrow.open(zarrow.PythonStore(store, allow=allow), "a")
        with pytest.raises(StorePermissionError, match="allow="):
            refused[...]
        # What the manifest has within itself needs no leave.
        assert refused[6:8].tolist() == [70, 71]
    for allow in ([web], [f"{web}/files"], [f"{web}/files/"], ["file:///", f"{web}/files/rain.nc"]):
        array = zarrow.open(zarrow.PythonStore(store, allow=allow), "a")
        assert array[...].tolist() == EXPECTED
        assert array.nbytes_stored() == 32
    with pytest.raises(ReadOnlyError):
        array[0] = 1
    assert run_in_child("fork", lambda: np.testing.assert_array_equal(array[...], EXPECTED)) is None


def test_references_to_files_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "rain.nc").write_bytes(object_bytes())
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_bytes(b"hush-hush" * 9)
    registry = registry_of("file://", LocalStore())
    store = manifest_store(f"file://{tmp_path}/rain.nc", PLACES, registry)
    with pytest.raises(StorePermissionError):
        zarrow.open(store, "a")[...]
    allow = [f"file://{tmp_path}"]
    assert zarrow.open(zarrow.PythonStore(store, allow=allow), "a")[...].tolist() == EXPECTED
    for path in (
        f"{tmp_path}/../{secret.name}",
        f"{tmp_path}/%2e%2e/{secret.name}",
        str(secret),
        f"{tmp_path}-secret",
    ):
        store = manifest_store(f"file://{path}", PLACES, registry)
        with pytest.raises(StoreError):
            zarrow.open(zarrow.PythonStore(store, allow=allow), "a")[...]


def test_references_that_lead_nowhere_are_errors(tmp_path: Path) -> None:
    (tmp_path / "rain.nc").write_bytes(object_bytes())
    registry = registry_of("file://", LocalStore())
    for path, places in [
        ("none.nc", PLACES),
        ("rain.nc", {"0": (44, 8)}),
        ("rain.nc", {"0": (1 << 40, 8)}),
        ("rain.nc", {"0": ((1 << 64) - 4, 8)}),
        ("rain.nc", {"0": (0, 7)}),
        ("rain.nc", {"0": (0, 1 << 60)}),
    ]:
        store = manifest_store(f"file://{tmp_path}/{path}", places, registry)
        array = zarrow.open(zarrow.PythonStore(store, allow=[f"file://{tmp_path}"]), "a")
        with pytest.raises(zarrow.ZarrowError) as caught:
            array[0:2]
        assert caught.value.kind != "internal", caught.value
        assert array[8:].tolist() == [0, 0]


def test_what_is_no_store_is_told() -> None:
    with pytest.raises(TypeError, match="mapping of keys to bytes"):
        zarrow.open(object())
    with pytest.raises(TypeError, match="int is no store"):
        zarrow.PythonStore(7)
    assert repr(zarrow.PythonStore({})) == "<zarrow.PythonStore of dict>"


def test_one_thread_asks_and_signals_stay_as_they_are() -> None:
    before = signal.getsignal(signal.SIGINT)
    check(fill({}))
    check(fill(MemoryStore()))
    assert signal.getsignal(signal.SIGINT) is before
    assert sum(thread.name == "zarrow-stores" for thread in threading.enumerate()) == 1
