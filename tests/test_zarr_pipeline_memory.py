"""The buffers of `zarrow.zarr_python`: large results are in memory that the engine recycles."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import ShardingCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.buffer.cpu import NDBuffer as HostNDBuffer

import zarrow
from zarr_pipelines import assert_equal, elements
from zarrow.interchange.zarr_settings import ZarrSettings

LARGE = (1 << 10, 1 << 10)  # 4 MiB of int32


def is_recycled(array: Any) -> bool:
    """Return whether the memory of an array, or of the array that it is a view of, is the engine's."""
    while isinstance(array, np.ndarray):
        array = array.base
    return type(array).__name__ == "_RecycledMemory"


def created(folder: Path, **options: Any) -> Any:
    options = {"shape": LARGE, "chunks": (256, 256), "dtype": "i4", **options}
    array = zarr.create_array(folder, **options)
    array[:] = elements(LARGE, "i4", 1)
    return array


def test_large_results_are_arrays_in_recycled_memory(tmp_path: Path) -> None:
    with zarrow.zarr_python.enable():
        array = created(tmp_path)
        found = array[:]
        small = array[:10]
    assert is_recycled(found)
    assert not is_recycled(small)
    assert not is_recycled(array[:])
    assert type(found) is np.ndarray
    assert found.flags.writeable
    assert found.flags.c_contiguous
    assert found.flags.aligned
    assert_equal(elements(LARGE, "i4", 1), found)
    found[0, 0] += 1
    assert_equal(found, pickle.loads(pickle.dumps(found)))
    assert_equal(found, found.copy())


def test_memory_returns_to_the_engine_after_the_last_view(tmp_path: Path) -> None:
    with zarrow.zarr_python.enable():
        array = created(tmp_path)

        def freed() -> bool:
            # The event loop may keep the last result until it reads another.
            array[0]
            gc.collect()
            return zarrow.release_memory() >= 4 << 20

        assert any(freed() or not array[:].size for _ in range(100))
        row = array[:][5]
        assert not any(freed() for _ in range(3))
        assert_equal(elements(LARGE, "i4", 1)[5], row)
        del row
        assert freed()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "dtype", ["u1", "c16", "M8[25s]", ">M8[25s]", "U3", "V3", [("a", "i2"), ("b", "f8")]]
)
def test_buffers_are_like_those_of_zarr_python(dtype: Any, order: Any) -> None:
    shape = (700, 3000)
    own = HostNDBuffer.empty(shape, np.dtype(dtype), order)
    ours = zarrow.zarr_python.NDBuffer.empty(shape, np.dtype(dtype), order)
    assert isinstance(ours, HostNDBuffer)
    assert is_recycled(ours.as_ndarray_like()) == (own.as_ndarray_like().nbytes >= 2 << 20)
    for one, other in [(own, ours), (own.transpose((1, 0)), ours.transpose((1, 0)))]:
        assert one.dtype == other.dtype
        assert one.dtype.str == other.dtype.str
        assert one.shape == other.shape
        assert one.as_ndarray_like().strides == other.as_ndarray_like().strides
    ours[...] = np.zeros(shape, dtype)
    assert type(ours[1:3]) is type(ours) is type(ours.copy())
    assert_equal(np.zeros(shape, dtype), np.ascontiguousarray(ours.as_numpy_array()))


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType(), [("a", object)]])
def test_python_objects_are_in_memory_of_numpy(dtype: Any) -> None:
    buffer = zarrow.zarr_python.NDBuffer.empty((600, 1000), dtype)
    assert not is_recycled(buffer.as_ndarray_like())


@pytest.mark.parametrize("nbytes", [2**62, 2**50])
def test_impossible_sizes_are_memory_errors(nbytes: int) -> None:
    with pytest.raises(MemoryError):
        zarrow.zarr_python.NDBuffer.empty((nbytes,), "u1")


def test_other_stores_are_read_into_recycled_memory() -> None:
    """zarr-python's own pipeline takes the buffers too."""
    with zarrow.zarr_python.enable():
        array = zarr.create_array({}, shape=LARGE, chunks=(256, 256), dtype="i4", shards=(512, 512))
        values = elements(LARGE, "i4", 1)
        array[:] = values
        found = array[:]
    assert zarrow.zarr_python.explain(array).read == "zarr-python"
    assert is_recycled(found)
    assert_equal(values, found)


