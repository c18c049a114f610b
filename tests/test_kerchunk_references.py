"""References of kerchunk, which the engine follows itself."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas
import pytest
import xarray
import zarr
from fsspec.implementations.reference import LazyReferenceMapper, ReferenceFileSystem

import zarrow
from test_reference_merging import serving
from zarrow import cli
from zarrow.xarray import to_zarr

pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")

COUNT = 400


class Read:
    """Counts the parts that fsspec reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        get = ReferenceFileSystem.cat_file

        def counted(fs: Any, path: str, *arguments: Any, **options: Any) -> Any:
            if not path.rpartition("/")[2].startswith(".z") and not path.endswith("zarr.json"):
                self.paths.append(path)
            return get(fs, path, *arguments, **options)

        monkeypatch.setattr(ReferenceFileSystem, "cat_file", counted)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    return Read(monkeypatch)


def document(count: int = COUNT, **changes: Any) -> str:
    common = {"zarr_format": 2, "shape": [count, 4], "chunks": [1, 4], "dtype": "<i4", "order": "C"}
    return json.dumps(common | {"compressor": None, "filters": None, "fill_value": -1} | changes)


def values() -> Any:
    return np.arange(COUNT * 4, dtype="<i4").reshape(COUNT, 4)


def mapper(references: dict[str, Any], root: str = "", **options: Any) -> Any:
    return fsspec.filesystem("reference", fo=references, **options).get_mapper(root)


def parts(url: str, path: str, separator: str = ".") -> dict[str, Any]:
    return {f"{path}/{row}{separator}0": [url, 16 * row, 16] for row in range(COUNT)}


@pytest.mark.parametrize("form", ["path", "file://"])
@pytest.mark.parametrize("root", ["", "deep"])
def test_parts_of_files_are_read_by_the_engine(tmp_path: Path, read: Read, form: str, root: str) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    url = str(file) if form == "path" else f"file://{file}"
    references: dict[str, Any] = {
        ".zgroup": '{"zarr_format": 2}',
        "deep/.zgroup": '{"zarr_format": 2}',
        "deep/rain/.zarray": document(),
        "deep/snow/.zarray": document(dimension_separator="/"),
        **parts(url, "deep/rain"),
        **parts(url, "deep/snow", "/"),
    }
    group = zarrow.open(mapper(references, root))
    for name in ("rain", "snow"):
        array = group[name if root else f"deep/{name}"]
        np.testing.assert_array_equal(array[...], values())
        np.testing.assert_array_equal(array[::-7, 1], values()[::-7, 1])
    assert read.paths == []


def test_fsspec_reads_what_the_engine_cannot(tmp_path: Path, read: Read) -> None:
    expected = values()
    whole, file = tmp_path / "whole", tmp_path / "odd name %20.bin"
    whole.write_bytes(expected[2].tobytes())
    file.write_bytes(expected.tobytes())
    references: dict[str, Any] = {
        "rain/.zarray": document(7),
        "rain/0.0": "base64:" + base64.b64encode(expected[0].tobytes()).decode(),
        "rain/1.0": [f"file://{file}", 16, 16],
        "rain/2.0": [f"file://{whole}"],
        "rain/3.0": [f"file://{file}", 48, 16],
        "rain/5.0": [f"file://{tmp_path}/../{tmp_path.name}/{file.name}", 80, 16],
        "rain/README": "no chunk",
    }
    array = zarrow.open(mapper(references), "rain")
    expected[4] = expected[6] = -1
    np.testing.assert_array_equal(array[...], expected[:7])
    assert "rain/3.0" not in read.paths and "rain/2.0" in read.paths


