"""PyTorch's tensors, imported by its table of C functions without a copy; the functions of `zarrow.io`."""

from __future__ import annotations

import gc
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow
from handwritten import NUMBERS, numbers
from zarrow import io

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# Types that PyTorch lacks.
WITHOUT = {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}
TAKES = [zarrow.asarray, zarrow.from_dlpack]


@pytest.mark.parametrize("name", [name for name in NUMBERS if name not in WITHOUT])
@pytest.mark.parametrize("take", TAKES)
def test_every_type_is_shared(name, take):
    theirs = io.numpy_to_torch_zero_copy(numbers(name))
    ours = take(theirs, dtype=theirs.dtype)
    assert ours.numpy().ctypes.data == theirs.data_ptr() and not ours.readonly
    assert ours.dtype == NUMBERS[name] and ours.numpy().tobytes() == numbers(name).tobytes()
    with pytest.raises(zarrow.DataTypeError):
        take(theirs, torch.int16 if name != "int16" else torch.int32)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_view(data):
    shape = data.draw(st.lists(st.integers(0, 5), max_size=4))
    theirs = torch.arange(int(np.prod(shape)), dtype=torch.int32).reshape(shape)
    theirs = theirs.permute(data.draw(st.permutations(range(len(shape)))))
    for axis, extent in enumerate(theirs.shape):
        start = data.draw(st.integers(0, extent))
        theirs = theirs.narrow(axis, start, extent - start)
        if data.draw(st.booleans()):
            index = [slice(None)] * theirs.ndim
            index[axis] = slice(None, None, 2)
            theirs = theirs[tuple(index)]
    ours = zarrow.asarray(theirs, copy=False)
    assert ours.tolist() == theirs.tolist() and ours.shape == tuple(theirs.shape)
    if theirs.numel():
        assert ours.numpy().ctypes.data == theirs.data_ptr()
        theirs.fill_(7)
        assert (ours.numpy() == 7).all()
        ours.numpy()[...] = 3
        assert bool((theirs == 3).all())


@pytest.mark.parametrize("take", TAKES)
def test_lazy_conjugates_and_negatives_are_refused(take):
    """The table of C functions ignores lazy conjugation and negation; `__dlpack__` ignores negation."""
    complex_ = torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    lazy = complex_.conj()
    for tensor in (lazy, lazy.imag, lazy.imag[:1], torch._neg_view(torch.arange(3))):
        assert tensor.is_neg() or tensor.is_conj()
        with pytest.raises(BufferError):
            take(tensor)
        resolved = tensor.resolve_conj().resolve_neg()
        assert take(resolved).tolist() == tensor.tolist()
        assert io.torch_to_numpy_zero_copy(tensor).tolist() == tensor.tolist()
        with pytest.raises(BufferError):
            io.torch_to_numpy_zero_copy(tensor, copy=False)


def test_a_method_of_another_object_is_ignored():
    class Strange(torch.Tensor):
        # A method of a list: called with a tensor, it would treat the tensor as a list.
        is_neg = [].copy

    assert zarrow.asarray(torch.arange(3.0).as_subclass(Strange)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("take", TAKES)
def test_tensors_that_pytorch_does_not_export(take):
    for tensor in (
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(3)),
        torch.ones(3, requires_grad=True) * 2,
        torch.ones(3, device="meta"),
        torch.eye(3).to_sparse(),
    ):
        with pytest.raises((BufferError, RuntimeError)):
            take(tensor)
    parameter = torch.nn.Parameter(torch.arange(3.0), requires_grad=False)
    assert take(parameter).numpy().ctypes.data == parameter.data_ptr()


def test_the_tensor_lives_as_long_as_its_memory():
    theirs = torch.arange(1000.0)
    ours = [take(theirs)[5:] for take in TAKES for _ in range(10)]
    assert theirs.data_ptr() + 20 == ours[0].numpy().ctypes.data
    before = sys.getrefcount(theirs)
    for take in TAKES:
        take(theirs)
        with pytest.raises(zarrow.DataTypeError):
            take(theirs, "i4")
    assert sys.getrefcount(theirs) == before
    del theirs
    gc.collect()
    assert all(view[0].item() == 5 for view in ours)


