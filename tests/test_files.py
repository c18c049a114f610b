"""Files of other formats: what is exported is read by NumPy and pyarrow, and what they write is imported."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zarrow
from zarrow.files import export_file, import_file
from zarrow.files.hidden_file import hidden_file

COMMAND = Path(sys.executable).with_name("zarrow")


@pytest.mark.parametrize("seed", range(30))
def test_arrays_are_those_of_numpy(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(seed)
    shape = tuple(
        chosen.randint(0, 9) if chosen.random() < 0.1 else chosen.randint(1, 9)
        for _ in range(chosen.randint(0, 4))
    )
    dtype = np.dtype(chosen.choice(["?", "u1", "<i2", ">i4", "f4", ">f8", "c8", "M8[s]", "S3", "<U2"]))
    values = np.random.default_rng(seed).integers(0, 2, shape).astype(dtype)
    monkeypatch.setattr("zarrow.interchange.lazy_arrays._PART_NBYTES", chosen.choice([1, 100, 1 << 26]))
    chunks = tuple(chosen.randint(1, extent + 1) for extent in shape)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=chunks)
    export_file(tmp_path / "a.zarr", tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), values)
    if shape and chosen.random() < 0.5:
        np.save(tmp_path / "a.npy", np.asfortranarray(values))
    imported = import_file(tmp_path / "a.npy", tmp_path / "b.zarr", chunks=chunks)
    np.testing.assert_array_equal(imported[...].numpy(), values)
    export_file(tmp_path / "a.zarr", tmp_path / "a.bin")
    little = values.astype(dtype.newbyteorder("<"))
    assert (tmp_path / "a.bin").read_bytes() == little.tobytes()
    (tmp_path / "c.bin").write_bytes(b"header" + values.tobytes())
    imported = import_file(tmp_path / "c.bin", tmp_path / "c.zarr", shape=shape, dtype=dtype, offset=6)
    np.testing.assert_array_equal(imported[...].numpy(), values)


def test_tensors_are_those_of_the_format(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "model.zarr", attributes={"format": "pt", "layers": 2})
    values: dict[str, Any] = {
        "bias": np.arange(3, dtype="f4"),
        "flag": np.array([True, False, True]),
        "layer/weight": np.arange(6, dtype=">i2").reshape(2, 3),
        "empty": np.zeros((0, 4), "f8"),
        "scalar": np.float64(1.5),
    }
    for name, value in values.items():
        root[name] = value
    file = tmp_path / "model.safetensors"
    export_file(tmp_path / "model.zarr", file)
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    assert header.pop("__metadata__") == {"format": "pt"}
    ends = sorted(each["data_offsets"] for each in header.values())
    assert [end for _, end in ends[:-1]] == [begin for begin, _ in ends[1:]]
    assert header["layer/weight"]["dtype"] == "I16"
    begin, end = header["layer/weight"]["data_offsets"]
    assert data[8 + length + begin : 8 + length + end] == values["layer/weight"].astype("<i2").tobytes()
    copy = import_file(file, tmp_path / "copy.zarr")
    assert dict(copy.attrs) == {"format": "pt"}
    for name, value in values.items():
        found = copy[name][...].numpy()
        assert found.dtype == np.asarray(value).dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, value)


def tensor_file(header: Any, rest: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + rest


TENSOR = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}

HOSTILE = {
    "empty": (b"", "a header of 0 bytes"),
    "huge header": (tensor_file({}, length=1 << 62), "a header of"),
    "no json": (tensor_file(b"{"), "no JSON"),
    "no utf-8": (tensor_file(b"\xff\xfe"), "no JSON"),
    "deep json": (tensor_file(b"[" * 100_000), "no JSON"),
    "list": (tensor_file([]), "no object"),
    "twice": (tensor_file(b'{"a": 1, "a": 1}'), "a name occurs twice"),
    "no tensor": (tensor_file({"a": 1}), "expected dtype"),
    "short": (tensor_file({"a": TENSOR}, b"1"), "tensors end at"),
    "long": (tensor_file({"a": TENSOR}, b"123"), "tensors end at"),
    "overlap": (tensor_file({"a": TENSOR, "b": TENSOR}, b"12"), "the one before ends at 2"),
    "gap": (tensor_file({"a": TENSOR | {"data_offsets": [1, 3]}}, b"123"), "the one before ends at 0"),
    "negative": (tensor_file({"a": TENSOR | {"shape": [-1, -2]}}, b"12"), "extents of at least 0"),
    "float": (tensor_file({"a": TENSOR | {"shape": [2.0]}}, b"12"), "extents of at least 0"),
    "bool": (tensor_file({"a": TENSOR | {"shape": [True]}}, b"1"), "extents of at least 0"),
    "overflow": (tensor_file({"a": TENSOR | {"shape": [1 << 62, 1 << 62]}}, b"12"), "takes"),
    "offsets": (tensor_file({"a": TENSOR | {"data_offsets": [2, 0]}}, b"12"), "takes 2 bytes"),
    "type": (tensor_file({"a": TENSOR | {"dtype": "U7"}}, b"12"), "has the type 'U7'"),
    "metadata": (tensor_file({"__metadata__": {"a": 1}}), "expected texts"),
    "path": (tensor_file({"../a": TENSOR}, b"12"), r"\.\."),
    "both": (tensor_file({"a": TENSOR, "a/b": TENSOR | {"data_offsets": [2, 4]}}, b"1234"), "a"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tensors_are_refused(name: str, tmp_path: Path) -> None:
    data, message = HOSTILE[name]
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(zarrow.ZarrowError, match=message):
        import_file(tmp_path / "a.safetensors", tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def test_hostile_arrays_are_refused(tmp_path: Path) -> None:
    def npy(header: str) -> bytes:
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()

    whole = "{'descr': '<f8', 'fortran_order': False, 'shape': %s}\n"
    for data, message in (
        (b"", "no NPY file"),
        (b"\x93NUMPY\x09\x00", "version"),
        (npy("import os"), "no NPY file"),
        (npy("(" * 5000), "no NPY file"),
        (npy(whole % "(3,)") + b"1234", "the file has"),
        (npy(whole % "(-3,)"), "below 0"),
        (npy(whole % "(1 << 70,)"), "no NPY file"),
        (npy(whole % f"({1 << 62}, {1 << 62})"), "the file has"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n") + b"cos\nsystem\n", "pickled"),
    ):
        (tmp_path / "a.npy").write_bytes(data)
        with pytest.raises(zarrow.ZarrowError, match=message):
            import_file(tmp_path / "a.npy", tmp_path / "a.zarr")
        assert not (tmp_path / "a.zarr").exists()
    (tmp_path / "a.bin").write_bytes(b"\x02\x00\x01")
    bools = import_file(tmp_path / "a.bin", tmp_path / "bools.zarr", shape=3, dtype="?")
    assert bools[...].tolist() == [True, False, True]
    for options, message in (
        ({}, "pass shape= and dtype="),
        ({"shape": 4, "dtype": "u1"}, "has 3 bytes"),
        ({"shape": -1, "dtype": "u1"}, "at least 0"),
        ({"shape": 1, "dtype": "O"}, "expected the type of elements"),
        ({"shape": 1, "dtype": "u1", "offset": -1}, "at least 0"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            import_file(tmp_path / "a.bin", tmp_path / "a.zarr", **options)
    for table in ("a.parquet", "a.arrow"):
        (tmp_path / table).write_bytes(b"PAR1 no table PAR1")
        with pytest.raises(zarrow.MetadataError, match=r"no (parquet|arrow) file"):
            import_file(tmp_path / table, tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


def table_of(rows: int) -> pa.Table:
    return pa.table(
        {
            "number": pa.array(range(rows), pa.int32()),
            "missing": pa.array([None if at % 100 == 99 else at / 2 for at in range(rows)]),
            "text": pa.array([f"row {at}" for at in range(rows)]),
            "kind": pa.array(["a", None, "b"] * (rows // 3)).dictionary_encode(),
            "time": pa.array(range(rows), pa.timestamp("us")),
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(range(2 * rows), pa.float32()), 2),
        }
    )


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("chunks", [7, 100, 500])
def test_tables_are_those_of_pyarrow(ending: str, chunks: int, tmp_path: Path) -> None:
    table = table_of(300)
    file = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(table, file, row_group_size=50, write_statistics=chunks != 7)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            for at in itertools.count(0, 45):
                if at >= 300:
                    break
                # Batches of a file share their dictionaries.
                writer.write_table(table.slice(at, 45))
    done: list[tuple[int, int]] = []
    group = import_file(file, tmp_path / "a.zarr", chunks=chunks, progress=lambda *at: done.append(at))
    assert done[-1] == (300, 300)
    assert group.attrs["column-order"] == table.column_names
    assert group["number"].chunks == (min(chunks, 300),)
    export_file(group, tmp_path / f"b.{ending}")
    read = pq.read_table if ending == "parquet" else lambda path: pa.ipc.open_file(path).read_all()
    found = read(tmp_path / f"b.{ending}")
    assert found.column_names == table.column_names
    for name in table.column_names:
        assert found[name].to_pylist() == table[name].to_pylist(), name


def test_what_a_format_does_not_have_is_refused(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "g.zarr", {"x": [1, 2], "name": ["a", "b"]})
    missing = zarrow.create_array(tmp_path / "m.zarr", data=np.ma.masked_equal([1, 2], 2))
    for source, file, message in (
        (tmp_path / "g.zarr", "a.npy", "is a group, expected an array"),
        (tmp_path / "g.zarr/x", "a.parquet", "is an array, expected the group of a table"),
        (tmp_path / "g.zarr/name", "a.npy", "plain numbers"),
        (tmp_path / "g.zarr", "a.safetensors", "plain numbers"),
        (missing, "a.bin", "plain numbers"),
        (tmp_path / "g.zarr", "a.txt", "no known format"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            export_file(source, tmp_path / file)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".zarr"]
    pq.write_table(pa.table({"a": pa.array([[1], [1, 2]])}), tmp_path / "lists.parquet")
    with pytest.raises(ValueError, match=r"^'a': "):
        import_file(tmp_path / "lists.parquet", tmp_path / "l.zarr")
    assert not (tmp_path / "l.zarr").exists()


def test_pyarrow_is_named_where_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zarrow.save(tmp_path / "g.zarr", {"x": [1, 2]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(zarrow.UnsupportedError, match="pip install pyarrow"):
        export_file(tmp_path / "g.zarr", tmp_path / "a.parquet")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=np.arange(1000), chunks=10)
    (tmp_path / "a.npy").write_text("old")
    with pytest.raises(FileExistsError):
        export_file(tmp_path / "a.zarr", tmp_path / "a.npy")
    (tmp_path / "a.zarr" / "c" / "50").write_bytes(b"corrupt")
    with pytest.raises(zarrow.CodecError):
        export_file(tmp_path / "a.zarr", tmp_path / "a.npy", overwrite=True)
    assert (tmp_path / "a.npy").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "a.zarr"]
    zarrow.create_array(tmp_path / "b.zarr", data=[1, 2])
    export_file(tmp_path / "b.zarr", tmp_path / "a.npy", overwrite=True)
    assert np.load(tmp_path / "a.npy").tolist() == [1, 2]
    np.save(tmp_path / "long.npy", np.arange(1000))
    with (tmp_path / "long.npy").open("rb", buffering=0) as file:
        elements = zarrow.files.npy.opened(file)
        os.truncate(tmp_path / "long.npy", 500)
        with pytest.raises(zarrow.MetadataError, match="the file ends before"):
            zarrow.create_array(tmp_path / "long.zarr", data=elements)
    with pytest.raises(zarrow.NotFoundError):
        zarrow.open(tmp_path / "long.zarr")


KILLED = """
import os, signal, sys
from pathlib import Path
from zarrow.files.hidden_file import hidden_file
with hidden_file(Path(sys.argv[1])) as (hidden, file):
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_files_of_killed_exports_are_removed(tmp_path: Path) -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(6.0))
    target, other = tmp_path / "a.npy", tmp_path / "b.npy"
    for path in (target, target, other):
        assert subprocess.run([sys.executable, "-c", KILLED, path]).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    with hidden_file(target) as (used, file):
        # The file of a living writer stays.
        zarrow.files.export_file(array, target)
        assert used.exists() and file.write(b"x") == 1
        assert len(list(tmp_path.iterdir())) == 3
    zarrow.files.export_file(array, other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy"]
    assert np.array_equal(np.load(target), np.arange(6.0))


def test_a_hidden_file_that_another_writer_removed_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, []

    def removed_before(file: Any, operation: int) -> None:
        if not removed:
            [hidden] = tmp_path.iterdir()
            hidden.unlink()
            removed.append(hidden)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", removed_before)
    with hidden_file(tmp_path / "a.npy") as (hidden, file):
        assert hidden.exists() and hidden not in removed and file.write(b"x") == 1
    assert len(removed) == 1 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["|S0", "<U0", "|V0", ("<f8", (2,))])