def test_the_command_reads_a_file_of_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rain.bin").write_bytes(values().tobytes())
    references = {".zgroup": '{"zarr_format": 2}', "rain/.zarray": document(), **parts("rain.bin", "rain")}
    Path("refs.json").write_text(json.dumps({"version": 1, "refs": references}))
    Path("other.json").write_text("[")
    for typed, status, shown in (
        ("copy reference://refs.json copy.zarr", 0, "1 units done"),
        ("diff reference://refs.json copy.zarr", 0, ""),
        ("tree reference://refs.json rain", 1, "refs.json/rain is an array"),
        ("info reference://other.json", 1, "other.json' is no file of kerchunk's references"),
        ("rm reference://refs.json --yes", 1, "the store is read-only"),
        ("copy copy.zarr reference://refs.json", 1, "references are only read"),
        ("info refs.json", 1, "type zarrow.open('reference://refs.json')"),
        ("copy reference://refs.json/rain/ rain.zarr", 0, "1 units done"),
        ("export reference://refs.json/rain rain.npy --json", 0, '"format": "npy"'),
        ("info reference://refs.json/none", 1, "no Zarr array or group here"),
        ("info reference://none.json/rain", 1, "no file of references"),
        ("repair copy.zarr --from reference://refs.json", 0, "0 faults mended"),
        ("repair reference://refs.json --from copy.zarr", 1, "references are only read"),
        ("info other.json", 1, "this is a file; a store is a folder"),
    ):
        assert cli.main(typed.split()) == status, typed
        found = capsys.readouterr()
        assert shown in found.out + found.err, typed
    np.testing.assert_array_equal(zarrow.open_array("copy.zarr", "rain")[...], values())
    np.testing.assert_array_equal(zarrow.open_array("rain.zarr")[...], values())
    np.testing.assert_array_equal(np.load("rain.npy"), values())


def test_a_location_of_references_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rain.bin").write_bytes(values().tobytes())
    chunks = {key: ["{{u}}.{{ end }}", *part[1:]] for key, part in parts("rain.bin", "rain").items()}
    references = {
        ".zgroup": '{"zarr_format": 2}',
        "rain/.zarray": json.loads(document()),
        "rain/.zattrs": {"_ARRAY_DIMENSIONS": ["time", "x"]},
        **chunks,
    }
    templates = {"u": "rain", "end": "bin"}
    Path("refs.json").write_text(json.dumps({"version": 1, "templates": templates, "refs": references}))
    relative, absolute = "reference://refs.json", f"reference://{tmp_path}/refs.json"
    root = zarrow.open(relative)
    assert root == zarrow.open_group(absolute) and root.store == absolute
    monkeypatch.chdir("/")
    array = zarrow.open_array(absolute, "rain")
    assert array == root["rain"] == pickle.loads(pickle.dumps(array))
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(zarrow.load(f"reference://file://{tmp_path}/refs.json")["rain"], values())
    dataset = xarray.open_dataset(relative, engine="zarrow", consolidated=False)
    np.testing.assert_array_equal(dataset["rain"], values())
    assert read.paths == []
    zarrow.copy(relative, "copy.zarr")
    assert list(zarrow.diff(relative, zarrow.open("copy.zarr"))) == []
    changes: list[Any] = [
        lambda: array.write(0, 1),
        lambda: zarrow.save(relative, [1]),
        lambda: zarrow.create_group(relative, overwrite=True),
        lambda: root.attrs.update(a=1),
        lambda: root.create_group("new"),
        lambda: to_zarr(dataset, relative),
        lambda: to_zarr(dataset.chunk(), relative, mode="a"),
        lambda: zarrow.repair(relative, source="copy.zarr"),
    ]
    for change in changes:
        with pytest.raises(zarrow.errors.ReadOnlyError, match=r"read-only|only read"):
            change()


