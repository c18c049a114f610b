"""Stores in the cloud, on servers on the loopback interface: moto as S3, and Python's web server."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow.errors import NotFoundError, ReadOnlyError, StoreError, StorePermissionError, UnsupportedError

KEY, SECRET = "AKIDOFTHETESTS", "a-very-secret/word+here"


@pytest.fixture(autouse=True)
def no_credentials_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="module")
def connected() -> Iterator[tuple[Any, dict[str, Any]]]:
    from stores import s3_by_moto

    with s3_by_moto.connected(KEY, SECRET) as connected:
        yield connected


@pytest.fixture(scope="module")
def client(connected: tuple[Any, dict[str, Any]]) -> Any:
    return connected[0]


@pytest.fixture(scope="module")
def options(connected: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
    return connected[1]


@pytest.fixture(scope="module")
def endpoint(options: dict[str, Any]) -> str:
    url: str = options["client_kwargs"]["endpoint_url"]
    return url


@pytest.fixture
def bucket(client: Any, request: pytest.FixtureRequest) -> str:
    name = "tests-" + request.node.name.lower().replace("_", "-").replace("[", "-").replace("]", "")[:50]
    client.create_bucket(Bucket=name)
    return name


def upload(client: Any, bucket: str, prefix: str, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(folder).as_posix()}"
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write a group with arrays of each kind."""
    folder = tmp_path / "tree.zarr"
    root = zarrow.create_group(folder, attributes={"title": "rain"})
    values = np.arange(60 * 40, dtype="f4").reshape(60, 40)
    root.create_array("plain", data=values, chunks=(16, 10))
    root.create_array("group/sharded", data=values, chunks=(8, 8), shards=(32, 24), compressors=None)
    root["names"] = ["Oslo", "Rome", "Quito"]
    return folder


SELECTIONS = [np.s_[...], np.s_[3:50:7, 5], np.s_[::-1, 30:], np.s_[[3, 59, 0]]]


@pytest.mark.parametrize("consolidated", [False, True])
def test_a_tree_is_read_as_from_files(
    client: Any, bucket: str, options: dict[str, Any], tree: Path, consolidated: bool
) -> None:
    local = zarrow.open(tree)
    if consolidated:
        local.consolidate_metadata()
    upload(client, bucket, "deep/tree.zarr", tree)
    url = f"s3://{bucket}/deep/tree.zarr"
    remote = zarrow.open(url, storage_options=options)
    assert dict(remote.attrs) == {"title": "rain"}
    assert str(remote.tree()) == str(local.tree())
    for name in ("plain", "group/sharded"):
        for selection in SELECTIONS:
            np.testing.assert_array_equal(
                np.asarray(remote[name].oindex[selection]), np.asarray(local[name].oindex[selection])
            )
        assert remote[name].nbytes_stored() == local[name].nbytes_stored()
    assert remote["names"][:].tolist() == ["Oslo", "Rome", "Quito"]
    assert zarrow.load(url, "names", storage_options=options).tolist() == ["Oslo", "Rome", "Quito"]
    store = zarrow.CloudStore(url, options)
    assert zarrow.open(store, "plain").shape == (60, 40)
    assert zarrow.open_group(url, mode="r", storage_options=options).keys() == local.keys()


