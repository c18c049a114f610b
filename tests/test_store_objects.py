"""Store objects of other libraries, and mappings: real ones, some over servers on the loopback interface."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import json
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import icechunk
import numpy as np
import pytest
import zarr
import zarr.storage
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from obstore.store import LocalStore, MemoryStore

import zarrow
from stores_of_others import (
    KINDS,
    NAMES,
    VALUES,
    WITHOUT_FORK,
    OwnMapping,
    OwnStore,
    check,
    fill,
    icechunk_session,
    run_in_child,
)
from zarrow.errors import (
    NotFoundError,
    ReadOnlyError,
    UnsupportedError,
)
from zarrow.store_objects import engine_stores, resolve

pytestmark = pytest.mark.filterwarnings(
    # Python warns about every fork of a process with threads; these tests cover zarrow's promises for forks.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    r"ignore:os.fork\(\) was called:RuntimeWarning",
    "ignore::zarr.errors.ZarrUserWarning",
)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Any:
    return KINDS[kind](tmp_path)


def test_a_tree_is_written_and_read(store: Any, kind: str) -> None:
    fill(store)
    root = zarrow.open(store)
    check(root)
    assert sorted(root.keys()) == ["group", "names", "plain"] and dict(root.attrs) == {"title": "rain"}
    assert root["plain"].nbytes_stored() > 0
    assert zarrow.open(store, "group/sharded", mode="r")[8, 8] == VALUES[8, 8]
    assert zarrow.load(store, "names").tolist() == NAMES
    if kind != "icechunk":
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


def test_zarr_python_and_zarrow_read_each_others_arrays(tmp_path: Path) -> None:
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
        assert engine_stores.resolve(made) == (tmp_path, False)
    assert resolve(OwnStore())[0].name == "<stores_of_others.OwnStore>"  # type: ignore[index, union-attr]
    assert resolve(object()) is None and resolve(7) is None and resolve([b"a"]) is None


def test_read_only_stores_stay_read_only(tmp_path: Path) -> None:
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


class Interrupted(dict[str, bytes]):
    """A mapping. At the n-th look at one key, another writer replaces the value."""

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.key, self.other = 0, "", b""

    def __getitem__(self, key: str) -> bytes:
        if key == self.key:
            self.looks -= 1
            if self.looks == 0:
                self[key] = self.other
        return super().__getitem__(key)


def test_a_large_shard_that_another_writer_replaces_is_written_again() -> None:
    # A shard that is too large to be fetched as a whole.
    piece, count = 12 << 20, 6
    mapping = Interrupted()
    store = zarrow.PythonStore(mapping, sole_writer=True)
    array = zarrow.create_array(
        store, shape=(piece * count,), chunks=(piece,), shards=(piece * count,), dtype="u1", compressors=None
    )
    array[...] = 1
    (key,) = (key for key in mapping if key.startswith("c"))
    first = mapping[key]
    array[piece : 2 * piece] = 2
    other = mapping[key]
    for looks in range(1, 30):
        mapping[key] = first
        mapping.key, mapping.other, mapping.looks = key, other, looks
        array[4 * piece : 5 * piece] = 3
        # With fewer looks, the other writer came too late.
        is_replaced, mapping.looks = mapping.looks <= 0, 0
        found = array[::piece]
        assert found.tolist() == [1, 2 if is_replaced else 1, 1, 1, 3, 1], looks
        if not is_replaced:
            break
    assert not is_replaced
    assert looks > 4


def test_writers_of_parts_of_a_large_shard_wait_for_each_other() -> None:
    # Old parts are read range by range, and another writer may replace the shard in between.
    piece, count = 6 << 20, 12
    store = MemoryStore()
    array = zarrow.create_array(
        store, shape=(piece * count,), chunks=(piece,), shards=(piece * count,), dtype="u1", compressors=None
    )
    array[...] = 9

    def write(number: int) -> None:
        own = zarrow.open_array(store, mode="r+")
        for turn in range(3):
            own[number * piece : (number + 1) * piece] = 3 * number + turn

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    assert array[::piece].tolist() == [2, 5] + [9] * (count - 2)


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


def test_an_icechunk_array_is_resized() -> None:
    array = zarrow.create_array(icechunk_session(), "x", data=np.arange(64).reshape(8, 8), chunks=(2, 2))
    array.resize((3, 8))
    array.resize((8, 8))
    expected = np.arange(64).reshape(8, 8)
    expected[3:] = 0
    assert (array[...] == expected).all()
    array.resize((3, 3))
    assert array[...].tolist() == expected[:3, :3].tolist()


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


def threads_in(module: str) -> int:
    """Return how many threads serve requests in a module of `zarrow.store_objects`."""
    found = [traceback.extract_stack(frame) for frame in sys._current_frames().values()]
    return sum(
        any(call.filename.endswith(f"/{module}.py") and call.name == "_serve" for call in calls)
        for calls in found
    )


def test_an_unused_store_is_freed() -> None:
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
    # The threads that asked it end with it, and do not keep it alive either.
    for _ in range(200):
        if not threads_in("store_adapter"):
            break
        threading.Event().wait(0.05)
    assert not threads_in("store_adapter")


def test_objects_that_are_not_stores_are_refused() -> None:
    with pytest.raises(TypeError, match="mapping of keys to bytes"):
        zarrow.open(object())
    with pytest.raises(TypeError, match="int is neither a store nor a mapping"):
        zarrow.PythonStore(7)
    assert repr(zarrow.PythonStore({})) == "<zarrow.PythonStore of dict>"


def test_one_thread_calls_the_store_and_signal_handlers_are_unchanged() -> None:
    before = signal.getsignal(signal.SIGINT)
    check(fill({}))
    check(fill(MemoryStore()))
    assert signal.getsignal(signal.SIGINT) is before
    assert threads_in("event_loop") == 1


@pytest.mark.parametrize(("shape", "chunks"), [((5, 5), (3, 3)), ((5, 4), (3, 4)), ((300, 300), (70, 70))])
def test_parts_of_uncompressed_chunks_of_unknown_size(
    shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    store, values = zarr.storage.MemoryStore(), np.arange(np.prod(shape)).reshape(shape)
    zarr.create_array(store, name="a", data=values, chunks=chunks, compressors=None)
    array = zarrow.open(store, "a")
    for selection in (np.s_[...], np.s_[:, -1:], np.s_[-1:], np.s_[1:2, ::2]):
        np.testing.assert_array_equal(array[selection], values[selection])
    short = zarr.storage.MemoryStore()
    zarr.create_array(short, name="a", data=values, chunks=chunks, compressors=None)
    key = "a/c/0/0"
    short._store_dict[key] = short._store_dict[key][: values.itemsize * (chunks[1] - 1)]
    with pytest.raises(zarrow.errors.CodecError):
        zarrow.open(short, "a")[: chunks[0], :2]
    with pytest.raises(zarrow.errors.CodecError):
        zarrow.open(short, "a")[: chunks[0], : chunks[1]]


@pytest.mark.parametrize("kind", ["zarr", "fsspec"])
def test_uncompressed_chunks_of_another_length_are_errors(kind: str) -> None:
    """An answer with a range does not tell the size of the value."""
    store: Any = zarr.storage.MemoryStore()
    zarr.create_array(store, name="a", data=np.arange(20, dtype="i4"), chunks=5, compressors=None)
    values = {key: value.to_bytes() for key, value in store._store_dict.items()}
    target: Any = fsspec.filesystem("memory", skip_instance_cache=True).get_mapper(f"memory://{kind}-length")
    for chunk in (values["a/c/1"] * 2, values["a/c/1"] + b"1234", values["a/c/1"][:-1], b""):
        if kind == "zarr":
            store._store_dict["a/c/1"] = store._store_dict["a/c/1"].from_bytes(chunk)
        else:
            target.update(values | {"a/c/1": chunk})
        array = zarrow.open(store if kind == "zarr" else target, "a")
        for selection in (slice(5, 10), slice(None), slice(6, 7)):
            with pytest.raises(zarrow.errors.CodecError, match="expected 20 by its metadata"):
                array[selection]
        assert array[:5].tolist() == [0, 1, 2, 3, 4]


def test_a_loop_over_a_group_reads_each_document_once() -> None:
    inner = zarr.storage.LoggingStore(zarr.storage.MemoryStore(), log_level="CRITICAL")
    store = zarrow.PythonStore(inner, sole_writer=True)
    group = zarrow.create_group(store)
    for name in ("a", "b", "c"):
        group.create_array(name, data=np.arange(3))
    inner.counter.clear()
    found = {name: group[name].shape for name in group}
    assert found == dict.fromkeys("abc", (3,)) and inner.counter["get"] == 3
    # A second access, another name, and a name after the loop are read again.
    seen = []
    for name in group:
        seen.append(name)
        inner.counter.clear()
        assert group[name].shape == group[name].shape and inner.counter["get"] == 1
        assert group["c" if name == "a" else "a"].shape == (3,) and inner.counter["get"] == 2
        if name == "b":
            break
    inner.counter.clear()
    assert seen == ["a", "b"] and group["b"].shape == (3,) and inner.counter["get"] == 1
    # The names are a list; loops over it read each document once as well.
    inner.counter.clear()
    names = group.keys()
    assert names == ["a", "b", "c"] and isinstance(names, list) and inner.counter["get"] == 3
    for _ in range(2):
        assert [group[name].shape for name in names] == [(3,)] * 3
    assert inner.counter["get"] == 6
    assert type(pickle.loads(pickle.dumps(names))) is type(copy.copy(names)) is list
    names.reverse()
    assert [group[name].path for name in names] == ["c", "b", "a"]
    inner.counter.clear()
    assert [group[name].shape for name in group.array_keys()] == [(3,)] * 3 and inner.counter["get"] == 3
    assert [group[name].shape for name in group.group_keys()] == []
    # Three documents tell that there is no member.
    inner.counter.clear()
    assert group.get("no", 5) == 5 and "no" not in group and inner.counter["get"] == 6
    # The loop sees changes by this process.
    for name in group:
        zarrow.open(store, name).append(np.arange(2))
        assert group[name].shape == (5,)
    for name in group:
        del group[name]
        with pytest.raises(NotFoundError):
            group[name]
    assert list(group) == []


def test_references_in_parquet_are_read_by_the_mapper_of_fsspec(tmp_path: Path) -> None:
    """As kerchunk writes them: documents in one file, chunks in rows of others, nulls for missing ones."""
    import pandas as pd
    from fsspec.implementations.reference import LazyReferenceMapper, ReferenceFileSystem

    values = np.arange(20, dtype="<i4").reshape(10, 2)
    target = tmp_path / "target"
    target.write_bytes(b"head" + values[:2].tobytes() + values[2:4].tobytes())
    whole = tmp_path / "whole"
    whole.write_bytes(values[4:6].tobytes())
    array = {"zarr_format": 2, "shape": [10, 2], "chunks": [2, 2], "dtype": "<i4", "order": "C"}
    array |= {"compressor": None, "filters": None, "fill_value": -1}
    documents = {".zgroup": {"zarr_format": 2}, "x/.zarray": array, "x/.zattrs": {"units": "m"}}
    root = tmp_path / "references"
    (root / "x").mkdir(parents=True)
    (root / ".zmetadata").write_text(json.dumps({"metadata": documents, "record_size": 4}))
    first = [(str(target), 4, 16, None), (str(target), 20, 16, None), (str(whole), 0, 0, None)]
    for number, rows in enumerate([[*first, (None, 0, 0, values[6:8].tobytes())], [(None, 0, 0, None)] * 4]):
        columns = pd.DataFrame(rows, columns=["path", "offset", "size", "raw"], dtype=object)
        columns.to_parquet(root / "x" / f"refs.{number}.parq", engine="pyarrow")
    fs = ReferenceFileSystem({}, remote_protocol="file")
    fs.references = LazyReferenceMapper(str(root), engine="pyarrow")
    mapper = fsspec.FSMap("", fs)
    expected = np.concatenate([values[:8], np.full((2, 2), -1)])
    group = zarrow.open(mapper)
    assert group.keys() == ["x"] and dict(group["x"].attrs) == {"units": "m"}
    np.testing.assert_array_equal(np.asarray(group["x"][...]), expected)
    np.testing.assert_array_equal(np.asarray(zarrow.open(mapper, "x")[3:, 1]), expected[3:, 1])
    np.testing.assert_array_equal(np.asarray(zarrow.load(mapper)["x"]), expected)
    assert "y" not in group and "x/y" not in group
    with pytest.raises(ReadOnlyError):
        group["x"][0] = 1


def test_many_nodes_of_an_object_are_opened_at_once() -> None:
    store = zarrow.PythonStore(zarr.storage.MemoryStore(), sole_writer=True)
    group = zarrow.create_group(store)
    for number in range(20):
        group.create_array(str(number), shape=number, dtype="i2", chunks=4)

    async def opened() -> list[Any]:
        return await asyncio.gather(*(zarrow.open_async(store, str(number)) for number in range(20)))

    assert [array.shape for array in asyncio.run(opened())] == [(number,) for number in range(20)]
    with pytest.raises(NotFoundError, match="did you mean"):
        asyncio.run(zarrow.open_async(store, "190"))
    with pytest.raises(ValueError, match="has zarr_format 3"):
        asyncio.run(zarrow.open_async(store, "1", zarr_format=2))
    with pytest.raises(ReadOnlyError):
        asyncio.run(zarrow.open_async(store, "1", mode="r")).append(np.zeros(1, "i2"))
    made = asyncio.run(zarrow.open_async(store, "new", mode="a"))
    assert isinstance(made, zarrow.Group)


def _wrapped(folder: str) -> fsspec.FSMap:
    return fsspec.FSMap(folder, AsyncFileSystemWrapper(fsspec.filesystem("memory"), asynchronous=True))


def _nested(folder: str) -> fsspec.FSMap:
    files = AsyncFileSystemWrapper(fsspec.filesystem("memory"), asynchronous=True)
    return fsspec.FSMap(folder.strip("/"), DirFileSystem("/", files, asynchronous=True))


def _referenced(folder: str) -> fsspec.FSMap:
    names = ["zarr.json", "x/zarr.json", "x/c/0"]
    references = {name: [f"memory:/{folder}/{name}"] for name in names}
    options = {"remote_protocol": "memory", "asynchronous": True}
    return fsspec.get_mapper("reference://", fo=references, **options)


@pytest.mark.parametrize("mapper", [_wrapped, _nested, _referenced])
def test_asynchronous_mappers_are_read_outside_of_their_loop(mapper: Callable[[str], fsspec.FSMap]) -> None:
    folder = f"/asynchronous{mapper.__name__}"
    zarrow.save(fsspec.FSMap(folder, fsspec.filesystem("memory")), x=[1, 2, 3])
    store = mapper(folder)
    assert zarrow.open(store, "x")[...].tolist() == [1, 2, 3]

    async def read_in_a_loop() -> list[int]:
        array = await zarrow.open_async(store, "x")
        read: list[int] = (await array.read_async()).tolist()
        return read + zarrow.open(store, "x")[...].tolist()

    assert asyncio.run(read_in_a_loop()) == [1, 2, 3, 1, 2, 3]


def test_an_asynchronous_mapper_without_a_blocking_twin_is_refused() -> None:
    class Bound(MemoryFileSystem):
        asynchronous = True
        cachable = False

        def __init__(self, *, loop: object) -> None:
            super().__init__()

    with pytest.raises(TypeError, match=r"Bound is asynchronous.*without asynchronous=True"):
        zarrow.open(fsspec.FSMap("/x", Bound(loop=object())))
