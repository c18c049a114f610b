"""`mmap=True`: mapped and read arrays, and files never change."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec, ZstdCodec

import handwritten
import zarrow

# Rows of 512 KiB: 128 pages each.
ROW = (128, 1024)
VALUES = np.arange(7 * 128 * 1024, dtype=np.int32).reshape(7 * 128, 1024)
SELECTIONS = [
    np.s_[...],
    np.s_[5:130],
    np.s_[100:700:7, 3:1000:9],
    np.s_[::-1, ::-1],
    np.s_[700:100:-3, -5::-50],
    np.s_[200],
    np.s_[-1, 5],
    np.s_[:, 17],
    np.s_[300:301, 2:3],
    np.s_[890:],
]


def write(folder, shape=VALUES.shape, chunks=ROW, values=VALUES, **arguments):
    arguments = {"compressors": None, "dtype": values.dtype, **arguments}
    zarr.create_array(folder, shape=shape, chunks=chunks, **arguments)[...] = values
    return zarrow.open(folder)


def files(folder):
    """Contents of every file."""
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()}


def check(array, selection, expected, *, mapped=True):
    tensor = array.read(selection, mmap=True)
    assert tensor.is_mapped is mapped, selection
    assert tensor.shape == expected[selection].shape and not tensor.readonly
    np.testing.assert_array_equal(tensor.numpy(), expected[selection])


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return write(tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_chunks_of_whole_rows_are_one_tensor(rows, selection):
    check(rows, selection, VALUES)


def test_nothing_is_mapped_unless_asked_for(rows):
    assert not rows[...].is_mapped and not rows.read().is_mapped
    mapped = rows.read(mmap=True)
    assert mapped[3:, ::2].is_mapped and mapped.T.is_mapped and not mapped.copy().is_mapped
    assert mapped.nbytes == VALUES.nbytes and mapped.numpy().ctypes.data % 64 == 0


def test_the_last_chunk_may_reach_behind_the_array(tmp_path):
    shape = (ROW[0] * 3 - 50, ROW[1])
    array = write(tmp_path, shape=shape, values=VALUES[: shape[0]])
    for selection in SELECTIONS[:3] + SELECTIONS[7:8]:
        check(array, selection, VALUES[: shape[0]])


def test_one_chunk(tmp_path):
    """Chunks need not fill pages, nor consist of whole rows."""
    values = np.random.default_rng(1).random((520, 520, 2)).astype(np.float32)
    array = write(tmp_path, shape=values.shape, chunks=(260, 260, 2), values=values)
    for selection in [
        np.s_[:260, 260:],
        np.s_[300:400:3, 519:270:-7, 1],
        np.s_[0, 0, 0],
        np.s_[260:, :260, ::-1],
    ]:
        check(array, selection, values)
    for selection in [np.s_[...], np.s_[259:261, :260], np.s_[:, 0]]:
        check(array, selection, values, mapped=False)


def test_no_axis(tmp_path):
    metadata = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 300_000}}
    value = bytes(range(1, 251)) * 1200
    array = zarrow.open(handwritten.write(tmp_path, (), metadata, [{"name": "bytes"}], value, ""))
    tensor = array.read(mmap=True)
    assert tensor.is_mapped and tensor.item() == value


@pytest.mark.parametrize("fill", [0, -3])
def test_chunks_that_are_not_stored(tmp_path, fill):
    array = write(tmp_path, fill_value=fill)
    expected = VALUES.copy()
    for row in (0, 3, 6):
        (tmp_path / f"c/{row}/0").unlink()
        expected[row * 128 : (row + 1) * 128] = fill
    for selection in SELECTIONS:
        check(array, selection, expected)
    tensor = array.read(mmap=True)
    tensor.numpy()[...] = 1
    check(array, ..., expected)


def test_a_fill_value_takes_no_more_memory_than_a_read(tmp_path):
    zarr.create_array(
        tmp_path, shape=(1 << 42,), chunks=(1 << 30,), dtype="u1", fill_value=1, compressors=None
    )
    array = zarrow.open(tmp_path)
    check(array, slice(5, 9), np.ones(9, np.uint8), mapped=False)
    with pytest.raises(MemoryError):
        array.read(mmap=True)


@pytest.mark.parametrize(
    "name", ["int8", "uint64", "float16", "complex128", "bool", "bfloat16", "M8[us]", "S3", "U2"]
)
def test_types(tmp_path, name):
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    count = 2 * 1024 * 1024 // dtype.itemsize
    if name == "bfloat16":
        expected = (np.arange(count) % 100).astype(dtype)
        array = zarrow.open(
            handwritten.write(tmp_path, (count,), name, [handwritten.BYTES], expected.tobytes(), 0)
        )
    else:
        expected = np.random.default_rng(2).integers(0, 2, count).astype(np.int8).astype(dtype)
        group = zarr.open_group(tmp_path, mode="w", zarr_format=2)
        group.create_array("a", shape=(count,), chunks=(count,), dtype=dtype, compressors=None)[:] = expected
        array = zarrow.open(tmp_path, "a")
    tensor = array.read(slice(3, None, 2), mmap=True)
    assert tensor.is_mapped and tensor.dtype == dtype
    assert tensor.numpy().tobytes() == expected[3::2].tobytes()


@pytest.mark.parametrize("index", ["start", "end"])
def test_shards(tmp_path, index):
    """Inner chunks are mapped if they begin on a page, which a leading index prevents."""
    serializer = ShardingCodec(chunk_shape=ROW, index_location=index)
    values = VALUES[:768].copy()
    array = write(tmp_path, shape=values.shape, chunks=(256, 1024), values=values, serializer=serializer)
    assert array.chunks == ROW
    (tmp_path / "c/2/0").unlink()
    values[512:] = 0
    for selection in SELECTIONS[:6]:
        check(array, selection, values, mapped=index == "end")
    check(array, np.s_[600:700], values)


def test_inner_chunks_that_are_not_stored(tmp_path):
    serializer = ShardingCodec(chunk_shape=(1, *ROW))
    values = np.zeros((4, *ROW), np.int32)
    values[[0, 2]] = VALUES[:256].reshape(2, *ROW)
    array = write(tmp_path, shape=values.shape, chunks=values.shape, values=values, serializer=serializer)
    check(array, ..., values)
    check(array, np.s_[1], values)
    check(array, np.s_[2, 5:100:3, ::-1], values)


READ_INSTEAD = {
    "compressed": {"compressors": ZstdCodec()},
    "checksum": {"compressors": Crc32cCodec()},
    "big-endian": {"serializer": BytesCodec(endian="big")},
    "transposed": {"filters": [TransposeCodec(order=(1, 0))]},
    "too small": {"chunks": (32, 1024)},
    "no whole pages": {"chunks": (129, 1023)},
    "no whole rows": {"chunks": (256, 512)},
    "compressed in shards": {
        "serializer": ShardingCodec(chunk_shape=ROW, codecs=[BytesCodec(), ZstdCodec()])
    },
    "checksum of shards": {"serializer": ShardingCodec(chunk_shape=ROW), "compressors": Crc32cCodec()},
}


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
@pytest.mark.parametrize("case", READ_INSTEAD)
def test_the_rest_is_read(tmp_path, case):
    values = VALUES[:512]
    array = write(tmp_path, **{"shape": values.shape, "chunks": ROW, "values": values, **READ_INSTEAD[case]})
    for selection in SELECTIONS[:5]:
        check(array, selection, values, mapped=False)


def test_strings_and_masks_are_read(tmp_path):
    handwritten.variable(tmp_path / "strings", ["a", "b", "c"])
    missing = np.zeros(1 << 20, bool)
    handwritten.masked_tensor(tmp_path / "masked", np.ones(1 << 20, "i2"), missing)
    assert zarrow.open(tmp_path / "strings").read(mmap=True).tolist() == ["a", "b", "c"]
    masked = zarrow.open(tmp_path / "masked").read(mmap=True)
    assert isinstance(masked, zarrow.MaskedTensor) and not masked.data.is_mapped


def test_empty_selections_and_errors(rows):
    assert rows.read(slice(4, 4), mmap=True).shape == (0, 1024)
    with pytest.raises(IndexError):
        rows.read(10_000, mmap=True)


def test_the_callers_memory_cannot_be_a_map(rows):
    out = np.zeros(VALUES.shape, np.int32)
    with pytest.raises(ValueError, match="exclude each other"):
        rows.read(out=out, mmap=True)
    assert not out.any()


def test_writes_stay_in_the_process(tmp_path):
    array = write(tmp_path)
    before = files(tmp_path)
    first, second = array.read(mmap=True), array.read(mmap=True)
    first.numpy()[...] = -1
    first.jax()
    np.testing.assert_array_equal(second.numpy(), VALUES)
    np.testing.assert_array_equal(array.read(mmap=True).numpy(), VALUES)
    assert (first.numpy() == -1).all() and files(tmp_path) == before


def test_writes_of_others_show_through(tmp_path):
    array = write(tmp_path)
    tensor = array.read(mmap=True)
    view = tensor.numpy()
    view[0, 0] = 77
    with (tmp_path / "c/2/0").open("r+b") as file:
        file.write(np.int32(5).tobytes())
    assert view[256, 0] == 5 and view[0, 0] == 77


@pytest.mark.parametrize("length", [0, 1, 4096, 512 * 1024 - 1, 512 * 1024 + 1, 1 << 20])
def test_a_file_of_another_size_is_an_error(tmp_path, length):
    array = write(tmp_path)
    os.truncate(tmp_path / "c/4/0", length)
    for selection in [np.s_[...], np.s_[4 * 128 : 5 * 128]]:
        with pytest.raises(zarrow.CodecError) as raised:
            array.read(selection, mmap=True)
        assert (raised.value.kind, raised.value.chunk) == ("wrong_size", (4, 0))
    check(array, np.s_[: 4 * 128], VALUES)


def test_a_shard_with_a_false_index_is_an_error(tmp_path):
    serializer = ShardingCodec(chunk_shape=ROW, index_codecs=[BytesCodec()])
    array = write(tmp_path, chunks=(256, 1024), shape=(256, 1024), values=VALUES[:256], serializer=serializer)
    shard = tmp_path / "c/0/0"
    stored = shard.read_bytes()
    length = 512 * 1024
    for offset, claimed in [
        (0, length - 1),
        (0, length + 1),
        (2 * length, length),
        (1 << 62, length),
        (2**64 - 5, 10),
    ]:
        index = np.array([[0, length], [offset, claimed]], "<u8").tobytes()
        shard.write_bytes(stored[: -len(index)] + index)
        with pytest.raises(zarrow.CodecError):
            array.read(mmap=True)


def test_a_pipe_in_place_of_a_chunk_is_an_error(tmp_path):
    array = write(tmp_path)
    chunk = tmp_path / "c/1/0"
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(zarrow.StoreError):
        array.read(mmap=True)
    chunk.unlink()
    chunk.mkdir()
    with pytest.raises(zarrow.StoreError):
        array.read(mmap=True)


def maps(folder):
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(folder) in line]


def descriptors():
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_maps_live_as_long_as_a_face_of_them(tmp_path):
    array = write(tmp_path)
    before = descriptors()
    view = array.read(mmap=True)[130:140].numpy()
    assert descriptors() == before and len(maps(tmp_path)) == 7
    gc.collect()
    np.testing.assert_array_equal(view, VALUES[130:140])
    del view
    gc.collect()
    assert not maps(tmp_path)


def test_a_failed_map_leaves_no_maps_behind(tmp_path):
    array = write(tmp_path)
    os.truncate(tmp_path / "c/6/0", 5)
    with pytest.raises(zarrow.CodecError):
        array.read(mmap=True)
    assert not maps(tmp_path)


# Uses up the kernel's maps, frees some, and reads. All memory of Python and the reads exists before; a new
# thread would end the process, since the C library has no memory for its data.
WITHOUT_MAPS = """
    import mmap, sys
    import numpy as np
    import zarrow

    zarrow.set_num_threads(1)
    array, expected = zarrow.open(sys.argv[1]), np.load(sys.argv[2])
    equal, taken = np.empty(expected.shape, bool), []
    for how in (False, True):
        assert np.equal(array.read(mmap=how).numpy(), expected, out=equal).all()
    try:
        while True:
            taken.append(mmap.mmap(-1, mmap.PAGESIZE))
    except OSError:
        pass
    for left in (0, 1, 2, 3, 4, 9, 30):
        del taken[len(taken) - left :]
        tensor = array.read(mmap=True)
        print(left, tensor.is_mapped, np.equal(tensor.numpy(), expected, out=equal).all(), flush=True)
        del tensor
