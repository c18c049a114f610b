"""Arrow arrays on a device: exported with an event, and imported."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import zarrow
from zarrow.errors import DeviceError, ExchangeError

from .arrow_structs import Lent, device_array
from .conftest import DRIVER, Border, failing
from .test_exchange import address


class OfArrow:
    """Has only the method, like an Arrow array."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> Any:
        return self.tensor.__arrow_c_device_array__(requested_schema, **options)


def driver() -> ctypes.CDLL:
    return ctypes.CDLL(DRIVER or "libcuda.so.1")


def test_fields(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values[0])
    schema, capsule = tensor.__arrow_c_device_array__()
    assert "arrow_schema" in repr(schema) and "arrow_device_array" in repr(capsule)
    array = device_array(capsule)
    assert (array.length, array.null_count, array.offset) == (values.shape[1], 0, 0)
    assert (array.n_buffers, array.n_children) == (2, 0)
    assert (array.buffers[0], array.buffers[1]) == (None, address(tensor))
    assert (array.device_id, array.device_type, list(array.reserved)) == (0, 2, [0, 0, 0])


def test_the_event_is_one_of_the_driver_until_the_array_is_released(values: Any, border: Border) -> None:
    tensor = zarrow.gpu.asarray(values)
    zarrow.gpu.synchronize()
    before = border.live_events
    with failing("cuStreamSynchronize"), failing("cuEventSynchronize"):
        schema, capsule = tensor.__arrow_c_device_array__()
    event = device_array(capsule).sync_event[0]
    assert border.live_events == before + 1
    assert driver().cuEventSynchronize(ctypes.c_void_p(event)) == 0
    assert driver().cuEventQuery(ctypes.c_void_p(event)) == 0
    taken = zarrow.gpu.asarray(OfArrow(tensor))
    assert border.live_events == before + 2
    del schema, capsule
    assert border.live_events == before + 1
    del taken
    assert border.live_events == before


def test_memory_and_event_outlive_the_tensor(values: Any, border: Border) -> None:
    before, events = border.live_bytes, border.live_events
    schema, capsule = zarrow.gpu.asarray(values).__arrow_c_device_array__()
    assert border.live_bytes > before
    del capsule
    assert (border.live_bytes, border.live_events) == (before, events)
    del schema


def test_requested_schema_and_options_of_later_versions(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values[0])
    tensor.__arrow_c_device_array__()
    tensor.__arrow_c_device_array__(None, future=None)
    schema, _ = tensor.astype("f8").__arrow_c_device_array__()
    tensor.__arrow_c_device_array__(requested_schema=schema)
    with pytest.raises(TypeError, match="requested_schema"):
        tensor.__arrow_c_device_array__(object())
    with pytest.raises(BufferError, match="future="):
        tensor.__arrow_c_device_array__(None, future=1)


def test_tensors_without_an_arrow_form_are_refused(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for refused in (tensor.T, tensor[:, ::2], tensor.astype("c8"), tensor[0, 0]):
        with pytest.raises(BufferError):
            refused.__arrow_c_device_array__()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(7, dtype="i8"),
        np.arange(24, dtype="f4").reshape(4, 3, 2),
        np.array([True, False, True]),
        np.arange(5).astype("u2").astype("f2"),
        np.empty((0, 3), "i4"),
    ],
    ids=["integers", "rows", "bools", "halves", "nothing"],
)
@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_arrays_are_imported_without_a_copy(array: Any, device: str, border: Border) -> None:
    if int(device[-1]) >= zarrow.gpu.device_count():
        pytest.skip("this machine has one GPU")
    lent = zarrow.gpu.asarray(array, device)
    before = border.to_device, border.to_host
    taken = zarrow.gpu.asarray(OfArrow(lent))
    assert (border.to_device, border.to_host) == before
    assert (taken.device, taken.dtype, taken.shape) == (device, array.dtype, array.shape)
    assert taken.readonly and (array.size == 0 or address(taken) == address(lent))
    del lent
    assert np.array_equal(taken.cpu().numpy(), array)


def test_a_part_of_an_array_is_taken() -> None:
    tensor = zarrow.gpu.asarray(np.arange(10, dtype="f4"))
    taken = zarrow.gpu.asarray(Lent(tensor, offset=3, length=4))
    assert address(taken) == address(tensor) + 12 and taken.cpu().tolist() == [3, 4, 5, 6]
    dates = zarrow.gpu.asarray(Lent(zarrow.gpu.asarray(np.arange(3)), kind=b"tss:"))
    assert dates.cpu().numpy().astype("i8").tolist() == [0, 1, 2] and dates.dtype == "M8[s]"