HOSTILE: list[str] = [
    "",
    "[",
    "[1]",
    "7",
    "[" * 100_000,
    '{"a": ' * 50_000,
    "\xff",
    '{"version": 2, "refs": {}}',
    '{"version": 1}',
    '{"version": 1, "refs": 3}',
    '{"version": 1, "refs": {}, "templates": []}',
    '{"a": null}',
    '{"a": ["url", 1]}',
    '{"a": ["url", -1, 3]}',
    '{"a": ["url", 1, 1e9]}',
    '{"a": ["url", true, 1]}',
    '{"a": ["url", 1, 9223372036854775808]}',
    '{"a": ["none://x", 1, 1]}',
    '{"version": 1, "refs": {"a": "base64:%%%", "b": ["{{x}}"]}}',
    '{"version": 1, "refs": {"a": ["{{x}}"]}, "templates": {"x": "{{y}}"}}',
    '{"version": 1, "refs": {"a": ["{{x.__class__}}"]}, "templates": {"x": "y"}}',
    '{"version": 1, "refs": {"a": ["{{x:>99999999999}}"]}, "templates": {"x": "y"}}',
    '{"version": 1, "refs": {"a": ["{{x}}"]}, "templates": {"x": "%s"}}' % ("y" * 10_000),
    # 2.5 GB if expanded.
    '{"version": 1, "refs": {"a": ["' + "{{x}}" * 50_000 + '"]}, "templates": {"x": "' + "y" * 50_000 + '"}}',
    '{"version": 1, "refs": {"a": ["' + "{{x}}" * 50_000 + '"]}, "templates": {"x": "yy"}}',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_files_of_references_are_typed_errors(text: str, tmp_path: Path) -> None:
    (tmp_path / "refs.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(zarrow.MetadataError, match="is no file of kerchunk's references") as raised:
        zarrow.open(f"reference://{tmp_path}/refs.json")
    assert len(str(raised.value)) < 1000


def test_files_of_references_that_cannot_be_read_are_typed_errors(tmp_path: Path) -> None:
    (tmp_path / "gen.json").write_text('{"version": 1, "refs": {}, "gen": [{"key": "a"}]}')
    (tmp_path / "empty.json").write_text("{}")
    for name, error, match in (
        ("none.json", zarrow.NotFoundError, "no file of references"),
        ("empty.json", zarrow.NotFoundError, "no Zarr array or group here"),
        ("", zarrow.StoreError, "cannot be read"),
        ("gen.json", zarrow.UnsupportedError, "gen"),
    ):
        for opened in (zarrow.open, zarrow.open_array, zarrow.load):
            with pytest.raises(error, match=match):
                opened(f"reference://{tmp_path}/{name}")
    with pytest.raises(zarrow.StoreError, match="cannot be read"):
        zarrow.open("reference://none://x")
    with pytest.raises(ValueError, match="storage_options"):
        zarrow.open(f"reference://{tmp_path}/empty.json", storage_options={"x": 1})


@pytest.mark.parametrize(
    "file", ["a b.json", "a#b?c*[1].json", "a::b.json", "x.json/y.json", "ü.json", "none"]
)
@pytest.mark.parametrize("node", ["rain", "a::b", "a b#c?", "x.json", "x.json/y"])
def test_any_name_may_be_the_file_of_references(
    file: str, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rain.bin").write_bytes(values().tobytes())
    (tmp_path / file).parent.mkdir(exist_ok=True)
    references = {f"{node}/.zarray": document(), **parts(f"{tmp_path}/rain.bin", node)}
    (tmp_path / file).write_text(json.dumps(references))
    monkeypatch.chdir(tmp_path)
    arrays = [zarrow.open(f"reference://{file}", node)]
    if file != "none":
        arrays += [zarrow.open(f"reference://{place}/{node}") for place in (file, f"{tmp_path}/{file}")]
    monkeypatch.chdir("/")
    for array in arrays:
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[...], values())


class Failing(http.server.BaseHTTPRequestHandler):
    """Answers with the status in the path, and loses the connection at others."""

    def do_GET(self) -> None:
        if self.path[1:4].isdigit():
            self.send_response(int(self.path[1:4]))
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        elif self.path.startswith("/short"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{}")

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_failures_of_a_web_server_are_not_missing_files() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        for path, error, match in (
            ("404.json", zarrow.NotFoundError, "no file of references"),
            ("403.json", zarrow.StoreError, "the server answers 403"),
            ("500.json/rain", zarrow.StoreError, "the server answers 500"),
            ("drop.json", zarrow.StoreError, "cannot be read"),
            ("short.json", zarrow.StoreError, "cannot be read"),
            ("403.json?token=hush", zarrow.StoreError, "403"),
        ):
            with pytest.raises(error, match=match) as raised:
                zarrow.open(f"reference://http://me:hush@{address}/{path}")
            assert type(raised.value) is error and "hush" not in str(raised.value)
        server.shutdown()
    for location in (f"http://{address}/refs.json", "reference://refs.json", f"{'a' * 5000}.json/x"):
        with pytest.raises(zarrow.StoreError, match="cannot be read"):
            zarrow.open(f"reference://{location}")


def test_file_systems_of_others_are_read_by_fsspec(read: Read) -> None:
    fsspec.filesystem("memory").pipe("/kerchunk.bin", values().tobytes())
    references = {"rain/.zarray": document(), **parts("memory://kerchunk.bin", "rain")}
    np.testing.assert_array_equal(zarrow.open(mapper(references), "rain")[...], values())
    assert len(read.paths) == COUNT


def test_arrays_of_version_3_and_scalars(tmp_path: Path, read: Read) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    v3 = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [COUNT, 4],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 4]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "fill_value": 0,
    }
    references: dict[str, Any] = {
        "rain/zarr.json": json.dumps(v3),
        **{f"rain/c/{row}/0": [str(file), 16 * row, 16] for row in range(COUNT)},
        "one/.zarray": document(shape=[], chunks=[]),
        "one/0": [str(file), 20, 4],
    }
    store = mapper(references)
    np.testing.assert_array_equal(zarrow.open(store, "rain")[...], values())
    assert zarrow.open(store, "one")[()].item() == 5
    assert read.paths == []


@pytest.mark.parametrize(
    "reference",
    [
        ["{file}", 0, 1 << 70],
        ["{file}", -16, 16],
        ["{file}", "x", 16],
        ["{file}", 1600, 16],
        ["{file}-missing", 0, 16],
        ["file:///", 0, 16],
        ["", 0, 16],
        [None, 0, 16],
        ["unknown://host/name", 0, 16],
        [],
        ["{file}", 0, 16, 4],
        ["{file}", 16.7, 16],
        ["{file}", "16", 16],
        ["{file}", True, 16],
        7,
    ],
)
def test_hostile_references_are_errors_or_empty(tmp_path: Path, reference: Any) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes()[:160])
    if isinstance(reference, list):
        reference = [each.format(file=file) if isinstance(each, str) else each for each in reference]
    references = {"rain/.zarray": document(3), "rain/1.0": [str(file), 16, 16]}
    store = mapper(references)
    # fsspec checks references when a file system is created, and refuses this one.
    store.fs.references["rain/0.0"] = reference
    allowed = [[-1] * 4]
    with contextlib.suppress(Exception):
        allowed.append(np.frombuffer(store.fs.cat_file("rain/0.0", end=16), "<i4").tolist())
    try:
        found = zarrow.open(store, "rain")[0].tolist()
    except zarrow.ZarrowError as error:
        assert error.kind != "internal"
    else:
        assert found in allowed
    assert zarrow.open(store, "rain")[1].tolist() == [4, 5, 6, 7]


