"""Chunks of read-only sessions of icechunk, which the engine reads by their references."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import pickle
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr

import zarrow
from counted_bucket import Bucket, counted_bucket
from stores_of_others import run_in_child
from zarrow import zarr_python
from zarrow.store_objects import icechunk_references, icechunk_storage

pytestmark = [
    pytest.mark.small_files,
    pytest.mark.filterwarnings(r"ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning"),
]

CHUNKS = 300


class Asked:
    """Counts the chunks that icechunk is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[str] = []
        get = icechunk.IcechunkStore.get

        async def counted(store: Any, key: str, *arguments: Any, **options: Any) -> Any:
            if "/c" in key:
                self.keys.append(key)
            return await get(store, key, *arguments, **options)

        monkeypatch.setattr(icechunk.IcechunkStore, "get", counted)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def local(folder: Path, **options: Any) -> Any:
    return icechunk.Repository.open_or_create(icechunk.local_filesystem_storage(str(folder)), **options)


def written(repository: Any, write: Callable[[Any], object]) -> Any:
    """Return a read-only session after a commit of what `write` does to a group of zarr-python."""
    session = repository.writable_session("main")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(zarr.open_group(session.store, mode="a"))
    session.commit("written")
    return repository.readonly_session("main")


def many(root: Any) -> None:
    array = root.create_array(
        "deep/rain", shape=(CHUNKS, 1024), chunks=(1, 1024), dtype="f4", compressors=None
    )
    array[:] = np.arange(CHUNKS * 1024, dtype="f4").reshape(CHUNKS, 1024)


def check(session: Any, name: str = "deep/rain") -> None:
    expected = np.arange(CHUNKS * 1024, dtype="f4").reshape(CHUNKS, 1024)
    np.testing.assert_array_equal(zarrow.open(session, name)[...], expected)


def test_icechunk_names_chunks_and_the_engine_reads_them(tmp_path: Path, asked: Asked) -> None:
    session = written(local(tmp_path), many)
    check(session)
    check(session.store)
    check(pickle.loads(pickle.dumps(session)))
    assert asked.keys == []


def test_all_kinds_of_arrays_are_read_as_by_zarr(tmp_path: Path, asked: Asked) -> None:
    rng = np.random.default_rng(5)

    def write(root: Any) -> None:
        root.create_array("plain", data=rng.integers(0, 99, (37, 41)), chunks=(9, 8))
        root.create_array("within", data=rng.integers(0, 99, (12,), "u1"), chunks=(2,), compressors=None)
        root.create_array("sharded", data=rng.random((64, 48)), chunks=(8, 8), shards=(32, 24))
        root.create_array("scalar", data=np.float64(4.5))
        root.create_array("text", data=np.array(["Oslo", "Rome", "Quito"] * 99), chunks=(50,))
        root.create_array("big_endian", data=rng.random(500).astype(">f8"), chunks=(99,))
        root.create_array("empty", shape=(0, 4), chunks=(1, 4), dtype="i2")

    session = written(local(tmp_path), write)
    theirs = zarr.open_group(session.store, mode="r")
    expected = {name: np.asarray(theirs[name][...]) for name in theirs.array_keys()}
    del asked.keys[:]
    for name, values in expected.items():
        for selection in (np.s_[...], np.s_[:1] if values.ndim else np.s_[()]):
            found = np.asarray(zarrow.open(session, name)[selection])
            np.testing.assert_array_equal(found, values[selection], err_msg=name)
    assert len(expected) == 7
    assert asked.keys == []