def test_an_array_is_released_once(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values[0])
    lent = Lent(tensor)
    taken = zarrow.gpu.asarray(lent)
    part = taken[3:]
    del taken
    assert lent.released == 0 and np.array_equal(part.cpu().numpy(), values[0, 3:])
    del part
    zarrow.gpu.synchronize()
    assert lent.released == 1


def test_a_release_in_python_leaves_the_exception_that_is_under_way(values: Any) -> None:
    lent = Lent(zarrow.gpu.asarray(values[0]))
    with pytest.raises(KeyError, match="under way"):
        (zarrow.gpu.asarray(lent), {}["under way"])
    with pytest.raises(KeyError, match="under way"):
        (zarrow.gpu.asarray(lent).__arrow_c_device_array__(), {}["under way"])
    zarrow.gpu.synchronize()
    assert lent.released == 2


def test_the_event_of_the_producer_is_waited_for(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values[0])
    _, capsule = tensor.__arrow_c_device_array__()
    event = device_array(capsule).sync_event[0]
    lent, without = Lent(tensor, event=event), Lent(tensor)
    with failing("cuStreamWaitEvent"):
        with pytest.raises(DeviceError, match="cuStreamWaitEvent"):
            zarrow.gpu.asarray(lent)
        assert lent.released == 1
    with failing("cuStreamWaitEvent"):
        zarrow.gpu.asarray(without)
    assert np.array_equal(zarrow.gpu.asarray(Lent(tensor, event=event)).cpu().numpy(), values[0])


@pytest.mark.parametrize(
    ("kind", "lies", "message"),
    [
        (b"f", {"null_count": 1, "validity": 64}, "null"),
        (b"f", {"null_count": -1, "validity": 64}, "null"),
        (b"b", {}, "packed bools"),
        (b"u", {}, "offsets"),
        (b"U", {}, "text"),
        (b"+s", {}, "Arrow type"),
        (b"d:19,3", {}, "Arrow type"),
        (b"f", {"n_buffers": 1}, "fewer buffers"),
        (b"f", {"length": -1}, "negative length"),
        (b"f", {"offset": 2**62}, "."),
        (b"f", {"length": 2**61}, "."),
        (b"f", {"device_id": 1}, "not on its declared device|no device"),
        (b"f", {"device_id": 77}, "no device cuda:77"),
        (b"f", {"device_id": -1}, "no device"),
    ],
)
def test_invalid_arrays_are_refused_and_released(kind: bytes, lies: Any, message: str, values: Any) -> None:
    lent = Lent(zarrow.gpu.asarray(values[0]), kind=kind, **lies)
    with pytest.raises((BufferError, DeviceError, ValueError), match=message):
        zarrow.gpu.asarray(lent)
    assert lent.released == 1


def test_a_bitmap_without_nulls_is_left_alone(values: Any) -> None:
    taken = zarrow.gpu.asarray(Lent(zarrow.gpu.asarray(values[0]), null_count=0, validity=64))
    assert np.array_equal(taken.cpu().numpy(), values[0])


def test_capsules_that_were_consumed_are_refused(values: Any) -> None:
    class Twice:
        def __init__(self, tensor: Any) -> None:
            self.capsules = tensor.__arrow_c_device_array__()

        def __arrow_c_device_array__(self, **_: Any) -> Any:
            return self.capsules

    twice = Twice(zarrow.gpu.asarray(values[0]))
    zarrow.gpu.asarray(twice)
    with pytest.raises(ExchangeError, match="unconsumed capsule"):
        zarrow.gpu.asarray(twice)


def test_arrays_of_the_cpu_are_copied(values: Any) -> None:
    tensor = zarrow.gpu.asarray(pa.array(values[0]))
    assert not tensor.readonly and np.array_equal(tensor.cpu().numpy(), values[0])


def test_arrow_arrays_are_written(tmp_path: Path, values: Any) -> None:
    tensor, lent = zarrow.gpu.asarray(values), zarrow.gpu.asarray(values * 2)
    tensor[...] = OfArrow(lent)
    assert np.array_equal(tensor.cpu().numpy(), values * 2)
    array = zarrow.create_array(tmp_path / "a.zarr", shape=values.shape, dtype="float32", chunks=(8, 8))
    array[...] = OfArrow(lent)
    assert np.array_equal(array[...].numpy(), values * 2)