def test_changes_end_the_references(tmp_path: Path, read: Read) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    store = mapper({"rain/.zarray": document(), **parts(str(file), "rain")})
    array = zarrow.open(zarrow.PythonStore(store, sole_writer=True), "rain", mode="r+")
    np.testing.assert_array_equal(array[...], values())
    assert read.paths == []
    array[5:7] = 3
    expected = values()
    expected[5:7] = 3
    np.testing.assert_array_equal(array[...], expected)
    assert read.paths


def test_a_change_is_seen_by_all_handles(tmp_path: Path) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    store = mapper({"rain/.zarray": document(), **parts(str(file), "rain")})
    one, other = (
        zarrow.open(zarrow.PythonStore(store, sole_writer=True), "rain", mode="r+") for _ in range(2)
    )
    assert other[1].tolist() == one[1].tolist() == [4, 5, 6, 7]
    one[1] = 9
    assert other[1].tolist() == one[1].tolist() == [9] * 4


@pytest.mark.parametrize("root", ["", "below"])
def test_groups_list_their_members(tmp_path: Path, root: str) -> None:
    """At the root of such a file system, names begin without a slash."""
    (tmp_path / "file").write_bytes(values().tobytes())
    above = f"{root}/" if root else ""
    references = {
        f"{above}{name}": value
        for name, value in {
            ".zgroup": '{"zarr_format": 2}',
            "deep/.zgroup": '{"zarr_format": 2}',
            "a/.zarray": document(),
            "deep/b/.zarray": document(),
            **parts(str(tmp_path / "file"), "a"),
            **parts(str(tmp_path / "file"), "deep/b"),
        }.items()
    }
    store = mapper(references, root)
    group = zarrow.open_group(store, mode="r")
    assert sorted(group) == ["a", "deep"] and list(group["deep"]) == ["b"]
    assert sorted(zarr.open_group(store, mode="r")) == sorted(group)
    loaded = zarrow.load(store)
    np.testing.assert_array_equal(loaded["deep"]["b"], values())
    zarrow.copy(store, tmp_path / "copy.zarr")
    np.testing.assert_array_equal(zarrow.open(tmp_path / "copy.zarr")["a"][...], values())