def test_zarr_python_reads_chunks_by_references(tmp_path: Path, asked: Asked) -> None:
    def write(root: Any) -> None:
        many(root)
        root.create_array("partly", shape=(4, 4), chunks=(2, 2), dtype="i4", fill_value=-1)[:2] = 7
        root.create_array("shards", data=np.arange(64).reshape(8, 8), chunks=(2, 2), shards=(4, 4))
        root.create_array("text", data=np.array(["Oslo", "Rome"] * 9), chunks=(5,))

    session = written(local(tmp_path), write)
    with zarr_python.enable():
        root = zarr.open_group(session.store, mode="r")
        deep, partly, shards, text = (root[name] for name in ("deep/rain", "partly", "shards", "text"))
    expected = np.arange(CHUNKS * 1024, dtype="f4").reshape(CHUNKS, 1024)
    for array in (deep, pickle.loads(pickle.dumps(deep))):
        np.testing.assert_array_equal(array[:], expected)
        np.testing.assert_array_equal(array.oindex[[7, 290], ::100], expected[[7, 290], ::100])
    np.testing.assert_array_equal(asyncio.run(deep.async_array.getitem((3,))), expected[3])
    np.testing.assert_array_equal(shards[1:7], np.arange(64).reshape(8, 8)[1:7])
    assert text[:].tolist() == ["Oslo", "Rome"] * 9
    assert asked.keys == []
    assert partly[:].tolist() == [[7] * 4] * 2 + [[-1] * 4] * 2
    assert {key.partition("/")[0] for key in asked.keys} == {"partly"}
    store = root.store
    assert icechunk_references.from_store(store) is icechunk_references.from_store(store)
    again = pickle.loads(pickle.dumps(store))
    assert icechunk_references.from_store(again).store is again
    found = zarr_python.explain(deep)
    assert (found.read, found.write, found.store) == ("zarrow", "zarr-python", "<icechunk.IcechunkStore>")
    with zarr_python.enable():
        changing = zarr.open_array(local(tmp_path).writable_session("main").store, path="shards")
    assert zarr_python.explain(changing).read == "zarr-python"
    changing[:] = 5
    assert (changing[:] == 5).all()


def test_icechunk_is_asked_for_missing_chunks(tmp_path: Path, asked: Asked) -> None:
    def write(root: Any) -> None:
        sparse = root.create_array("sparse", shape=(40, 40), chunks=(5, 5), dtype="i2", fill_value=7)
        sparse[11:14, 3:30] = 1

    session = written(local(tmp_path), write)
    expected = np.full((40, 40), 7)
    expected[11:14, 3:30] = 1
    del asked.keys[:]
    np.testing.assert_array_equal(zarrow.open(session, "sparse")[...], expected)
    assert len(asked.keys) == 64 - 6


def test_few_chunks_of_a_large_array_take_no_list_of_all(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icechunk_references, "_REFERENCES_A_CHUNK", 8)
    session = written(local(tmp_path), many)
    array = zarrow.open(session, "deep/rain")
    lists = listed(array)
    assert array[200, :2].tolist() == [204800, 204801]
    assert 0 < len(lists["deep/rain"].columns) <= 16
    assert len(asked.keys) == 1
    check(session)
    for row in range(CHUNKS):
        assert array[row, 0].item() == row * 1024
    assert len(lists["deep/rain"].columns) == CHUNKS
    assert len(asked.keys) <= CHUNKS // 8 + 1


def listed(array: Any) -> dict[str, Any]:
    """Return the lists of references of the adapter that was made last."""
    import gc

    found = [each for each in gc.get_objects() if type(each) is icechunk_references.IcechunkAdapter]
    return next(each._lists for each in found if array.path in each._lists)


def test_a_session_that_is_written_is_read_by_icechunk(tmp_path: Path, asked: Asked) -> None:
    repository = local(tmp_path)
    written(repository, many)
    session = repository.writable_session("main")
    array = zarrow.open(session, "deep/rain", mode="r+")
    array[3] = -1.0
    assert array[3, 0].item() == -1
    assert asked.keys
    # The old snapshot is as it was.
    check(repository.readonly_session("main"))


def test_old_snapshots_are_read_after_changes(tmp_path: Path, asked: Asked) -> None:
    repository = local(tmp_path)
    old = written(repository, many)
    kept = zarrow.open(old, "deep/rain")
    new = written(repository, lambda root: root["deep/rain"].__setitem__(slice(0, 9), 5))
    assert zarrow.open(new, "deep/rain")[:10, 0].tolist() == [5] * 9 + [9 * 1024]
    written(repository, lambda root: root.__delitem__("deep/rain"))
    np.testing.assert_array_equal(kept[:, 0], np.arange(CHUNKS) * 1024)
    check(old)


def test_a_deleted_chunk_is_an_error(tmp_path: Path) -> None:
    session = written(local(tmp_path), many)
    check(session)
    array = zarrow.open(session, "deep/rain")
    array[0]
    for path in (tmp_path / "chunks").iterdir():
        path.unlink()
    with pytest.raises(zarrow.errors.StoreError, match="missing object"):
        array[...]