def test_a_tree_is_written_changed_and_erased(client: Any, bucket: str, options: dict[str, Any]) -> None:
    url = f"s3://{bucket}/new.zarr"
    root = zarrow.create_group(url, attributes={"title": "rain"}, storage_options=options)
    expected = np.zeros((20, 12), "i4")
    array = root.create_array("a", shape=(20, 12), dtype="i4", chunks=(6, 5))
    shards = root.create_array("b", shape=(20, 12), dtype="i4", chunks=(3, 3), shards=(9, 6))
    for rows, columns, value in [
        (np.s_[:], np.s_[:], 5),
        (np.s_[2:9], np.s_[1:11], 7),
        (np.s_[3:4], np.s_[:], 0),
    ]:
        expected[rows, columns] = value
        array[rows, columns] = value
        shards[rows, columns] = value
        np.testing.assert_array_equal(np.asarray(array[...]), expected)
        np.testing.assert_array_equal(np.asarray(shards[...]), expected)
    array.append(np.ones((2, 12), "i4"))
    array.attrs["units"] = "mm"
    found = zarrow.open(url, "a", storage_options=options)
    assert found.shape == (22, 12) and found.attrs["units"] == "mm"
    root.consolidate_metadata()
    assert zarrow.open(url, storage_options=options).keys() == ["a", "b"]
    with pytest.raises(zarrow.errors.NodeExistsError):
        zarrow.create_group(url, storage_options=options)
    with pytest.raises(ReadOnlyError):
        zarrow.open(url, "a", mode="r", storage_options=options)[...] = 1
    del root["b"]
    keys = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert not [key for key in keys if key.startswith("new.zarr/b")]
    zarrow.save(zarrow.CloudStore(url, options), saved=[1, 2])
    zarrow.save(url, saved_too=[3], storage_options=options)
    found = zarrow.consolidate_metadata(url, storage_options=options)
    assert found["saved_too"][...].tolist() == [3]
    assert zarrow.load(url, "saved", storage_options=options).tolist() == [1, 2]


def test_environment_profiles_and_option_names_of_other_libraries(
    client: Any, bucket: str, endpoint: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(client, bucket, "t", tree)
    url = f"s3://{bucket}/t"
    named = {
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "endpoint": endpoint,
        "region": "us-east-1",
    }
    assert zarrow.open(url, storage_options=named)["plain"].shape == (60, 40)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / ".aws" / "config").write_text(
        f"[profile lab]\nregion = us-east-1\nendpoint_url = {endpoint}\n"
    )
    assert zarrow.open(url, storage_options={"profile": "lab"})["plain"].shape == (60, 40)
    with pytest.raises(UnsupportedError, match="no AWS profile"):
        zarrow.open(url, storage_options={"profile": "other"})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert zarrow.open(url)["plain"].shape == (60, 40)
    assert zarrow.open(f"s3a://{bucket}/t", "names")[0] == "Oslo"


def test_missing_nodes_and_unreachable_servers(bucket: str, options: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError) as raised:
        zarrow.open(f"s3://{bucket}/nothing", storage_options=options)
    assert "folder" not in str(raised.value)
    with pytest.raises(NotFoundError):
        zarrow.open(f"s3://{bucket}/nothing.zip", storage_options=options)
    with pytest.raises(NotFoundError, match="NoSuchBucket"):
        zarrow.open("s3://no-such-bucket-here/nothing", storage_options=options)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/data.zarr"
        with pytest.raises(StoreError, match=r"127\.0\.0\.1"):
            zarrow.open(url, storage_options={"max_retries": 1})


@pytest.mark.parametrize(
    "given",
    [
        {"secert": SECRET},
        {"key": ["x", SECRET]},
        {"client_kwargs": {"endpoint": {"x": SECRET}}},
    ],
)
def test_options_that_are_wrong_are_refused_and_not_shown(given: dict[str, Any]) -> None:
    with pytest.raises((UnsupportedError, TypeError)) as raised:
        zarrow.CloudStore("s3://bucket", given)
    assert SECRET not in str(raised.value)
    with pytest.raises(ValueError, match="storage_options need"):
        zarrow.open("data.zarr", storage_options={"anon": True})


class Refusing(SimpleHTTPRequestHandler):
    """Answers each request with its own headers."""

    def do_GET(self) -> None:
        body = (
            f"<Error><Code>AccessDenied</Code><Message>{self.headers}{self.path}</Message></Error>".encode()
        )
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Any]:
    servers = []

    def start(handler: Any) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_no_secret_is_in_any_text(serve: Any) -> None:
    address = serve(Refusing)
    s3 = {"key": KEY, "secret": SECRET, "token": "session-token-1", "endpoint_url": f"http://{address}"}
    cases = [
        ("s3://bucket/a", s3, (KEY, SECRET, "session-token-1")),
        (
            f"http://me:pass-word@{address}/a?sig=signed-1",
            {"headers": {"X-Key": "header-1"}},
            ("pass-word", "signed-1", "header-1"),
        ),
    ]
    for url, options, secrets in cases:
        store = zarrow.CloudStore(url, options)
        with pytest.raises(StorePermissionError) as raised:
            zarrow.open(store)
        for text in (str(raised.value), repr(raised.value), repr(store), store.name, str(raised.value.store)):
            assert not [secret for secret in secrets if secret in text], text
    with pytest.raises(StorePermissionError, match="for missing and for private data"):
        zarrow.open("s3://bucket/a", storage_options={"anon": True, "endpoint_url": f"http://{address}"})