"""


def test_it_reads_if_no_maps_are_left(tmp_path):
    write(tmp_path / "array")
    np.save(tmp_path / "expected.npy", VALUES)
    arguments = [str(tmp_path / "array"), str(tmp_path / "expected.npy")]
    command = [sys.executable, "-c", textwrap.dedent(WITHOUT_MAPS), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    lines = [line.split() for line in finished.stdout.splitlines()]
    assert all(equal == "True" for _, _, equal in lines), lines
    assert lines[0][1] == "False" and lines[-1][1] == "True", lines


@pytest.mark.parametrize("number", ["ENOMEM", "EPERM", "ENODEV", "EAGAIN"])
def test_it_reads_where_the_kernel_refuses_maps(tmp_path, number):
    write(tmp_path)
    program = f"""
        import errno, sys
        import numpy as np
        import zarrow
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import seccomp

        zarrow.set_num_threads(1)
        array = zarrow.open({str(tmp_path)!r})
        expected = array.read().numpy()
        seccomp.refuse({{"mmap": errno.{number}}})
        tensor = array.read(mmap=True)
        print(tensor.is_mapped, np.array_equal(tensor.numpy(), expected))
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert finished.stdout == "False True\n", finished.stderr


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_pages_are_loaded_when_they_are_touched(tmp_path):
    """Sparse files of a terabyte."""
    chunk = 1 << 36
    zarr.create_array(tmp_path, shape=(16, chunk), chunks=(1, chunk), dtype="u1", compressors=None)
    for row in range(16):
        path = tmp_path / f"c/{row}/0"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.truncate(path, chunk)
    before = resident()
    tensor = zarrow.open(tmp_path).read(mmap=True)
    assert tensor.is_mapped and tensor.nbytes == 1 << 40
    assert tensor[15, -1].item() == 0 and resident() - before < 64 << 20


def test_a_file_that_is_truncated_under_a_map_kills(tmp_path):
    """The documented danger is real."""
    write(tmp_path)
    program = f"""
        import os, zarrow
        tensor = zarrow.open({str(tmp_path)!r}).read(mmap=True)
        os.truncate({str(tmp_path / "c/0/0")!r}, 0)
        print(tensor[128, 0].item(), flush=True)
        tensor[0, 0].item()
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert (finished.stdout, finished.returncode) == (f"{VALUES[128, 0]}\n", -signal.SIGBUS)


def test_a_grid_of_unequal_chunks_is_read(tmp_path):
    handwritten.write(tmp_path, (1 << 19,), "uint8", [handwritten.BYTES], bytes(1 << 19), 0)
    document = json.loads((tmp_path / "zarr.json").read_text())
    document["chunk_grid"] = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[1 << 19]]},
    }
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    check(zarrow.open(tmp_path), ..., np.zeros(1 << 19, np.uint8), mapped=False)