def test_elements_without_bytes_are_refused(tmp_path: Path, kind: Any) -> None:
    """A small file could claim any number of them."""
    with (tmp_path / "a.npy").open("wb") as file:
        header = {"descr": kind, "fortran_order": False, "shape": (2,)}
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[attr-defined]
        file.write(bytes(32))
    with pytest.raises(zarrow.errors.MetadataError, match="of fixed size"):
        zarrow.files.import_file(tmp_path / "a.npy", tmp_path / "a.zarr")
    with pytest.raises(zarrow.errors.MetadataError, match="of fixed size"):
        zarrow.files.import_file(
            tmp_path / "a.npy", tmp_path / "a.zarr", format="raw", shape=2, dtype=np.dtype(kind)
        )


def test_folders_and_devices_are_not_replaced(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1.5])
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    for name in ("folder.npy", "pipe.npy"):
        for overwrite in (False, True):
            with pytest.raises(FileExistsError, match="is not a regular file"):
                zarrow.files.export_file(tmp_path / "a.zarr", tmp_path / name, overwrite=overwrite)
    assert (tmp_path / "pipe.npy").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "folder.npy", "pipe.npy"]


def test_large_arrays_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrow.interchange.lazy_arrays._PART_NBYTES", 1 << 18)
    zarrow.create_array(tmp_path / "a.zarr", data=np.ones((512, 4096)), chunks=(64, 64))
    export_file(tmp_path / "a.zarr", tmp_path / "a.npy")
    tracemalloc.start()
    try:
        import_file(tmp_path / "a.npy", tmp_path / "b.zarr", chunks=(64, 64))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert (zarrow.open(tmp_path / "b.zarr")[...].numpy() == 1).all()


