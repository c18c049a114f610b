"""zarr-python reads and writes through the buffers: transferred bytes, and failures of its own buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zarr.storage import LocalStore, MemoryStore

import zarrow
from zarrow.errors import DeviceError

from .conftest import Border

SHAPE, CHUNKS, INNER = (64, 64), (16, 16), (8, 8)
VALUES = np.random.default_rng(3).integers(0, 1000, SHAPE).astype("f4")

LAYOUTS: dict[str, dict[str, Any]] = {
    "raw": {"compressors": None},
    "zstd": {"compressors": ZstdCodec()},
    "gzip": {"compressors": GzipCodec()},
    "blosc": {"compressors": BloscCodec()},
    "zstd-crc32c": {"compressors": [ZstdCodec(), Crc32cCodec()]},
    "crc32c": {"compressors": Crc32cCodec()},
    "big-endian": {"compressors": None, "serializer": BytesCodec(endian="big")},
    "sharded-zstd": {"compressors": ZstdCodec(), "shards": CHUNKS, "chunks": INNER},
    "sharded-raw": {"compressors": None, "shards": CHUNKS, "chunks": INNER},
    "v2-raw": {"compressors": None, "zarr_format": 2},
    "v2-zstd": {"compressors": numcodecs.Zstd(), "zarr_format": 2},
    "v2-blosc": {"compressors": numcodecs.Blosc(), "zarr_format": 2},
    "v2-filter": {"compressors": numcodecs.Zstd(), "filters": [numcodecs.Delta("f4")], "zarr_format": 2},
    "v2-big-endian": {"compressors": numcodecs.Zstd(), "zarr_format": 2, "dtype": ">f4"},
    "v2-fortran": {"compressors": numcodecs.Zstd(), "zarr_format": 2, "order": "F"},
}

if hasattr(zarr.codecs, "ScaleOffset"):
    LAYOUTS["scale-offset"] = {"filters": zarr.codecs.ScaleOffset(offset=1.0, scale=2.0)}

PIPELINES = [
    "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrow.zarr_python.CodecPipeline",
]


@pytest.fixture(params=PIPELINES, ids=["batched", "fused", "zarrow"], autouse=True)
def pipeline(request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.param.rpartition(".")[2]
    if not hasattr(zarr.core.codec_pipeline, name) and name != "CodecPipeline":
        pytest.skip(f"this zarr-python has no {name}")
    with zarr.config.set({"codec_pipeline.path": request.param}):
        yield request.param


def created(folder: Path, **options: Any) -> zarr.Array[Any]:
    settings = {"chunks": CHUNKS, "dtype": "f4", **options}
    return zarr.create_array(LocalStore(folder), shape=SHAPE, **settings)


def written(folder: Path, layout: str) -> zarr.Array[Any]:
    """Return an array that zarr-python wrote on the CPU."""
    created(folder, **LAYOUTS[layout])[...] = VALUES
    return zarr.open_array(LocalStore(folder))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_element_is_transferred_once_and_none_back(tmp_path: Path, layout: str, border: Border) -> None:
    array = written(tmp_path / "a.zarr", layout)
    with zarrow.gpu.enable():
        tensor = array[...]
    assert isinstance(tensor, zarrow.gpu.Tensor)
    assert (border.to_device, border.to_host, border.pageable) == (VALUES.nbytes, 0, 0)
    assert np.array_equal(tensor.cpu().numpy(), VALUES)


def test_the_engine_reads_to_the_device(tmp_path: Path, pipeline: str) -> None:
    if not pipeline.startswith("zarrow"):
        pytest.skip("zarr-python's own pipeline")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layouts = {layout: written(tmp_path / layout, layout) for layout in LAYOUTS}
    for layout, array in layouts.items():
        with zarrow.gpu.enable():
            tensor = array[3:50:2, 5:]
        assert np.array_equal(tensor.cpu().numpy(), VALUES[3:50:2, 5:])
        # The fallback, zarr-python's own pipeline, was not created.
        assert array.async_array.codec_pipeline._state.stock is None, layout
    layouts["zstd"][:16] = 0
    refusing = zarr.open_array(tmp_path / "zstd", config={"read_missing_chunks": False})
    with zarrow.gpu.enable(), pytest.raises(zarr.errors.ChunkNotFoundError):
        refusing[...]
    with zarrow.gpu.enable():
        assert (refusing[16:].cpu().numpy() == VALUES[16:]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "index",
    [np.s_[3:50:2, 5:], np.s_[7], np.s_[..., -1], np.s_[20:21, 17:40]],
    ids=["steps", "row", "column", "part"],
)
def test_parts_are_those_of_numpy(tmp_path: Path, layout: str, index: Any) -> None:
    array = written(tmp_path / "a.zarr", layout)
    with zarrow.gpu.enable():
        tensor = array[index]
    assert np.array_equal(tensor.cpu().numpy(), VALUES[index])


def test_lists_along_axes(tmp_path: Path) -> None:
    array = written(tmp_path / "a.zarr", "zstd")
    rows, columns = [60, 3, 17], [1, 40]
    with zarrow.gpu.enable():
        tensor = array.oindex[rows, columns]
        blocks = array.blocks[1, 2]
    assert np.array_equal(tensor.cpu().numpy(), VALUES[np.ix_(rows, columns)])
    assert np.array_equal(blocks.cpu().numpy(), VALUES[16:32, 32:48])


def test_points_are_refused_by_zarr_python_and_read_by_zarrow(tmp_path: Path) -> None:
    """zarr-python converts its result to a NumPy array (its issue 3640)."""
    array = written(tmp_path / "a.zarr", "zstd")
    with zarrow.gpu.enable(), pytest.raises(TypeError, match=r"\.cpu\(\).*outside.*\.vindex\.read\("):
        array.vindex[[1, 2], [3, 4]]
    tensor = zarrow.gpu.asarray(VALUES)
    with pytest.raises(TypeError, match=r"\.cpu\(\) for a copy on the CPU$"):
        np.asarray(tensor)
    points = zarrow.open(tmp_path / "a.zarr").vindex.read(([1, 2], [3, 4]), device="cuda:0")
    assert np.array_equal(points.cpu().numpy(), VALUES[[1, 2], [3, 4]])


@pytest.mark.parametrize("layout", ["raw", "zstd", "v2-zstd"])
def test_prototype_for_one_call(tmp_path: Path, layout: str) -> None:
    array = written(tmp_path / "a.zarr", layout)
    tensor = array.get_basic_selection(np.s_[3:7], prototype=zarrow.gpu.buffer_prototype)
    assert np.array_equal(tensor.cpu().numpy(), VALUES[3:7])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_is_written(tmp_path: Path, layout: str, border: Border) -> None:
    array = created(tmp_path / "a.zarr", **LAYOUTS[layout])
    tensor = zarrow.gpu.asarray(VALUES)
    sent = border.to_device
    with zarrow.gpu.enable():
        array[...] = tensor
    # The test for the fill value returns a four-byte flag per chunk; a shard has an index.
    small = 40 * VALUES.size // 64
    assert VALUES.nbytes <= border.to_host <= VALUES.nbytes + small
    assert border.to_device <= sent + (small if "sharded" in layout else 0)
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], VALUES)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_arrays_and_scalars_are_written(tmp_path: Path, layout: str) -> None:
    array, expected = created(tmp_path / "a.zarr", **LAYOUTS[layout]), np.zeros(SHAPE, "f4")
    with zarrow.gpu.enable():
        array[3:20, 5:9] = VALUES[3:20, 5:9]
        array[40:, :] = 7
        array[:, 63] = zarrow.gpu.asarray(VALUES)[:, 63]
        array.oindex[[1, 2], [30, 50]] = np.float32(5)
    expected[3:20, 5:9] = VALUES[3:20, 5:9]
    expected[40:, :] = 7
    expected[:, 63] = VALUES[:, 63]
    expected[np.ix_([1, 2], [30, 50])] = 5
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], expected)


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
def test_codecs_of_numcodecs(tmp_path: Path, border: Border) -> None:
    codecs = pytest.importorskip("zarr.codecs.numcodecs")
    array = created(tmp_path / "a.zarr", filters=[codecs.Delta(dtype="f4")], compressors=[codecs.LZ4()])
    tensor = zarrow.gpu.asarray(VALUES)
    with zarrow.gpu.enable():
        array[...] = tensor
        array[3:20, 5:9] = 7
        sent, back = border.to_device, border.to_host
        tensor = array[...]
    assert (border.to_device - sent, border.to_host) == (VALUES.nbytes, back)
    expected = VALUES.copy()
    expected[3:20, 5:9] = 7
    assert np.array_equal(tensor.cpu().numpy(), expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_text_is_read_and_written_outside(tmp_path: Path, zarr_format: Any) -> None:
    array = zarr.create_array(LocalStore(tmp_path / "a.zarr"), shape=2, dtype=str, zarr_format=zarr_format)
    array[...] = np.array(["a", "b"])
    for work in (
        lambda: array[...],
        lambda: array[0],
        lambda: array.__setitem__(0, "c"),
        lambda: array.__setitem__(..., np.array(["c", "d"])),
        lambda: array.__setitem__(..., np.array(["c", "d"], object)),
    ):
        with zarrow.gpu.enable(), pytest.raises(TypeError, match=r"text.*outside zarrow\.gpu\.enable\(\)"):
            work()
    assert array[...].tolist() == ["a", "b"]


def test_chunks_of_the_fill_value_are_not_stored(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr", fill_value=np.nan)
    with zarrow.gpu.enable():
        array[...] = np.full(SHAPE, np.nan, "f4")
    assert array.nchunks_initialized == 0
    with zarrow.gpu.enable():
        array[0, 0] = -0.0
        array[16, 0] = 0.0
    assert array.nchunks_initialized == 2


def test_negative_zero_is_not_the_fill_value(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr", fill_value=0.0)
    with zarrow.gpu.enable():
        array[:16, :16] = np.full((16, 16), -0.0, "f4")
        array[16:32, :16] = np.zeros((16, 16), "f4")
    assert array.nchunks_initialized == 1


def test_missing_chunks_are_the_fill_value(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr", fill_value=3)
    array[:16] = 1
    with zarrow.gpu.enable():
        tensor = array[...]
    assert (tensor[:16] == 1).all() and (tensor[16:] == 3).all()


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i8", "f2", "f8", "c8", "c16", "M8[s]", "m8[ms]"])
def test_data_types(tmp_path: Path, dtype: str) -> None:
    values = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE).astype("i8").astype(dtype)
    array = created(tmp_path / "a.zarr", dtype=dtype)
    array[...] = values
    with zarrow.gpu.enable():
        tensor = array[5:60]
        array[5:60] = tensor
    assert tensor.dtype == np.dtype(dtype)
    assert np.array_equal(tensor.cpu().numpy(), values[5:60])
    assert np.array_equal(array[...], values)


def test_a_store_in_memory(border: Border) -> None:
    array = zarr.create_array(MemoryStore(), shape=SHAPE, chunks=CHUNKS, dtype="f4")
    given = zarrow.gpu.asarray(VALUES)
    sent = border.to_device
    with zarrow.gpu.enable():
        array[...] = given
        assert border.to_device == sent
        sent, back = border.to_device, border.to_host
        tensor = array[16:48]
    assert (border.to_device - sent, border.to_host) == (tensor.nbytes, back)
    assert np.array_equal(tensor.cpu().numpy(), VALUES[16:48])


def test_resetting_the_settings_ends_it(tmp_path: Path) -> None:
    array = written(tmp_path / "a.zarr", "zstd")
    zarrow.gpu.enable("cuda:1")
    assert array[...].device == "cuda:1"
    zarr.config.reset()
    assert isinstance(array[...], np.ndarray)
    with zarr.config.set({"buffer": "zarrow.gpu.Buffer", "ndbuffer": "zarrow.gpu.NDBuffer"}):
        assert array[...].device == "cuda:0"


def test_enabling_is_entered_again(tmp_path: Path) -> None:
    array = written(tmp_path / "a.zarr", "zstd")
    enabled = zarrow.gpu.enable("cuda:1")
    for _ in range(2):
        with enabled:
            assert array[...].device == "cuda:1"
            with enabled, zarrow.gpu.enable("cuda:0"):
                assert array[...].device == "cuda:0"
            assert array[...].device == "cuda:1"
        assert isinstance(array[...], np.ndarray)


def test_the_device_is_looked_for_at_once(tmp_path: Path) -> None:
    array = written(tmp_path / "a.zarr", "zstd")
    with pytest.raises(DeviceError, match="no device cuda:99"):
        zarrow.gpu.enable("cuda:99")
    for device in ("cpu", "gpu:first", object()):
        with pytest.raises(ValueError, match='expected "cuda:0"'):
            zarrow.gpu.enable(device)
    assert isinstance(array[...], np.ndarray)
    with zarrow.gpu.enable(0):
        assert array[...].device == "cuda:0"


def test_settings_by_name_and_back(tmp_path: Path) -> None:
    array = written(tmp_path / "a.zarr", "zstd")
    with zarr.config.set({"buffer": "zarrow.gpu.Buffer", "ndbuffer": "zarrow.gpu.NDBuffer"}):
        assert isinstance(array[...], zarrow.gpu.Tensor)
    with zarrow.gpu.enable("cuda:1"):
        tensor = array[...]
    assert tensor.device == "cuda:1" and isinstance(array[...], np.ndarray)
    assert zarrow.gpu.Buffer.create_zero_length().as_array_like().device == "cuda:0"


@pytest.mark.parametrize("endian", ["little", "big"])
def test_parts_of_big_endian_arrays_are_written(endian: Any) -> None:
    store: dict[str, Any] = {}
    with zarrow.gpu.enable():
        array = zarr.create_array(
            store, shape=6, dtype=">u2", chunks=4, fill_value=0, serializer=BytesCodec(endian=endian)
        )
        array[:] = np.arange(1, 7).astype(">u2")
        array[1:3] = np.array([9, 10], ">u2")
        array[5:6] = 7
        assert array[:].cpu().numpy().tolist() == [1, 9, 10, 4, 5, 7]
    assert zarr.open_array(store)[:].tolist() == [1, 9, 10, 4, 5, 7]
    with zarrow.gpu.enable():
        array[:] = np.uint16(9)
    assert zarr.open_array(store)[:].tolist() == [9] * 6


def test_chunks_of_one_column() -> None:
    store: dict[str, Any] = {}
    expected = np.arange(12, dtype="u4").reshape(4, 3)
    with zarrow.gpu.enable():
        array = zarr.create_array(store, shape=(4, 3), dtype="u4", chunks=(2, 1))
        array[:] = expected
    assert np.array_equal(zarr.open_array(store)[:], expected)


def test_strided_elements_are_written_big_endian(tmp_path: Path) -> None:
    import zarr.codecs

    big = zarr.codecs.BytesCodec(endian="big")
    array = zarr.create_array(
        tmp_path / "big", shape=8, chunks=4, dtype="i2", compressors=None, serializer=big
    )
    with zarrow.gpu.enable():
        array[...] = zarrow.gpu.asarray(np.arange(16, dtype="i2"))[::2]
    assert np.array_equal(zarr.open_array(tmp_path / "big")[...], np.arange(0, 16, 2))


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex64", "M8[s]"])
def test_bytes_that_were_stored_from_the_device_are_read_in_the_other_byte_order(dtype: str) -> None:
    """A memory store keeps the device bytes of an uncompressed array."""
    values = np.arange(8).astype(dtype)
    store = zarr.storage.MemoryStore()
    with zarrow.gpu.enable():
        big = zarr.codecs.BytesCodec(endian="big")
        array = zarr.create_array(store, shape=8, chunks=4, dtype=dtype, serializer=big, compressors=None)
        array[...] = zarrow.gpu.asarray(values)
        np.testing.assert_array_equal(array[...].cpu().numpy(), values)
        np.testing.assert_array_equal(array[2:7].cpu().numpy(), values[2:7])
    np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], values)


def test_buffers_keep_the_values_that_they_were_made_of() -> None:
    source = np.arange(4, dtype="u1")
    made = [
        zarrow.gpu.Buffer.from_array_like(source),
        zarrow.gpu.Buffer.from_bytes(source),
        zarrow.gpu.NDBuffer.from_ndarray_like(source),
        zarrow.gpu.NDBuffer.from_numpy_array(source),
    ]
    elements = zarrow.gpu.NDBuffer.from_numpy_array(source)
    converted = elements.astype("u1")
    source[...] = 9
    elements[...] = 7
    for buffer in [*made, converted]:
        assert buffer.as_numpy_array().tolist() == [0, 1, 2, 3]
