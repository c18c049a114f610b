"""zarrow reads to a device and writes from one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import zarr

import zarrow
from zarrow.errors import DeviceError

from .conftest import DRIVER, Border, failing
from .test_exchange import Described, Lender, our_stream

CODECS: dict[str, Any] = {
    "raw": {"compressors": None},
    "zstd": {"compressors": "zstd"},
    "blosc": {"compressors": "blosc"},
    "crc32c": {"compressors": [{"name": "zstd"}, {"name": "crc32c"}]},
    "sharded": {"compressors": "zstd", "shards": (20, 20), "chunks": (10, 10)},
}


def stored(folder: Path, values: npt.NDArray[Any], **options: Any) -> zarrow.Array:
    return zarrow.create_array(folder / "a.zarr", data=values, **{"chunks": (10, 20), **options})


@pytest.mark.parametrize("codecs", CODECS)
def test_each_byte_crosses_once(tmp_path: Path, values: Any, codecs: str, border: Border) -> None:
    array = stored(tmp_path, values, **CODECS[codecs])
    tensor = array.read(device="cuda:0")
    assert (border.to_device, border.to_host, border.pageable) == (values.nbytes, 0, 0)
    assert np.array_equal(tensor.cpu().numpy(), values)
    sent = border.to_device
    part = array.read(np.s_[3:30, 5:9], device="cuda:0")
    assert border.to_device - sent == part.nbytes


@pytest.mark.parametrize(
    "index",
    [
        np.s_[...],
        np.s_[3:30:7, ::-2],
        np.s_[-1],
        np.s_[4, 5],
        np.s_[[30, 1, 1], 5:],
        np.s_[:, [50, 2]],
        np.s_[5:5],
        np.s_[[1, 2], [3, 4]],
    ],
)
@pytest.mark.parametrize("codecs", ["raw", "zstd", "sharded"])
def test_selections(tmp_path: Path, values: Any, codecs: str, index: Any) -> None:
    array = stored(tmp_path, values, **CODECS[codecs])
    tensor = array.read(index, device="cuda:0")
    assert tensor.shape == values[index].shape and np.array_equal(tensor.cpu().numpy(), values[index])
    out = zarrow.gpu.asarray(np.zeros(values.T[..., None].shape, "f4"))[..., 0].T if index is ... else None
    if out is not None:
        assert array.read(index, out=out) is out
        assert np.array_equal(out.cpu().numpy(), values)


def test_indexers(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values)
    assert np.array_equal(
        array.oindex.read(([5, 1], [2, 3, 4]), device="cuda:0").cpu().numpy(),
        values[np.ix_([5, 1], [2, 3, 4])],
    )
    assert np.array_equal(array.vindex.read(([5, 1], [2, 3]), device=0).cpu().numpy(), values[[5, 1], [2, 3]])
    assert np.array_equal(array.blocks.read((1, 0), device="cuda").cpu().numpy(), values[10:20, :20])


@pytest.mark.parametrize(
    "dtype", ["bool", "u1", "i8", "f2", "bfloat16", "c16", "M8[ns]", [("a", "i4"), ("b", "f8")]]
)
def test_data_types(tmp_path: Path, dtype: Any) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(30, 7), chunks=(4, 3), dtype=dtype)
    source = np.random.default_rng(1).integers(0, 2, (30, 7)).astype(array.dtype)
    array[...] = source
    tensor = array.read(np.s_[1:29, ::2], device="cuda:0")
    assert tensor.dtype == array.dtype
    assert tensor.cpu().numpy().tobytes() == np.ascontiguousarray(source[1:29, ::2]).tobytes()
    array[1:29, ::2] = tensor
    assert np.array_equal(np.asarray(array[...]), source)


def test_devices(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values)

    class TorchDevice:
        """Like `torch.device`."""

        type, index = "cuda", 0

        def __str__(self) -> str:
            return "cuda:0"

    for device in ("cuda:0", "cuda", 0, TorchDevice()):
        assert array.read(device=device).device == "cuda:0"
    assert isinstance(array.read(device="cpu"), zarrow.Tensor) and isinstance(
        array.read(device=None), zarrow.Tensor
    )
    if zarrow.gpu.device_count() > 1:
        tensor = array.read(device="cuda:1")
        assert tensor.device == "cuda:1" and np.array_equal(tensor.cpu().numpy(), values)
    for device in ("tpu", "cuda:x", -1, 1.5, True):
        with pytest.raises(ValueError, match="device is"):
            array.read(device=device)
    with pytest.raises(zarrow.DeviceError, match="no device cuda:64") as raised:
        array.read(device=64)
    assert raised.value.kind == "no_device"


@pytest.mark.parametrize("lender", [lambda tensor: tensor, Lender, Described])
def test_memory_of_other_libraries(tmp_path: Path, values: Any, lender: Any) -> None:
    array = stored(tmp_path, values)
    memory = zarrow.gpu.asarray(np.zeros((53, 40), "f4"))
    out = lender(memory.T[:37])
    assert array.read(out=out) is out and array.read(out=out, device="cuda:0") is out
    assert np.array_equal(memory.cpu().numpy()[:, :37], values.T) and not memory[:, 37:].cpu().numpy().any()
    array[...] = 0
    array[5:, 3:] = lender(memory.T[5:37, 3:])
    assert np.array_equal(array[5:, 3:].numpy(), values[5:, 3:]) and not array[:5].numpy().any()


def test_memory_that_does_not_fit(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values)
    for wrong in (np.zeros((3, 4), "f4"), values.astype("f8")):
        with pytest.raises((ValueError, NotImplementedError)):
            array.read(out=zarrow.gpu.asarray(wrong))
    with pytest.raises(ValueError, match="out= is on the CPU"):
        array.read(out=np.zeros_like(values), device="cuda:0")
    with pytest.raises(ValueError, match="out=, which is on a GPU"):
        array.read(out=zarrow.gpu.asarray(values), device="cpu")
    with pytest.raises(ValueError, match="stream="):
        array.read(stream=1)
    for options in ({"mmap": True}, {"mask": "cf"}, {"order": "F"}):
        with pytest.raises(ValueError, match="not supported on a device"):
            array.read(device="cuda:0", **options)


def test_streams(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values)
    own = our_stream(values)
    streams = [1, 2, own, SimpleNamespace(cuda_stream=own), SimpleNamespace(ptr=0)]
    streams.append(SimpleNamespace(__cuda_stream__=lambda: (0, own)))
    for stream in streams:
        tensor = array.read(device="cuda:0", stream=stream)
        assert np.array_equal(tensor.cpu().numpy(), values)
    with pytest.raises(ValueError, match="stream 0"):
        array.read(device="cuda:0", stream=0)
    for stream in ("1", True, object()):
        with pytest.raises(TypeError, match="stream is"):
            array.read(device="cuda:0", stream=stream)


def test_elements_are_cast_on_their_way(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values)
    tensor = array.read(device="cuda:0", dtype="f8")
    assert tensor.dtype == "f8" and np.array_equal(tensor.cpu().numpy(), values)
    out = zarrow.gpu.asarray(np.zeros(values.shape, "f2"))
    array.read(out=out, dtype="f2")
    assert np.array_equal(out.cpu().numpy(), values.astype("f2"))


@pytest.mark.skipif(DRIVER is None, reason="drivers of GPUs read from the handle, and the process crashes")
def test_a_destroyed_stream(tmp_path: Path, values: Any) -> None:
    with pytest.raises(DeviceError, match="invalid stream 0x1000: it was destroyed") as caught:
        stored(tmp_path, values).read(device="cuda:0", stream=0x1000)
    assert caught.value.kind == "stream"


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync_v2", "cuEventCreate", "cuEventRecord"])
def test_pinned_memory_is_returned_after_failures(
    tmp_path: Path, values: Any, border: Border, function: str
) -> None:
    array = stored(tmp_path, values)
    for call in (1, 2, 3, 4):
        with failing(function, call), contextlib.suppress(DeviceError):
            array.read(device="cuda:0")
    zarrow.gpu.release_memory()
    assert border.live_pinned == 0
    assert np.array_equal(array.read(device="cuda:0").cpu().numpy(), values)


def test_memory_that_another_library_has_is_written_after_it(tmp_path: Path, values: Any) -> None:
    array, out = stored(tmp_path, values), zarrow.gpu.asarray(np.zeros_like(values))
    with failing("cuCtxSynchronize"):
        assert array.read(out=out) is out
    capsule = out.__dlpack__(stream=1)
    with failing("cuCtxSynchronize"):
        assert array.read(out=out[:]) is not None, "the default stream is waited for by an event"
    other = out.__dlpack__(stream=-1)
    with failing("cuCtxSynchronize"), pytest.raises(DeviceError, match="cuCtxSynchronize"):
        array.read(out=out)
    array.read(out=out)
    assert np.array_equal(out.cpu().numpy(), values)
    del capsule, other


def test_positions_on_a_gpu_are_refused(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values)
    rows = zarrow.gpu.asarray(np.array([5, 1, 9]))
    for index in (rows, zarrow.gpu.asarray(values[:, 0] > 0)):
        for read in (array.read, array.oindex.read, array.vindex.read, array.__getitem__):
            with pytest.raises(zarrow.IndexingError, match=r"on a GPU: call \.cpu\(\)"):
                read(index)
    assert np.array_equal(array.oindex.read(rows.cpu()), values[[5, 1, 9]])


def test_many(tmp_path: Path, values: Any, border: Border) -> None:
    array = stored(tmp_path, values)
    items = [(array, np.s_[row : row + 3]) for row in (0, 9, 30)]
    expected = np.stack([values[row : row + 3] for row in (0, 9, 30)])
    batch = zarrow.read_many(items, device="cuda:0")
    assert isinstance(batch, zarrow.gpu.Tensor) and border.to_device == expected.nbytes
    assert np.array_equal(batch.cpu().numpy(), expected)
    out = zarrow.gpu.asarray(np.zeros_like(expected))
    assert zarrow.read_many(items, out=out) is out and np.array_equal(out.cpu().numpy(), expected)
    ragged = zarrow.read_many([(array, 0), (array.oindex, [1, 2])], device="cuda:0")
    assert [tensor.shape for tensor in ragged] == [(53,), (2, 53)]
    assert zarrow.read_many([], device="cuda:0") == [] and zarrow.read_many([], out=out) is out
    with pytest.raises(ValueError, match="expected out= of shape"):
        zarrow.read_many(items, out=out[:2])
    with pytest.raises(ValueError, match="one type and shape"):
        zarrow.read_many([(array, 0), (array, np.s_[:2])], out=out)


def test_overlapping_crops_decode_a_chunk_once(tmp_path: Path) -> None:
    decoded = []

    def decode(data: bytes) -> bytes:
        decoded.append(1)
        return data

    values = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    zarrow.codecs.register("tests.counted", decode=decode, encode=bytes)
    array = zarrow.create_array(
        tmp_path / "x.zarr", data=values, chunks=(64, 64), compressors=[{"name": "tests.counted"}]
    )
    decoded.clear()
    crops = [(array, np.s_[at : at + 16, at : at + 16]) for at in range(0, 40, 4)]
    batch = zarrow.read_many(crops, device="cuda:0")
    assert decoded == [1]
    assert np.array_equal(batch.cpu().numpy(), np.stack([values[crop] for _, crop in crops]))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"compressors": []}, "not compressed"),
        ({"compressors": [{"name": "numcodecs.bz2", "configuration": {"level": 1}}]}, "not bz2"),
        ({"compressors": [{"name": "gzip", "configuration": {"level": 1}}] * 2}, "several codecs"),
    ],
)
def test_why_the_host_decompresses(tmp_path: Path, values: Any, options: Any, why: str) -> None:
    array = zarrow.create_array(tmp_path / "x.zarr", data=values, **options)
    explanation = zarrow.gpu.explain(array)
    assert explanation["decompress"] == "host" and why in explanation["why"]
    assert np.array_equal(array.read(device="cuda:0", decompress="auto").cpu().numpy(), values)
    with pytest.raises(zarrow.UnsupportedError, match=why):
        array.read(device="cuda:0", decompress="device")
    assert "positions without" in zarrow.gpu.explain(array, [3, 1, 2])["why"]
    with pytest.raises(ValueError, match='decompress is "gpu"'):
        array.read(device="cuda:0", decompress="gpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"decompress=.device. needs device="):
        array.read(decompress="device")
    assert all(np.array_equal(array.read(decompress=way), values) for way in ("host", "auto"))


@pytest.mark.parametrize("compressors", [None, "zstd"])
def test_fields_of_structures(tmp_path: Path, compressors: Any) -> None:
    table = np.zeros((40, 7), [("a", "i4"), ("b", ">f8"), ("c", [("d", "u1"), ("e", "i2")])])
    table["a"] = np.arange(280).reshape(40, 7)
    table["b"], table["c"]["e"] = table["a"] / 7, -table["a"]
    array = stored(tmp_path, table, chunks=(11, 7), compressors=compressors)
    for name in ("a", "b", "c.e"):
        expected = array.read((name, *np.s_[3:, ::-2]))
        tensor = array.read((name, *np.s_[3:, ::-2]), device="cuda:0")
        assert tensor.dtype == expected.dtype and np.array_equal(tensor.cpu().numpy(), expected.numpy())
    out = zarrow.gpu.asarray(np.zeros((7, 40), "i4")).T
    assert array.read("a", out=out) is out and np.array_equal(out.cpu().numpy(), table["a"])
    some = array.read((["a", "c"], 5), device="cuda:0").cpu()
    assert some.numpy().tolist() == table[["a", "c"]][5].tolist()
    with pytest.raises(
        zarrow.errors.DataTypeError, match="expected out= with elements of type float64, got int32"
    ):
        array.read("b", out=out)


def test_types_without_a_device_layout_are_refused(tmp_path: Path) -> None:
    root = zarrow.open(tmp_path / "g.zarr", mode="w")
    root.create_array("text", data=np.array(["a", "b"], dtype=object), dtype=str)
    root.create_array("missing", shape=3, dtype="optional[int32]")
    root.create_array("table", data=np.zeros(3, [("a", "i4"), ("b", "f8")]))
    for name in ("text", "missing"):
        with pytest.raises(zarrow.UnsupportedError, match="read without device="):
            root[name].read(device="cuda:0")
    with pytest.raises(zarrow.UnsupportedError):
        zarrow.read_many([root["missing"]], device="cuda:0")
    root["missing"][:] = zarrow.gpu.asarray(np.arange(3, dtype="i4"))
    assert root["missing"][:].tolist() == [0, 1, 2]
    root["table"]["a"] = zarrow.gpu.asarray(np.arange(3, dtype="i4"))
    assert root["table"]["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("codecs", CODECS)
def test_writing(tmp_path: Path, values: Any, codecs: str, border: Border) -> None:
    array = stored(tmp_path, np.zeros_like(values), **CODECS[codecs])
    tensor = zarrow.gpu.asarray(values)
    array[...] = tensor
    assert border.to_host == values.nbytes
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], values)
    array[3:5, ::2] = tensor[:1, ::2]
    array.oindex[[7, 9], [1, 2]] = tensor[0, 0]
    array.write(np.s_[:, 52], tensor[:, 0])
    expected = values.copy()
    expected[3:5, ::2] = values[:1, ::2]
    expected[np.ix_([7, 9], [1, 2])] = values[0, 0]
    expected[:, 52] = values[:, 0]
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], expected)


def test_casts_are_those_of_the_host(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=4, dtype="i2")
    array[...] = zarrow.gpu.asarray(np.arange(4, dtype="i1"))
    array[...] = zarrow.gpu.asarray(np.arange(4, dtype="i8"))
    assert array[...].tolist() == [0, 1, 2, 3]
    with pytest.raises(OverflowError):
        array[...] = zarrow.gpu.asarray(np.full(4, 70_000))
    with pytest.raises(zarrow.DataTypeError, match="casting"):
        array[...] = zarrow.gpu.asarray(np.zeros(4))
    array.write(..., zarrow.gpu.asarray(np.full(4, 2.5)), casting="unsafe")
    assert array[...].tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        array[...] = zarrow.gpu.asarray(np.zeros(3, "i2"))


def test_created_and_appended(tmp_path: Path, values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    array = zarrow.create_array(tmp_path / "a.zarr", data=tensor, chunks=(10, 20))
    assert np.array_equal(zarrow.gpu.asarray(array).cpu().numpy(), values)
    array.append(tensor[:3])
    assert array.shape == (40, 53) and array.dtype == values.dtype
    assert np.array_equal(array[...].numpy(), np.concatenate([values, values[:3]]))
    zarrow.save(tmp_path / "s.zarr", x=Lender(tensor))
    assert np.array_equal(zarrow.open(tmp_path / "s.zarr")["x"][...].numpy(), values)


def test_corrupt_chunks_leave_the_device_usable(tmp_path: Path, values: Any) -> None:
    array = stored(tmp_path, values, **CODECS["crc32c"])
    chunk = tmp_path / "a.zarr" / "c" / "1" / "1"
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(zarrow.CodecError) as on_device:
        array.read(device="cuda:0")
    with pytest.raises(zarrow.CodecError) as on_host:
        array.read()
    assert (
        (on_device.value.kind, on_device.value.chunk)
        == (on_host.value.kind, on_host.value.chunk)
        == ("checksum", (1, 1))
    )
    assert np.array_equal(array.read(np.s_[:10], device="cuda:0").cpu().numpy(), values[:10])


def test_memory_is_given_back(tmp_path: Path, values: Any, border: Border) -> None:
    array = stored(tmp_path, values)
    before = border.live_bytes
    for _ in range(3):
        tensor = array.read(device="cuda:0")[::2].astype("f8")
        del tensor
    assert border.live_bytes == before
    zarrow.gpu.release_memory()
    assert zarrow.release_memory() >= 0