def test_the_commands_export_and_import(tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100)

    zarrow.save(tmp_path / "a.zarr", np.arange(6).reshape(2, 3))
    assert run("export", tmp_path / "a.zarr", tmp_path / "a.npy").returncode == 0
    assert run("export", tmp_path / "a.zarr", tmp_path / "a.npy").returncode == 1
    assert run("export", tmp_path / "a.zarr", tmp_path / "a.xyz").returncode == 2
    finished = run("import", tmp_path / "a.npy", tmp_path / "b.zarr", "--chunks", "1,3", "--codec", "none")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    assert zarrow.open(tmp_path / "b.zarr")[1].tolist() == [3, 4, 5]
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "t.parquet")
    assert run("import", tmp_path / "t.parquet", tmp_path / "t.zarr", "--chunks", 2).returncode == 0
    assert zarrow.open(tmp_path / "t.zarr")["x"].chunks == (2,)
    message = "zarrow import: No such file or directory: 'nothing.npy'\n"
    assert run("import", "nothing.npy", tmp_path / "n.zarr").stderr == message
    described = run("export", tmp_path / "a.zarr", tmp_path / "j.npy", "--json").stdout
    assert json.loads(described)["nbytes"] == (tmp_path / "j.npy").stat().st_size
    described = run("import", tmp_path / "j.npy", tmp_path / "j.zarr", "--json").stdout
    assert json.loads(described)["shape"] == [2, 3]