@pytest.mark.parametrize("location", ["start", "end"])
def test_nested_shards_are_read_by_zarr_python(location: Any) -> None:
    """It compares its own class of buffers with the class of the settings."""
    inner = ShardingCodec(chunk_shape=(64, 64), index_location=location)
    outer = ShardingCodec(chunk_shape=(256, 256), codecs=[inner], index_location=location)
    with zarrow.zarr_python.enable():
        array = zarr.create_array(
            {}, shape=LARGE, chunks=LARGE, dtype="i4", serializer=outer, compressors=None
        )
        values = elements(LARGE, "i4", 1)
        array[:] = values
        array[:, 3] = 7
        assert_equal(values[5:300, 4:], array[5:300, 4:])
    assert zarrow.zarr_python.explain(array).read == "zarr-python"


def test_the_class_equals_that_of_zarr_python() -> None:
    assert zarrow.zarr_python.NDBuffer == HostNDBuffer
    assert HostNDBuffer == zarrow.zarr_python.NDBuffer
    assert len({HostNDBuffer, zarrow.zarr_python.NDBuffer}) == 1
    assert zarrow.zarr_python.NDBuffer != zarr.core.buffer.NDBuffer


def test_the_prototype_is_pickled_by_name() -> None:
    with zarrow.zarr_python.enable():
        prototype = default_buffer_prototype()
    assert prototype.nd_buffer is zarrow.zarr_python.NDBuffer
    assert pickle.loads(pickle.dumps(prototype)) == prototype


def test_the_variables_choose_pipeline_and_buffers(tmp_path: Path) -> None:
    created(tmp_path)
    program = "import sys, zarr; print(type(zarr.open_array(sys.argv[1], mode='r')[:].base).__name__)"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={
            "ZARR_CODEC_PIPELINE__PATH": "zarrow.zarr_python.CodecPipeline",
            "ZARR_NDBUFFER": "zarrow.zarr_python.NDBuffer",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "_RecycledMemory\n"


def test_chosen_buffers_stay() -> None:
    with zarr.config.set({"ndbuffer": "zarr.buffer.gpu.NDBuffer"}), zarrow.zarr_python.enable():
        assert zarr.config.get("ndbuffer") == "zarr.buffer.gpu.NDBuffer"


def test_settings_end_in_any_order() -> None:
    def settings() -> tuple[Any, Any]:
        return zarr.config.get("codec_pipeline.path"), zarr.config.get("ndbuffer")

    before = settings()
    engine = ("zarrow.zarr_python.CodecPipeline", "zarrow.zarr_python.NDBuffer")
    first, second = zarrow.zarr_python.enable(), zarrow.zarr_python.enable()
    third = ZarrSettings({"ndbuffer": "other"})
    first.disable()
    assert settings() == (engine[0], "other")
    third.disable()
    assert settings() == engine
    second.disable()
    assert settings() == before
    second.disable()
    with first, second:
        assert settings() == engine
        first.disable()
        assert settings() == engine
    assert settings() == before


def test_places_with_a_common_position_are_refused(tmp_path: Path) -> None:
    """Threads of the engine fill the places of a batch at the same time."""
    with zarrow.zarr_python.enable():
        array = created(tmp_path)
        array[0]
    engine = array._async_array.codec_pipeline._state.chunks.engine
    result = np.zeros((4, 8), "i4")
    rows, columns = slice(0, 2), slice(0, 8)

    def read(*places: Any) -> None:
        parts = [((slice(place[0].start, place[0].stop), slice(0, 8)), place) for place in places]
        engine.read(LARGE, "basic", parts, result)

    read((rows, columns), (slice(2, 4), columns))
    assert_equal(elements(LARGE, "i4", 1)[:4, :8], result)
    for places in [
        [(rows, columns), (rows, columns)],
        [(rows, columns), (slice(1, 3), columns)],
        [(rows, columns), (slice(3, 5), columns)],
        [(rows, slice(0, 7))],
        [(slice(0, 4, 2), columns)],
        [(slice(1, 0, -1), columns)],
        [(rows,)],
    ]:
        with pytest.raises(ValueError, match="place"):
            read(*places)