def test_numpy_to_torch_and_back():
    array = np.arange(12.0).reshape(3, 4)
    theirs = io.numpy_to_torch_zero_copy(array)
    assert theirs.data_ptr() == array.ctypes.data
    theirs[0, 0] = 7
    array[0, 1] = 8
    assert array[0, 0] == 7 and theirs[0, 1] == 8
    back = io.torch_to_numpy_zero_copy(theirs)
    assert back.ctypes.data == array.ctypes.data and back.flags.writeable
    back[0, 2] = 9
    assert array[0, 2] == 9 == theirs[0, 2]
    view = io.numpy_to_torch_zero_copy(array[::2, 1:])
    assert view.stride() == (8, 1) and view.tolist() == array[::2, 1:].tolist()
    assert io.torch_to_numpy_zero_copy(theirs.T).strides == array.T.strides
    half = np.arange(3).astype(ml_dtypes.bfloat16)
    assert io.numpy_to_torch_zero_copy(half).dtype == torch.bfloat16
    assert io.torch_to_numpy_zero_copy(io.numpy_to_torch_zero_copy(half)).ctypes.data == half.ctypes.data
    for copy in (True, False):
        assert (io.numpy_to_torch_zero_copy(array, copy=copy).data_ptr() == array.ctypes.data) != copy
        assert (io.torch_to_numpy_zero_copy(theirs, copy=copy).ctypes.data == array.ctypes.data) != copy


def constant(array):
    array.flags.writeable = False
    return array


def records():
    array = np.zeros(3, "i2,f8")
    array["f1"] = [0, 1, 2]
    return array["f1"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(3)[::-1],
        lambda: np.arange(3, dtype=">i4"),
        lambda: constant(np.arange(3)),
        lambda: np.broadcast_to(np.arange(3), (2, 3)),
        lambda: memoryview(b"abc"),
        records,
    ],
)
def test_layouts_that_pytorch_lacks_are_copied(make):
    array = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = io.numpy_to_torch_zero_copy(array)
    assert theirs.tolist() == np.asarray(array).tolist()
    theirs[0] = 9
    assert np.asarray(array).tolist() != theirs.tolist()
    with pytest.raises(zarrow.ExchangeError):
        io.numpy_to_torch_zero_copy(array, copy=False)


def test_types_that_pytorch_lacks_are_refused():
    for array in (np.zeros(3, "M8[s]"), np.array(["a"]), np.ma.zeros(3), np.zeros(3, "V3")):
        with pytest.raises((zarrow.ExchangeError, TypeError)):
            io.numpy_to_torch_zero_copy(array)


def test_gradients_are_detached_and_sparse_tensors_copied():
    tracked = torch.arange(3.0, requires_grad=True)
    for tensor in (tracked, tracked * 2):
        assert io.torch_to_numpy_zero_copy(tensor).ctypes.data == tensor.data_ptr()
        assert io.torch_to_numpy_zero_copy(tensor, copy=False).ctypes.data == tensor.data_ptr()
    sparse = torch.eye(3).to_sparse()
    assert io.torch_to_numpy_zero_copy(sparse).tolist() == np.eye(3).tolist()
    with pytest.raises(zarrow.ExchangeError):
        io.torch_to_numpy_zero_copy(sparse, copy=False)
    with pytest.raises(TypeError, match="expected a torch"):
        io.torch_to_numpy_zero_copy(np.arange(3))


def test_zero_copy_arrays():
    array = np.arange(6.0)
    shared = io.ZeroCopyArray(array)
    for theirs in (shared.to_torch(), torch.from_dlpack(shared)):
        assert theirs.data_ptr() == array.ctypes.data
    taken = torch.asarray(shared)
    assert taken.data_ptr() == array.ctypes.data and taken.dtype == torch.float64
    wrapped = io.wrap_for_zero_copy(torch.arange(3))
    assert wrapped.to_numpy().tolist() == [0, 1, 2]
    assert torch.utils.dlpack.from_dlpack(io.to_dlpack(array)).data_ptr() == array.ctypes.data
    assert io.from_dlpack(io.to_dlpack(torch.arange(3))).tolist() == [0, 1, 2]
    # PyTorch's capsules before DLPack 1.0 are writable, but have no flag for it.
    assert not io.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3))).flags.writeable


def test_a_call_copies_nothing_of_a_gibibyte():
    large = torch.empty(1 << 30, dtype=torch.uint8)
    array = np.empty(1 << 30, "u1")
    assert io.torch_to_numpy_zero_copy(large).ctypes.data == large.data_ptr()
    assert io.numpy_to_torch_zero_copy(array).data_ptr() == array.ctypes.data
    assert zarrow.asarray(large).numpy().ctypes.data == large.data_ptr()


def test_out_may_be_a_tensor(tmp_path):
    import zarr

    zarr.create_array(tmp_path, shape=(4, 6), chunks=(2, 3), dtype="f4")[:] = np.arange(24).reshape(4, 6)
    stored = zarrow.open(tmp_path)
    theirs = torch.zeros(6, 4).T
    assert stored.read(out=theirs) is theirs and theirs.tolist() == stored[...].tolist()
    with pytest.raises(BufferError):
        stored.read(out=torch.zeros(4, 6, requires_grad=True))
    with pytest.raises(TypeError):
        stored.read(out=torch.zeros(4, 6, dtype=torch.float64))