def test_a_dry_run_stores_nothing(tmp_path: Path) -> None:
    source, target = tmp_path / "a.npy", tmp_path / "a.zarr"
    np.save(source, np.arange(6, dtype=">i2").reshape(2, 3))
    planned = import_file(source, target, "deep/x", chunks=(1, 3), dry_run=True)
    assert not target.exists()
    stored = import_file(source, target, "deep/x", chunks=(1, 3))
    assert planned.metadata == stored.metadata and planned.path == stored.path
    before = {path: path.stat() for path in target.rglob("*")}
    with pytest.raises(zarrow.NodeExistsError, match=r"'deep/x' of .*a.zarr exists: pass overwrite=True"):
        import_file(source, target, "deep/x", dry_run=True)
    import_file(source, target, "deep/x", overwrite=True, dry_run=True)
    with pytest.raises(ValueError, match="chunks"):
        import_file(source, tmp_path / "b.zarr", chunks=(1, 2, 3), dry_run=True)
    pq.write_table(pa.table({"x": [1, None], "words": ["a", "b"]}), tmp_path / "t.parquet")
    table = import_file(tmp_path / "t.parquet", target, "t", dry_run=True)
    assert {path: path.stat() for path in target.rglob("*")} == before
    stored = import_file(tmp_path / "t.parquet", target, "t")
    for name in ("x", "words"):
        assert table[name].metadata == stored[name].metadata
    with pytest.raises(zarrow.NodeExistsError):
        import_file(tmp_path / "t.parquet", target, "t", dry_run=True)
    command = [COMMAND, "import", tmp_path / "t.parquet", target, "--path", "u", "--dry-run"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.splitlines() == [
        "would store /u/words: string (2,) in chunks (2,)",
        "would store /u/x: int64 (2,) in chunks (2,)",
    ]
    assert "u" not in zarrow.open(target)
