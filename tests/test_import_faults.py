"""Seven known faults of other libraries' DLPack imports and exports, which zarrow avoids."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import textwrap
import weakref

import ml_dtypes
import numpy as np
import pytest

import hand_capsule
import zarrow
from hand_capsule import Producer


@pytest.mark.parametrize("legacy", [False, True])
def test_1_the_capsule_is_renamed_and_its_deleter_kept(legacy):
    producer = Producer(np.arange(6, dtype="f4"), legacy=legacy)
    capsule = producer.capsule()
    tensor = zarrow.from_dlpack(capsule)
    assert hand_capsule.name(capsule).startswith("used_dltensor")
    del capsule
    gc.collect()
    assert producer.deleted == 0 and tensor.tolist() == [0, 1, 2, 3, 4, 5]
    view = tensor[2:].numpy()
    del tensor
    gc.collect()
    assert producer.deleted == 0 and view[0] == 2
    del view
    gc.collect()
    assert producer.deleted == 1


def test_2_the_newest_version_is_requested_and_read_only_arrays_are_imported():
    array = np.arange(3)
    array.flags.writeable = False
    tensor = zarrow.from_dlpack(array)
    assert tensor.readonly and not tensor.numpy().flags.writeable
    new, old = Producer(np.arange(3)), Producer(np.arange(3), legacy=True)
    assert zarrow.from_dlpack(new).tolist() == zarrow.from_dlpack(old).tolist() == [0, 1, 2]
    assert new.called[0]["max_version"] >= (1, 0) and old.called[-1] == {}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (np.array([True, False]), 6),
        (np.array([1, 2], ml_dtypes.bfloat16), 4),
        (np.array([1 + 2j], "c8"), 5),
        (np.array([1 + 2j], "c16"), 5),
        (np.array([1.5], "f2"), 2),
    ],
)
def test_3_bool_complex_and_bfloat16_keep_their_codes(values, code):
    ours = zarrow.from_numpy(values)
    assert ours.dtype == values.dtype
    capsule = ours.__dlpack__(max_version=(1, 3))
    managed = hand_capsule.Versioned.from_address(_pointer(capsule))
    assert (managed.tensor.code, managed.tensor.bits) == (code, values.dtype.itemsize * 8)
    back = zarrow.from_dlpack(ours)
    assert back.dtype == values.dtype and back.numpy().tobytes() == values.tobytes()


def _pointer(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"dltensor_versioned")


def test_4_a_byte_offset_is_taken_in_bytes():
    array = np.arange(8, dtype="i4")
    tensor = zarrow.from_dlpack(Producer(array, byte_offset=12, shape=[5]))
    assert tensor.numpy().ctypes.data == array.ctypes.data + 12 and tensor.tolist() == [3, 4, 5, 6, 7]
    memory = np.arange(9, dtype="u1").view("u1")
    inside = zarrow.from_dlpack(Producer(memory, byte_offset=3, shape=[4]))
    assert inside.tolist() == [3, 4, 5, 6]
    # Not a whole number of elements: rounding it down would give values from another offset.
    with pytest.raises(zarrow.ExchangeError, match="aligned"):
        zarrow.from_dlpack(Producer(array, byte_offset=2, shape=[5]))


def test_5_views_empty_and_0d_tensors_are_exported_unchanged():
    array = np.arange(24, dtype="i4").reshape(4, 6)
    view = zarrow.from_numpy(array)[1:3, ::-2]
    np.testing.assert_array_equal(np.from_dlpack(view), array[1:3, ::-2])
    assert np.from_dlpack(view).ctypes.data == array[1:3, ::-2].ctypes.data
    for shape in [(), (0,), (3, 0)]:
        tensor = zarrow.from_numpy(np.full(shape, 7, "f8"))
        capsule = tensor.__dlpack__(max_version=(1, 3))
        managed = hand_capsule.Versioned.from_address(_pointer(capsule))
        assert bool(managed.tensor.data) == (tensor.size > 0)
        assert bool(managed.tensor.shape) == bool(managed.tensor.strides) == (len(shape) > 0)
        back = zarrow.from_dlpack(tensor)
        assert back.shape == shape and back.tolist() == np.full(shape, 7.0).tolist()


def test_6_a_numpy_array_keeps_its_memory_type_order_and_rights():
    array = np.arange(5, dtype="f4")
    watch, tensor = weakref.ref(array), zarrow.from_numpy(array)
    del array
    gc.collect()
    assert watch() is not None and tensor.tolist() == [0, 1, 2, 3, 4]
    del tensor
    gc.collect()
    assert watch() is None
    with pytest.raises(zarrow.DataTypeError):
        zarrow.from_numpy(np.arange(3), dtype="f8")
    with pytest.raises(zarrow.DataTypeError, match="native-endian"):
        zarrow.from_numpy(np.arange(3, dtype=">i4"))
    constant = np.arange(3)
    constant.flags.writeable = False
    assert zarrow.from_numpy(constant).readonly
    assert memoryview(zarrow.from_numpy(constant)).readonly
    records = np.zeros(3, "i2,f8")
    records["f1"] = [1, 2, 3]
    with pytest.raises(zarrow.ExchangeError, match="strides"):
        zarrow.from_numpy(records["f1"])
    assert zarrow.asarray(records["f1"]).tolist() == [1, 2, 3]


def test_7_nothing_is_looked_for_beside_the_interpreter(tmp_path):
    program = """
        import pathlib, numpy, zarrow
        tensor = zarrow.from_dlpack(numpy.arange(3))
        assert tensor.tolist() == numpy.from_dlpack(tensor).tolist() == [0, 1, 2]
        maps = [line for line in open("/proc/self/maps") if "/" in line]
        mapped = {pathlib.Path(line.split(maxsplit=5)[5].strip()) for line in maps}
        package = pathlib.Path(zarrow.__file__).parent
        ours = [path.name for path in mapped if path.is_relative_to(package) or "zarrow" in path.name]
        assert ours == [pathlib.Path(zarrow._zarrow.__file__).name], ours
    """
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    run = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run(run, cwd=tmp_path, env=environment, check=True)