def test_inline_shards(tmp_path: Path) -> None:
    """fsspec gives the size of their text in base64."""
    expected, source = np.arange(60, dtype="i4"), zarr.storage.MemoryStore()
    zarr.create_array(source, shape=60, chunks=5, shards=20, dtype="i4")[...] = expected
    references = {}
    for key, value in source._store_dict.items():
        data = value.to_bytes()
        references[key] = data.decode() if "json" in key else f"base64:{base64.b64encode(data).decode()}"
    array = zarrow.open_array(mapper(references), mode="r")
    for selection in (slice(0, 3), slice(7, 33), slice(None)):
        np.testing.assert_array_equal(array[selection], expected[selection])


def test_other_names_are_no_chunks(tmp_path: Path) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    references = {"rain/.zarray": document(2), "rain/0.0": [str(file), 0, 16]}
    references |= {"rain/00.0": [str(file), 32, 16], "rain/+1.0": [str(file), 32, 16]}
    assert zarrow.open(mapper(references), "rain")[...].tolist() == [[0, 1, 2, 3], [-1] * 4]


def test_references_on_a_web_server(read: Read) -> None:
    expected = values()
    with serving(expected.tobytes()) as server:
        references = {"rain/.zarray": document(), **parts(f"{server.url}/rain.bin", "rain")}
        array = zarrow.open(mapper(references, remote_protocol="http"), "rain")
        np.testing.assert_array_equal(array[...], expected)
        # Near parts were requested together.
        assert len(server.ranges) < COUNT // 2
    assert read.paths == []


def parquet(folder: Path, file: Path, record_size: int) -> Any:
    """Write references as kerchunk does, by rows of files."""
    (folder / "rain").mkdir(parents=True)
    documents = {".zgroup": {"zarr_format": 2}, "rain/.zarray": json.loads(document(dimension_separator="."))}
    (folder / ".zmetadata").write_text(json.dumps({"metadata": documents, "record_size": record_size}))
    rows = [(str(file), 16 * row, 16) if row % 50 != 7 else (None, 0, 0) for row in range(COUNT)]
    for record in range(-(-COUNT // record_size)):
        part = rows[record * record_size : (record + 1) * record_size]
        part += [(None, 0, 0)] * (record_size - len(part))
        columns = pandas.DataFrame(part, columns=["path", "offset", "size"], dtype=object)
        columns.to_parquet(folder / "rain" / f"refs.{record}.parq", engine="pyarrow")
    fs = ReferenceFileSystem({}, remote_protocol="file")
    fs.references = LazyReferenceMapper(str(folder), engine="pyarrow")
    return fsspec.FSMap("", fs)


@pytest.mark.parametrize("record_size", [25, 32, 1000])
def test_references_in_parquet(tmp_path: Path, read: Read, record_size: int) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    expected = values()
    expected[7::50] = -1
    array = zarrow.open(parquet(tmp_path / "references", file, record_size), "rain")
    np.testing.assert_array_equal(array[100:110], expected[100:110])
    np.testing.assert_array_equal(array[...], expected)
    assert set(read.paths) <= {f"rain/{row}.0" for row in range(7, COUNT, 50)}


def test_threads_read_one_mapper(tmp_path: Path, read: Read) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    store = mapper({"rain/.zarray": document(), **parts(str(file), "rain")})
    array, failures = zarrow.open(store, "rain"), []

    def check(turn: int) -> None:
        for row in range(turn, COUNT, 8):
            found = array[row].tolist()
            if found != [4 * row, 4 * row + 1, 4 * row + 2, 4 * row + 3]:
                failures.append((row, found))

    threads = [threading.Thread(target=check, args=(turn,)) for turn in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert read.paths == []


def test_zarr_python_reads_the_same(tmp_path: Path) -> None:
    file = tmp_path / "rain.bin"
    file.write_bytes(values().tobytes())
    references = {"rain/.zarray": document(), **parts(str(file), "rain")}
    options = {"asynchronous": True, "remote_options": {"asynchronous": True}}
    theirs = zarr.open_array(mapper(references, "rain", **options), mode="r")
    np.testing.assert_array_equal(theirs[...], np.asarray(zarrow.open(mapper(references), "rain")[...]))
