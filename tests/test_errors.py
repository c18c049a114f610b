"""The exceptions: each is also a builtin exception, names its location, and pickles."""

from __future__ import annotations

import copy
import json
import pickle
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import zarr

import zarrow
from zarrow import errors

BUILTINS = {
    "NotFoundError": (FileNotFoundError, KeyError),
    "NodeExistsError": (FileExistsError, ValueError),
    "NodeTypeError": (TypeError,),
    "StoreError": (OSError,),
    "StorePermissionError": (OSError, PermissionError),
    "InvalidKeyError": (ValueError, KeyError),
    "MetadataError": (ValueError,),
    "CodecError": (ValueError,),
    "LimitError": (ValueError,),
    "IndexingError": (IndexError,),
    "ReadOnlyError": (OSError, PermissionError),
    "ShapeError": (ValueError,),
    "StaleHandleError": (OSError,),
    "OutOfMemoryError": (MemoryError,),
    "DataTypeError": (BufferError, TypeError, ValueError),
    "ExchangeError": (BufferError, ValueError),
    "UnsupportedError": (NotImplementedError,),
    "InternalError": (RuntimeError,),
    "DeviceError": (RuntimeError,),
}


def test_every_class_has_its_builtin():
    assert {*BUILTINS, "ZarrowError", "ZarrowWarning"} == set(errors.__all__)
    for name, builtins in BUILTINS.items():
        assert issubclass(getattr(zarrow, name), (zarrow.ZarrowError, *builtins))
        assert all(issubclass(getattr(zarrow, name), builtin) for builtin in builtins)


@pytest.mark.parametrize("name", [*BUILTINS, "ZarrowError"])
def test_every_class_pickles(name):
    place = {"kind": "checksum", "store": "s.zarr", "path": "a/b", "chunk": (1, 2), "codec": "crc32c"}
    error = getattr(zarrow, name)("what went wrong", **place)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) == "what went wrong"
    assert {key: getattr(again, key) for key in place} == place


KINDS = {
    "ZarrowError": "internal",
    "NotFoundError": "not_found",
    "NodeExistsError": "exists",
    "NodeTypeError": "wrong_node",
    "StoreError": "io",
    "StorePermissionError": "permission",
    "InvalidKeyError": "bad_key",
    "MetadataError": "metadata",
    "CodecError": "bad_codec",
    "LimitError": "limit",
    "IndexingError": "index",
    "ReadOnlyError": "read_only",
    "ShapeError": "shape",
    "StaleHandleError": "stale",
    "OutOfMemoryError": "out_of_memory",
    "DataTypeError": "data_type",
    "ExchangeError": "no_such_type",
    "UnsupportedError": "unsupported",
    "InternalError": "internal",
    "DeviceError": "unavailable",
}


@pytest.mark.parametrize("name", [*BUILTINS, "ZarrowError"])
def test_every_class_has_a_default_kind(name):
    error = getattr(zarrow, name)("what went wrong")
    for again in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert again.kind == KINDS[name]
        assert (again.store, again.path, again.chunk, again.codec) == (None, None, None, None)


def test_default_kinds_are_those_of_the_engine(tmp_path):
    group = zarrow.create_group(tmp_path)
    values = group.create_array("values", data=[1, 2])
    read_only = zarrow.open(tmp_path, "values", mode="r")
    for call in (
        lambda: zarrow.open(tmp_path, "nothing"),
        lambda: group.create_array("values", data=[1]),
        lambda: zarrow.open_group(tmp_path, "values"),
        lambda: zarrow.open(tmp_path, "../values"),
        lambda: group.create_array("a", shape=(2,), dtype="i4", compressors=[{"name": "zstd", "level": 3}]),
        lambda: values[2],
        lambda: values.write(slice(None), [1, 2, 3]),
        lambda: values.write(slice(None), [1.5, 2.5], casting="safe"),
        lambda: read_only.resize(3),
    ):
        with pytest.raises(zarrow.ZarrowError) as raised:
            call()
        assert raised.value.kind == KINDS[type(raised.value).__name__], raised.value


def test_errors_take_their_location_from_a_node(tmp_path):
    array = zarrow.create_group(tmp_path).create_array("a/b", data=[1, 2])
    error = zarrow.ShapeError("what went wrong", node=array)
    assert (str(error), error.store, error.path) == ("what went wrong", str(tmp_path), "a/b")
    again = pickle.loads(pickle.dumps(error))
    assert (again.store, again.path) == (str(tmp_path), "a/b")


@pytest.fixture
def array(tmp_path):
    array = zarr.create_array(
        tmp_path,
        name="grid",
        shape=(4, 4),
        chunks=(2, 2),
        dtype="i4",
        compressors=[{"name": "zstd", "configuration": {"level": 1, "checksum": False}}, {"name": "crc32c"}],
    )
    array[:] = np.arange(16).reshape(4, 4)
    return tmp_path


def change_metadata(folder, **entries):
    path = folder / "grid" / "zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def raised_by(folder, kind):
    with pytest.raises(zarrow.ZarrowError) as raised:
        zarrow.open(folder)["grid"] if kind == "open" else zarrow.open(folder, "grid")[...]
    error = pickle.loads(pickle.dumps(raised.value))
    assert error.store == str(folder) and error.path == "grid"
    assert str(folder) in str(error) and "grid" in str(error)
    return error


def test_a_chunk_that_was_changed(array):
    chunk = array / "grid/c/1/0"
    stored = bytearray(chunk.read_bytes())
    stored[8] ^= 1
    chunk.write_bytes(stored)
    error = raised_by(array, "read")
    assert isinstance(error, zarrow.CodecError) and isinstance(error, ValueError)
    assert (error.kind, error.chunk, error.codec) == ("checksum", (1, 0), "crc32c")


