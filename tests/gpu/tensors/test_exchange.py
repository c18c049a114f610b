"""Memory shared with other libraries: by DLPack, by the CUDA array interface, by Arrow."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import zarrow
from zarrow.errors import DeviceError, ExchangeError

from .conftest import Border, failing
from .libraries import OfTorch, TorchModule


class Lender:
    """An array of another library with DLPack, which records the arguments."""

    def __init__(self, tensor: Any, legacy: bool = False) -> None:
        self.tensor, self.legacy, self.asked = tensor, legacy, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        self.asked.append(options)
        if self.legacy and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.tensor.__dlpack__(**options)


class Described:
    """An array of another library with only the CUDA array interface, with some values changed."""

    def __init__(self, tensor: Any, **changes: Any) -> None:
        self.tensor, self.changes = tensor, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.tensor.__cuda_array_interface__, **self.changes}


def our_stream(values: Any) -> int:
    """The stream passed to producers."""
    lender = Lender(zarrow.gpu.asarray(values))
    zarrow.gpu.asarray(lender)
    return int(lender.asked[0]["stream"])


def address(tensor: Any) -> int:
    return int(tensor.__cuda_array_interface__["data"][0])


@pytest.mark.parametrize("lender", [Lender, lambda tensor: Lender(tensor, legacy=True), Described])
def test_memory_of_another_library_is_shared(values: Any, lender: Any) -> None:
    lent = zarrow.gpu.asarray(values)[3:, ::-2]
    tensor = zarrow.gpu.asarray(lender(lent))
    assert address(tensor) == address(lent) and tensor.strides == lent.strides
    tensor[0] = 9
    assert (lent[0] == 9).all()
    assert np.array_equal(tensor[1:].cpu().numpy(), values[4:, ::-2])


def test_the_producer_gets_our_stream(values: Any) -> None:
    lent = zarrow.gpu.asarray(values)
    lender = Lender(lent)
    zarrow.gpu.asarray(lender)
    assert [list(asked) for asked in lender.asked] == [["stream", "max_version"]]
    assert lender.asked[0]["stream"] > 2 and lender.asked[0]["max_version"] == (1, 3)


def test_memory_outlives_its_views(values: Any, border: Border) -> None:
    before = border.live_bytes
    for lender in (Lender, Described):
        tensor = zarrow.gpu.asarray(lender(zarrow.gpu.asarray(values)))
        assert np.array_equal(tensor.cpu().numpy(), values)
        part = tensor[2:]
        del tensor
        assert np.array_equal(part.cpu().numpy(), values[2:])
        del part
    assert border.live_bytes == before


def test_pytorch_exports_memory_outside_its_current_device(
    values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if zarrow.gpu.device_count() < 2:
        pytest.skip("this machine has one GPU")
    monkeypatch.setitem(sys.modules, "torch", TorchModule())  # type: ignore[arg-type]
    lent = zarrow.gpu.asarray(values, "cuda:1")
    tensor = zarrow.gpu.asarray(OfTorch(lent))
    assert (tensor.device, address(tensor)) == ("cuda:1", address(lent)) and OfTorch.current_device == 0


def test_pytorchs_refusal_is_reported(values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", TorchModule())  # type: ignore[arg-type]
    lender = OfTorch(zarrow.gpu.asarray(values))
    lender.requires_grad = True
    with pytest.raises(BufferError, match=r"detach\(\)"):
        zarrow.gpu.asarray(lender)


def test_an_interface_without_a_stream_is_of_the_default_stream(values: Any) -> None:
    """Without a stream, version 2 means the legacy default stream; in version 3 it means no wait."""
    lent = zarrow.gpu.asarray(values)

    class Noted:
        __cuda_array_interface__: dict[str, Any]

    for changes, waits in (
        ({"version": 2, "stream": None}, True),
        ({"stream": None}, False),
        ({"stream": 1}, True),
    ):
        noted = Noted()
        noted.__cuda_array_interface__ = dict(lent.__cuda_array_interface__) | changes
        with failing("cuStreamWaitEvent"), pytest.raises(DeviceError) if waits else contextlib.nullcontext():
            zarrow.gpu.asarray(noted)


@pytest.mark.parametrize("stream", [None, 1, 2, -1])
def test_streams_of_consumers(values: Any, stream: int | None) -> None:
    tensor = zarrow.gpu.asarray(values)
    capsule = tensor.__dlpack__(stream=stream, max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    assert "versioned" not in repr(tensor.__dlpack__(stream=stream))


def test_handles_of_streams(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    assert tensor.__dlpack__(stream=our_stream(values)) is not None


def test_the_array_interface_waits_and_names_no_stream(values: Any) -> None:
    """PyTorch reads only the address."""
    tensor = zarrow.gpu.asarray(values)
    assert tensor.__cuda_array_interface__["stream"] is None
    with failing("cuStreamSynchronize"), pytest.raises(DeviceError, match="cuStreamSynchronize"):
        _ = tensor.__cuda_array_interface__


@pytest.mark.parametrize("stream", ["handle", -1])
def test_memory_that_a_stream_of_a_consumer_uses_waits_for_the_device(
    values: Any, border: Border, stream: Any
) -> None:
    """The consumer may destroy its stream, or omit it: only the whole device can be waited for."""
    before = border.live_bytes
    tensor = zarrow.gpu.asarray(values)
    capsule = tensor.__dlpack__(stream=our_stream(values) if stream == "handle" else stream)
    with failing("cuCtxSynchronize"):
        del tensor, capsule
        zarrow.gpu.synchronize()
    assert border.live_bytes > before, "the memory may still be in use"
    tensor = zarrow.gpu.asarray(values)
    capsule = tensor.__dlpack__(stream=1)
    after = border.live_bytes
    with failing("cuCtxSynchronize"):
        del tensor, capsule
        zarrow.gpu.synchronize()
    assert border.live_bytes < after, "the default stream lasts, and is waited for"


@pytest.mark.parametrize(
    ("stream", "error"), [(0, ValueError), (-2, ValueError), (2**80, ValueError), ("1", TypeError)]
)
def test_invalid_streams_are_refused(values: Any, stream: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="stream"):
        zarrow.gpu.asarray(values).__dlpack__(stream=stream)


def test_dlpack_to_the_cpu_copies(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    array = np.from_dlpack(tensor, device="cpu")
    assert np.array_equal(array, values)
    assert "versioned" not in repr(tensor.__dlpack__(dl_device=(1, 0)))
    with pytest.raises(BufferError, match="copy=False"):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="not on"):
        tensor.__dlpack__(dl_device=(2, 1))
    assert tensor.__dlpack__(dl_device=(2, 0)) is not None


def test_dlpack_copies_on_request(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)

    class Copied(Lender):
        def __dlpack__(self, **options: Any) -> Any:
            return super().__dlpack__(**options, copy=True)

    other = zarrow.gpu.asarray(Copied(tensor))
    assert address(other) != address(tensor) and np.array_equal(other.cpu().numpy(), values)


def test_arrays_of_jax_are_not_written(values: Any) -> None:
    class OfJax(Lender):
        """Like `jaxlib`'s arrays: old capsules cannot be marked read-only."""

        __module__ = "jaxlib._jax"

    tensor = zarrow.gpu.asarray(OfJax(zarrow.gpu.asarray(values)))
    assert tensor.readonly and np.array_equal(tensor.cpu().numpy(), values)