class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass


def test_a_web_server_without_ranges(serve: Any, tree: Path) -> None:
    zarrow.open(tree).consolidate_metadata()
    address = serve(partial(Quiet, directory=str(tree.parent)))
    remote = zarrow.open(f"http://{address}/tree.zarr")
    local = zarrow.open(tree)
    assert remote.keys() == local.keys()
    for name in ("plain", "group/sharded"):
        np.testing.assert_array_equal(np.asarray(remote[name][5:40]), np.asarray(local[name][5:40]))
    with pytest.raises(ReadOnlyError):
        remote["plain"][0] = 1
    (tree / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    with pytest.raises(UnsupportedError, match="consolidate"):
        zarrow.open(f"http://{address}/tree.zarr").keys()
    assert zarrow.open(f"http://{address}/tree.zarr")["plain"].shape == (60, 40)


class Pieces(Quiet):
    """Ranges in pieces, without a `Content-Length`."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        asked = self.headers.get("Range")
        if not asked or not path.is_file():
            super().do_GET()
            return
        value = path.read_bytes()
        first, last = asked.removeprefix("bytes=").split("-")
        start, stop = (
            (int(first), min(int(last) + 1, len(value))) if first else (len(value) - int(last), len(value))
        )
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(value)}")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(start, stop, 1000):
            piece = value[at : min(at + 1000, stop)]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


def test_ranges_may_come_in_pieces(serve: Any, tree: Path) -> None:
    address = serve(partial(Pieces, directory=str(tree.parent)))
    for name in ("plain", "group/sharded"):
        remote, local = zarrow.open(f"http://{address}/tree.zarr", name), zarrow.open(tree, name)
        for selection in SELECTIONS:
            np.testing.assert_array_equal(
                np.asarray(remote.oindex[selection]), np.asarray(local.oindex[selection])
            )


@pytest.mark.parametrize("status", [500, 503, 429])
def test_zero_retries_means_one_attempt(serve: Any, tree: Path, status: int) -> None:
    asked = []

    class Refusing(Quiet):
        def do_GET(self) -> None:
            if "/c/" in self.path:
                asked.append(self.path)
                self.send_error(status)
            else:
                super().do_GET()

    address = serve(partial(Refusing, directory=str(tree.parent)))
    options = {"max_retries": 0}
    array = zarrow.open(f"http://{address}/tree.zarr", "plain", storage_options=options)
    with pytest.raises(StoreError):
        array[0, 0]
    assert len(asked) == 1


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_are_read_in_place(
    client: Any, bucket: str, options: dict[str, Any], tree: Path, serve: Any, method: int
) -> None:
    archive = tree.parent / "tree.zip"
    with zipfile.ZipFile(archive, "w", method) as packed:
        for path in tree.rglob("*"):
            packed.write(path, path.relative_to(tree))
    client.put_object(Bucket=bucket, Key="deep/tree.zip", Body=archive.read_bytes())
    address = serve(partial(Quiet, directory=str(tree.parent)))
    local = zarrow.open(tree)
    urls = {
        f"s3://{bucket}/deep/tree.zip": options,
        f"http://{address}/tree.zip": None,
        f"http://{address}/tree.zip?signature=1/2.zip": None,
    }
    for url, own in urls.items():
        remote = zarrow.open(url, storage_options=own)
        assert str(remote.tree()) == str(local.tree())
        for name in ("plain", "group/sharded"):
            array = zarrow.open(url, name, storage_options=own)
            for selection in SELECTIONS:
                np.testing.assert_array_equal(
                    np.asarray(array.oindex[selection]), np.asarray(local[name].oindex[selection])
                )
            again = pickle.loads(pickle.dumps(array))
            assert again == array and bytes(again[...]) == bytes(array[...])
        with pytest.raises(ReadOnlyError, match="pack it"):
            remote.create_array("x", shape=3, dtype="i4")
    with pytest.raises(UnsupportedError, match="pack it"):
        zarrow.create_group(f"s3://{bucket}/new.zip", storage_options=options)
    with pytest.raises(NotFoundError):
        zarrow.open(f"s3://{bucket}/missing.zip", storage_options=options)
    # Folders may have such names.
    upload(client, bucket, "folder.zip", tree)
    assert zarrow.open(f"s3://{bucket}/folder.zip", storage_options=options).keys() == local.keys()


def test_a_group_that_cannot_be_listed_has_a_repr(serve: Any, tree: Path) -> None:
    address = serve(partial(Quiet, directory=str(tree.parent)))
    root = zarrow.open(f"http://{address}/tree.zarr")
    assert "members unknown" in repr(root)
    assert "members unknown" in root._repr_html_()


# In a separate process: this one has the threads of the server and of JAX, which a forked child would lack.
FORKED = """
    import json, multiprocessing, sys
    from functools import partial

    import numpy as np
    import zarrow

    def total(array, row):
        return float(np.asarray(array[row]).sum())

    url, options = json.loads(sys.argv[1])
    array = zarrow.open(url, "plain", storage_options=options)
    expected = np.asarray(array[...])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(partial(total, array), range(8)) == [float(expected[row].sum()) for row in range(8)]
    np.testing.assert_array_equal(np.asarray(array[...]), expected)
"""


def test_it_pickles_with_its_options_and_forks(
    client: Any, bucket: str, options: dict[str, Any], tree: Path
) -> None:
    upload(client, bucket, "t", tree)
    url = f"s3://{bucket}/t"
    array = zarrow.open(url, "plain", storage_options=options)
    again = pickle.loads(pickle.dumps(array))
    assert again == array
    np.testing.assert_array_equal(np.asarray(again[...]), np.asarray(array[...]))
    # Some Pythons warn about any fork of a process with threads, and reading starts some.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(FORKED)]
    subprocess.run([*command, json.dumps([url, options])], check=True, timeout=120)


def test_a_machine_without_credentials_is_not_asked_again_and_again(serve: Any) -> None:
    """One request for each possible document of a node, and no more."""
    asked: list[str] = []

    class WithoutCredentials(Refusing):
        def do_PUT(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    endpoint = f"http://{serve(WithoutCredentials)}"
    with pytest.raises(StoreError, match="/latest/api/token"):
        zarrow.open("s3://bucket/a", storage_options={"aws_metadata_endpoint": endpoint, "region": "x"})
    assert set(asked) == {"/latest/api/token"}
    documents = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
    assert len(asked) <= len(documents)


@pytest.mark.parametrize("when", ["open", "read"])
def test_control_c_stops_a_request_that_hangs(serve: Any, tree: Path, when: str) -> None:
    """The server is silent for a minute: the waiting read stops at once."""
    hang = threading.Event()
    released = threading.Event()
    is_first = threading.Lock()

    class Hanging(Quiet):
        def do_GET(self) -> None:
            if hang.is_set():
                # One signal, for any number of requests: a second one would interrupt later code.
                if is_first.acquire(blocking=False):
                    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
                released.wait(60)
            super().do_GET()

    address = serve(partial(Hanging, directory=str(tree.parent)))
    options = {"read_timeout": 60}
    url = f"http://{address}/tree.zarr"
    array = zarrow.open(url, "plain", storage_options=options)
    hang.set()
    try:
        with pytest.raises(KeyboardInterrupt):
            if when == "open":
                zarrow.open(url, "plain", storage_options=options)
            else:
                array[...]
    finally:
        released.set()


def test_appends_of_processes_get_separate_ranges(bucket: str, options: dict[str, Any]) -> None:
    url = f"s3://{bucket}/log.zarr"
    zarrow.create_array(url, shape=(0,), dtype="i8", chunks=(4,), storage_options=options)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.map(partial(_append, url, options), range(3))
    found = zarrow.load(url, storage_options=options).tolist()
    assert sorted(found) == sorted([0, 1, 2] * 6)
    assert all(len(set(found[start : start + 3])) == 1 for start in range(0, 18, 3))


def _append(url: str, options: dict[str, Any], number: int) -> None:
    log = zarrow.open(url, storage_options=options)
    for _ in range(2):
        log.append([number] * 3)


class Odd(Quiet):
    """Answers with something other than requested."""

    odd: dict[str, Any] = {}  # noqa: RUF012

    def do_GET(self) -> None:
        if self.path.endswith("zarr.json"):
            super().do_GET()
            return
        body = b"x" * 40
        self.send_response(self.odd["status"])
        if "range" in self.odd:
            self.send_header("Content-Range", self.odd["range"])
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "range" in self.odd:
            self.wfile.write(body)


def test_nonsensical_answers_are_named(serve: Any, tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10, dtype="i4"), chunks=(10,), compressors=[])
    address = serve(partial(Odd, directory=str(tmp_path)))
    for odd, text in [
        ({"status": 204}, "the server answered 204 No Content"),
        ({"status": 304}, "the server answered 304 Not Modified"),
        (
            {"status": 206, "range": "bytes 7-46/100"},
            "was for bytes 0-39, but the server answered with bytes 7-46/100",
        ),
        ({"status": 206, "range": "nonsense"}, "was for bytes 0-39, but the server answered with nonsense"),
    ]:
        Odd.odd = odd
        array = zarrow.open(f"http://{address}/a.zarr", storage_options={"max_retries": 1})
        with pytest.raises(StoreError, match=text) as raised:
            array[...]
        assert "Generic" not in str(raised.value) and "object_store" not in str(raised.value)


def test_a_truncated_chunk_raises_the_same_error_as_in_a_folder(serve: Any, tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10, dtype="i4"), chunks=(10,), compressors=[])
    address = serve(partial(Quiet, directory=str(tmp_path)))
    for nbytes in (0, 30, 50):
        (tmp_path / "a.zarr" / "c" / "0").write_bytes(bytes(nbytes))
        for selection in (slice(None), slice(8, 10)):
            found = []
            for place in (tmp_path / "a.zarr", f"http://{address}/a.zarr"):
                with pytest.raises(zarrow.errors.CodecError) as raised:
                    zarrow.open(place)[selection]
                found.append((type(raised.value), raised.value.kind))
            assert found[0] == found[1]


def test_all_arrays_of_a_group_are_loaded_at_once(
    client: Any, bucket: str, options: dict[str, Any], tmp_path: Path
) -> None:
    root = zarrow.create_group(tmp_path / "g.zarr")
    for number, dtype in enumerate(("i4", "f8", "U3", "i4")):
        root[f"x{number}"] = np.arange(number + 2).astype(dtype)
    root["deep/y"] = [1, 2]
    (tmp_path / "g.zarr" / "old").mkdir()
    (tmp_path / "g.zarr" / "old" / ".zgroup").write_text('{"zarr_format": 2}')
    upload(client, bucket, "g.zarr", tmp_path / "g.zarr")
    local = zarrow.load(tmp_path / "g.zarr")
    remote = zarrow.load(f"s3://{bucket}/g.zarr", storage_options=options)
    assert list(remote) == list(local) == ["x0", "x1", "x2", "x3", "deep", "old"]
    for name in ("x0", "x1", "x2", "x3"):
        assert remote[name].tolist() == local[name].tolist() == root[name][...].tolist()
    assert remote["deep"]["y"].tolist() == [1, 2] and remote["old"] == {}


def test_a_replaced_creator_gets_an_error(bucket: str, options: dict[str, Any]) -> None:
    url = f"s3://{bucket}/x.zarr"
    arguments: dict[str, Any] = {"chunks": 10, "compressors": [{"name": "tests.replacing"}]}
    encoded: list[int] = []

    def replace() -> None:
        values = np.full(100, 7, "i4")
        zarrow.create_array(url, data=values, overwrite=True, storage_options=options, **arguments)

    def encode(data: bytes) -> bytes:
        encoded.append(1)
        if len(encoded) == 1:
            # The first array is unfinished. Its replacement has the same document.
            thread = threading.Thread(target=replace)
            thread.start()
            thread.join()
        return bytes(data)

    zarrow.codecs.register("tests.replacing", encode=encode, decode=bytes)
    with pytest.raises(zarrow.NodeExistsError):
        zarrow.create_array(url, data=np.ones(100, "i4"), storage_options=options, **arguments)
    assert zarrow.open(url, storage_options=options).shape == (100,)