def test_a_short_chunk_is_an_error(tmp_path: Path) -> None:
    session = written(local(tmp_path), many)
    for path in (tmp_path / "chunks").iterdir():
        os.truncate(path, 100)
    with pytest.raises(zarrow.errors.StoreError, match="beyond the end"):
        zarrow.open(session, "deep/rain")[...]


@pytest.mark.parametrize("place", ["none", "elsewhere", "raises"])
def test_icechunk_reads_where_the_place_of_chunks_is_unknown(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "none":
        monkeypatch.setattr(icechunk_references, "place_of_chunks", lambda session: None)
    elif place == "elsewhere":
        monkeypatch.setattr(
            icechunk_references, "place_of_chunks", lambda session: (tmp_path.parent, "chunks")
        )
    else:
        monkeypatch.setattr(icechunk_storage, "_folder", lambda storage: storage["unknown"])
    check(written(local(tmp_path), many))
    assert len(asked.keys) == CHUNKS


def test_a_repository_in_memory_is_read_by_icechunk(asked: Asked) -> None:
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    check(written(repository, many))
    assert len(asked.keys) == CHUNKS


def test_icechunk_checks_the_files_of_virtual_chunks(tmp_path: Path) -> None:
    source = tmp_path / "files" / "rain.bin"
    source.parent.mkdir()
    source.write_bytes(np.arange(40, dtype="f4").tobytes())
    url = f"file://{source.parent}/"
    config = icechunk.RepositoryConfig.default()
    store = icechunk.local_filesystem_store(str(source.parent))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(url, store))
    access = icechunk.containers_credentials({url: icechunk.Credentials.LocalFileSystemAccess()})
    repository = local(tmp_path / "repository", config=config, authorize_virtual_chunk_access=access)
    before = datetime.datetime.fromtimestamp(source.stat().st_mtime + 1, datetime.UTC)

    def write(root: Any) -> None:
        array = root.create_array("a", shape=(60,), chunks=(10,), dtype="f4", compressors=None, fill_value=-1)
        for chunk in range(4):
            place = f"{url}{source.name}"
            root.store.set_virtual_ref(
                f"a/c/{chunk}", place, offset=40 * chunk, length=40, checksum=before, validate_container=True
            )
        array[40:50] = 8

    session = written(repository, write)
    array = zarrow.open(session, "a")
    assert array[...].tolist() == [*range(40), *[8] * 10, *[-1] * 10]
    assert array[...].tolist() == zarr.open_array(session.store, path="a", mode="r")[...].tolist()
    os.utime(source, (before.timestamp() + 60,) * 2)
    with pytest.raises(zarrow.errors.StoreError):
        zarrow.open(repository.readonly_session("main"), "a")[:40]


def test_forked_children_read_what_icechunk_has_named(tmp_path: Path) -> None:
    session = written(local(tmp_path), many)
    array = zarrow.open(session, "deep/rain")
    expected = np.asarray(array[...])
    assert run_in_child("fork", lambda: np.testing.assert_array_equal(array[...], expected)) is None


def test_threads_read_one_session(tmp_path: Path, asked: Asked) -> None:
    session = written(local(tmp_path), many)
    root, failures = zarrow.open(session), []

    def read(turn: int) -> None:
        try:
            for row in range(turn, CHUNKS, 8):
                found = root["deep/rain"][row, :3].tolist()
                if found != [row * 1024, row * 1024 + 1, row * 1024 + 2]:
                    failures.append((row, found))
        except Exception as error:
            failures.append((turn, error))

    threads = [threading.Thread(target=read, args=(turn,)) for turn in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert asked.keys == []


def test_references_are_listed_once_if_two_threads_open_the_array(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = written(local(tmp_path), many)
    root, get = zarrow.open(session), icechunk.IcechunkStore.get
    chunks = icechunk.IcechunkStore.array_chunk_iterator
    documents, both, lists = 0, asyncio.Event(), []

    async def together(store: Any, key: str, *arguments: Any, **options: Any) -> Any:
        nonlocal documents
        if key == "deep/rain/zarr.json":
            documents += 1
            if documents == 2:
                both.set()
            await asyncio.wait_for(both.wait(), 60)
        return await get(store, key, *arguments, **options)

    def listed(*arguments: Any) -> Any:
        lists.append(arguments[1])
        return chunks(*arguments)

    monkeypatch.setattr(icechunk.IcechunkStore, "get", together)
    monkeypatch.setattr(icechunk.IcechunkStore, "array_chunk_iterator", listed)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: root["deep/rain"][:, 0].tolist(), range(2)))
    assert found == [list(range(0, CHUNKS * 1024, 1024))] * 2
    assert documents == 2 and lists == ["/deep/rain"] and asked.keys == []


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with counted_bucket(tmp_path_factory.mktemp("bucket")) as found:
        yield found