def test_a_chunk_that_was_cut(array):
    chunk = array / "grid/c/0/1"
    for length in (0, 3, 10):
        chunk.write_bytes(chunk.read_bytes()[:length])
        error = raised_by(array, "read")
        assert isinstance(error, zarrow.CodecError) and error.chunk == (0, 1) and error.codec == "crc32c"


def test_a_chunk_of_another_size(tmp_path):
    zarr.create_array(tmp_path, name="grid", shape=(4,), chunks=(4,), dtype="i4", compressors=None)[:] = 1
    (tmp_path / "grid/c/0").write_bytes(bytes(12))
    error = raised_by(tmp_path, "read")
    assert isinstance(error, zarrow.CodecError) and (error.kind, error.chunk) == ("wrong_size", (0,))


def test_invalid_strings(tmp_path):
    zarr.create_array(tmp_path, name="grid", shape=(1,), chunks=(1,), dtype=str, compressors=None)[:] = "a"
    (tmp_path / "grid/c/0").write_bytes(struct.pack("<II", 1, 2) + b"\xff\xfe")
    error = raised_by(tmp_path, "read")
    assert isinstance(error, zarrow.CodecError) and "UTF-8" in str(error)


def test_an_unknown_codec(array):
    change_metadata(
        array, codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "nonesuch"}]
    )
    error = raised_by(array, "open")
    assert isinstance(error, zarrow.CodecError) and error.kind == "unknown_codec" and "nonesuch" in str(error)


@pytest.mark.parametrize(
    "entry", [{"shape": [2**63, 4]}, {"shape": "4"}, {"data_type": 5}, {"chunk_grid": None}]
)
def test_malformed_metadata(array, entry):
    change_metadata(array, **entry)
    error = raised_by(array, "open")
    assert isinstance(error, zarrow.MetadataError | zarrow.LimitError) and isinstance(error, ValueError)


def test_an_unreadable_chunk(array):
    chunk = array / "grid/c/0/0"
    chunk.unlink()
    chunk.mkdir()
    error = raised_by(array, "read")
    assert isinstance(error, zarrow.StoreError) and isinstance(error, OSError) and error.chunk == (0, 0)


def test_a_key_error_reads_well(array):
    with pytest.raises(KeyError) as raised:
        zarrow.open(array)["nothing"]
    assert str(raised.value).startswith("no Zarr array or group here (store ")
    assert "\\" not in str(raised.value)


OTHER_USER = """
    import os, sys
    import zarrow
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        zarrow.open(sys.argv[1])
    except PermissionError as error:
        print(type(error).__name__, error.kind)
"""


def test_unreadable_files_are_permission_errors(tmp_path):
    zarr.create_array(tmp_path, shape=(4,), dtype="i4")
    (tmp_path / "zarr.json").chmod(0)
    command = [sys.executable, "-c", textwrap.dedent(OTHER_USER), str(tmp_path)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["StorePermissionError", "permission"]


@pytest.mark.parametrize(
    "codec", ["gzip", "zstd", "blosc", "numcodecs.lz4", "numcodecs.bz2", "numcodecs.zlib"]
)
@pytest.mark.parametrize("longer", [1, 500, 100_000])
def test_a_chunk_that_is_too_long_says_its_own_size(codec, longer):
    """Decoding allocates not a byte more than expected."""
    configuration = {} if codec != "blosc" else {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle"}
    if codec == "blosc":
        configuration |= {"typesize": 1, "blocksize": 0}
    compressors = [{"name": codec, "configuration": configuration}]
    size = 4000
    stores = [zarrow.MemoryStore() for _ in range(2)]
    for store, count in zip(stores, (size, size + longer), strict=True):
        data = np.arange(count, dtype="u4").astype("u1")
        zarrow.create_array(store, data=data, chunks=(count,), compressors=compressors)
    short, long = (store.to_dict() for store in stores)
    with pytest.raises(zarrow.CodecError) as raised:
        zarrow.open(zarrow.MemoryStore(short | {"c/0": long["c/0"]}))[:]
    assert raised.value.kind == "wrong_size"
    assert f"decodes to {size + longer} bytes, expected {size} by its metadata" in str(raised.value)


@pytest.mark.parametrize(("given", "shown"), [("yes", "'yes'"), (1, "1"), (None, "None"), ([True], "list")])
def test_flags_are_refused_in_words_of_python(tmp_path, given, shown):
    group = zarrow.create_group(tmp_path / "a.zarr")
    array = group.create_array("a", data=[1, 2])
    for call in (
        lambda: array.read(mmap=given),
        lambda: array.write(slice(None), 3, write_empty_chunks=given),
        lambda: group.create_group("b", overwrite=given),
        lambda: group.require_group("b", overwrite=given),
    ):
        with pytest.raises(TypeError, match=f"^expected True or False, got {shown}\n"):
            call()
    assert array.read(mmap=np.True_)[...].tolist() == [1, 2]
    with pytest.raises(TypeError, match="expected a dict as storage_options, got str"):
        zarrow.CloudStore("s3://bucket", "anon")


def test_bounds_are_those_that_hold(tmp_path):
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(2,), dtype="i1")
    for call in (lambda: array.resize(-1), lambda: zarrow.zeros([-1])):
        with pytest.raises(ValueError, match=r"expected integers from 0 to 2\^63 - 1"):
            call()
    scalar = zarrow.create_array(tmp_path / "b.zarr", data=5)
    with pytest.raises(IndexError, match=r"an array of shape \(\) has no axis to append along"):
        scalar.append([1])