def test_read_only_memory_stays_read_only(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    data = tensor.__cuda_array_interface__["data"][0]
    locked = zarrow.gpu.asarray(Described(tensor, data=(data, True)))
    assert locked.readonly and locked[2:].readonly and not locked.flags.writeable
    with pytest.raises(ExchangeError, match="read-only"):
        locked[0] = 1
    with pytest.raises(ExchangeError, match="read-only"):
        locked[[0, 1]] = 1
    with pytest.raises(ExchangeError, match="read-only"):
        locked.fill(0)
    with pytest.raises(BufferError, match="read-only"):
        locked.__dlpack__()
    with pytest.raises(BufferError, match="read-only"):
        locked.torch()
    assert zarrow.gpu.asarray(Lender(locked)).readonly
    assert not locked.copy().readonly


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"shape": (-1, 2)}, ValueError),
        ({"shape": (2**62, 2**62)}, ValueError),
        ({"strides": (4,)}, ValueError),
        ({"strides": (3, 5)}, ValueError),
        ({"typestr": ">f4"}, TypeError),
        ({"typestr": "|O8"}, NotImplementedError),
        ({"mask": object()}, BufferError),
        ({"stream": 0}, ValueError),
        ({"shape": None}, TypeError),
        ({"data": (8, False)}, RuntimeError),
    ],
)
def test_descriptions_that_do_not_hold_together(values: Any, changes: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        zarrow.gpu.asarray(Described(zarrow.gpu.asarray(values), **changes))


def test_interface_of_types_without_a_code(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values).astype("bfloat16")
    with pytest.raises(AttributeError, match="no code for bfloat16: use DLPack"):
        _ = tensor.__cuda_array_interface__
    assert zarrow.gpu.asarray(Lender(tensor)).dtype == ml_dtypes.bfloat16
    assert np.array_equal(tensor.cpu().numpy(), values.astype(ml_dtypes.bfloat16))


def test_nothing_is_copied_to_the_cpu_implicitly(values: Any, border: Border) -> None:
    tensor = zarrow.gpu.asarray(values)
    ways = (
        lambda: np.asarray(tensor),
        lambda: np.array(tensor),
        lambda: memoryview(tensor),  # type: ignore[arg-type]
        lambda: bytes(tensor),
        lambda: tensor.numpy(),
        lambda: pickle.dumps(tensor),
        lambda: np.sin(tensor),  # type: ignore[call-overload]
        lambda: values + tensor,  # type: ignore[operator]
        lambda: np.mean(tensor),  # type: ignore[call-overload]
    )
    for way in ways:
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            way()
    with pytest.raises(BufferError, match=r"\.cpu\(\)"):
        zarrow.asarray(tensor)
    assert border.to_host == 0


def test_names_of_other_libraries_say_what_to_type(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    with pytest.raises(AttributeError, match=r"\.torch\(\).*\.cpu\(\)"):
        tensor.mean()
    assert not hasattr(tensor, "__jax_array__")


def test_missing_libraries_say_what_to_install(values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = zarrow.gpu.asarray(values)
    for name, package in (("cupy", "cupy-cuda13x"), ("torch", "torch"), ("jax", "jax")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)  # Python's exception for a failed import
            with pytest.raises(ModuleNotFoundError, match=f"pip install .*{package}"):
                getattr(tensor, name)()


def test_jax_for_the_cpu_says_what_to_install(values: Any) -> None:
    jax = pytest.importorskip("jax")
    if any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX has a GPU here")
    with pytest.raises(DeviceError, match=r"pip install 'jax\[cuda13\]'"):
        zarrow.gpu.asarray(values).jax()


def test_copies(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for made in (copy.copy(tensor), copy.deepcopy(tensor), tensor.copy()):
        assert address(made) != address(tensor) and np.array_equal(made.cpu().numpy(), values)


def test_from_one_device_to_another(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    assert zarrow.gpu.asarray(tensor) is tensor and zarrow.gpu.asarray(tensor, "cuda:0") is tensor
    if zarrow.gpu.device_count() > 1:
        other = zarrow.gpu.asarray(tensor, "cuda:1")
        assert other.device == "cuda:1" and np.array_equal(other.cpu().numpy(), values)
        with pytest.raises(BufferError, match="cuda:0"):
            tensor._assign(other)
        tensor[0] = other[1]
        assert np.array_equal(tensor[0].cpu().numpy(), values[1])


def test_text_and_masks_have_no_layout() -> None:
    for refused in (["a", "b"], np.ma.masked_array([1, 2], [True, False])):
        with pytest.raises(zarrow.UnsupportedError):
            zarrow.gpu.asarray(refused)