@pytest.mark.parametrize("credentials", ["static", "environment"])
def test_a_repository_on_s3(
    bucket: Bucket, asked: Asked, monkeypatch: pytest.MonkeyPatch, credentials: str
) -> None:
    options: dict[str, Any] = {
        "access_key_id": bucket.options["key"],
        "secret_access_key": bucket.options["secret"],
    }
    if credentials == "environment":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.options["key"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.options["secret"])
        options = {"from_env": True}
    storage = icechunk.s3_storage(
        bucket=bucket.name,
        prefix=f"deep/{credentials}",
        region="us-east-1",
        endpoint_url=bucket.options["client_kwargs"]["endpoint_url"],
        allow_http=True,
        force_path_style=True,
        **options,
    )
    check(written(icechunk.Repository.create(storage), many))
    assert asked.keys == []


def test_a_repository_that_was_removed(tmp_path: Path) -> None:
    session = written(local(tmp_path / "repository"), many)
    shutil.rmtree(tmp_path / "repository")
    with pytest.raises(zarrow.ZarrowError) as caught:
        zarrow.open(session, "deep/rain")[...]
    assert caught.value.kind != "internal"


def test_a_read_only_store_of_a_written_session_is_read_by_icechunk(tmp_path: Path) -> None:
    session = local(tmp_path).writable_session("main")
    root = zarr.open_group(session.store, mode="a")
    root.create_array("a", data=np.arange(4), chunks=(1,), compressors=None)
    array = zarrow.open(session.store.with_read_only(True), "a")
    assert array[...].tolist() == [0, 1, 2, 3]
    root["a"][1:3] = 9
    assert array[...].tolist() == [0, 9, 9, 3]


@pytest.mark.parametrize("how", ["cancelled", "interrupted"])
def test_a_read_that_is_stopped_loses_no_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    session = written(local(tmp_path), many)
    find = icechunk_references._find
    looking = threading.Event()

    def slow(session: Any, name: str) -> Any:
        looking.set()
        time.sleep(0.5)
        return find(session, name)

    monkeypatch.setattr(icechunk_references, "_find", slow)
    array = zarrow.open(session, "deep/rain")
    expected = np.arange(CHUNKS * 1024, dtype="f4").reshape(CHUNKS, 1024)

    async def cancelled() -> Any:
        first, other = (asyncio.ensure_future(array.read_async(...)) for _ in range(2))
        while not looking.is_set():
            await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await other

    if how == "cancelled":
        np.testing.assert_array_equal(asyncio.run(cancelled()), expected)
    else:
        main = threading.get_ident()
        interrupt = threading.Thread(
            target=lambda: (looking.wait(), signal.pthread_kill(main, signal.SIGINT))
        )
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            array[...]
        interrupt.join()
    for _ in range(3):
        np.testing.assert_array_equal(array[...], expected)


def test_a_snapshot_that_was_deleted_gives_no_fill_values(tmp_path: Path) -> None:
    repository = local(tmp_path)
    session = written(repository, many)
    old = session.snapshot_id
    written(repository, lambda root: root["deep/rain"].__setitem__(slice(0, 9), 5))
    array = zarrow.open(local(tmp_path).readonly_session(snapshot_id=old), "deep/rain")
    for folder in ("snapshots", "manifests"):
        for path in (tmp_path / folder).iterdir():
            path.unlink()
    # icechunk may have kept the snapshot in memory.
    with contextlib.suppress(zarrow.errors.StoreError):
        np.testing.assert_array_equal(array[:, 0], np.arange(CHUNKS) * 1024)
