"""GPU tensors used by PyTorch, CuPy and JAX: on a real device, with the installed libraries."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import zarrow
from zarrow.gpu import nvcomp_libraries

pytestmark = pytest.mark.skipif(
    "ZARROW_CUDA_DRIVER" in os.environ, reason="libraries do not know the software device"
)


def on_gpu(name: str) -> Any:
    """Return the library, if it is installed and has a GPU."""
    module = pytest.importorskip(name)
    if name == "torch" and not module.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    if name == "jax" and not any(device.platform == "gpu" for device in module.devices()):
        pytest.skip("JAX has no GPU here")
    return module


@pytest.fixture
def array(tmp_path: Path, values: npt.NDArray[np.float32]) -> zarrow.Array:
    """Write compressed chunks, some at the edge."""
    return zarrow.create_array(tmp_path / "x.zarr", data=values, chunks=(8, 16))


def test_torch_shares_the_memory(array: zarrow.Array, values: npt.NDArray[np.float32]) -> None:
    torch = on_gpu("torch")
    tensor = array.read(device="cuda:0")
    shared = torch.from_dlpack(tensor)
    assert shared.device.type == "cuda"
    assert shared.data_ptr() == tensor.__cuda_array_interface__["data"][0]
    shared.mul_(2)
    torch.cuda.synchronize()
    np.testing.assert_array_equal(tensor.cpu(), values * 2)
    del tensor
    torch.testing.assert_close(shared.cpu(), torch.from_numpy(values * 2))


def test_torch_memory_is_read_into_in_its_stream(
    array: zarrow.Array, values: npt.NDArray[np.float32]
) -> None:
    torch = on_gpu("torch")
    side = torch.cuda.Stream()
    for _ in range(50):
        with torch.cuda.stream(side):
            out = torch.zeros((53, 37), device="cuda:0").T
            assert array.read(out=out) is out
            total = out.double().sum()
        side.synchronize()
        assert total.item() == pytest.approx(values.astype(np.float64).sum())


def test_torch_writes(array: zarrow.Array, values: npt.NDArray[np.float32]) -> None:
    torch = on_gpu("torch")
    array[3:30] = torch.from_numpy(values[3:30] * 3).to("cuda:0")
    np.testing.assert_array_equal(array[3:30], values[3:30] * 3)


@pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="other processes' tests need memory too")
def test_memory_that_torch_keeps_is_asked_for(array: zarrow.Array) -> None:
    torch = on_gpu("torch")
    free, _ = torch.cuda.mem_get_info()
    # PyTorch caches dropped memory, which the driver counts as used.
    kept = torch.empty(int(free * 0.9), dtype=torch.uint8, device="cuda:0")
    del kept
    tensor = zarrow.gpu.asarray(np.zeros(int(free * 0.2), np.uint8))
    assert tensor.nbytes == int(free * 0.2)


def test_cupy_shares_the_memory(array: zarrow.Array, values: npt.NDArray[np.float32]) -> None:
    cupy = on_gpu("cupy")
    tensor = array.read(device="cuda:0")
    shared = cupy.asarray(tensor)
    assert shared.data.ptr == tensor.__cuda_array_interface__["data"][0]
    np.testing.assert_array_equal(cupy.asnumpy(shared + 1), values + 1)
    back = zarrow.gpu.asarray(shared.T)
    assert back.strides == shared.T.strides
    np.testing.assert_array_equal(back.cpu(), values.T)


def test_jax_shares_the_memory(array: zarrow.Array, values: npt.NDArray[np.float32]) -> None:
    jax = on_gpu("jax")
    tensor = array.read(device="cuda:0")
    shared = importlib.import_module("jax.numpy").from_dlpack(tensor)
    np.testing.assert_array_equal(jax.device_get(shared), values)


@pytest.mark.parametrize("decompress", ["host", "device"])
@pytest.mark.parametrize("compressor", ["zstd", "lz4", "blosc-lz4", "blosc-zstd"])
def test_nvcomp_decompresses(tmp_path: Path, compressor: str, decompress: Any) -> None:
    from benches.gpu.data import CODECS

    has_library = "ZARROW_NVCOMP" in os.environ or nvcomp_libraries.found_in_wheels() != []
    if decompress == "device" and not has_library:
        pytest.skip("nvidia-libnvcomp is not installed")
    values = np.round(np.sin(np.arange(1 << 20, dtype=np.float32) / 1000) * 64) / 64
    values = values.reshape(1024, 1024)
    path = tmp_path / "x.zarr"
    array = zarrow.create_array(path, data=values, chunks=(32, 32), compressors=CODECS[compressor])
    tensor = array.read((slice(5, 900, 3), slice(None, None, -1)), device="cuda:0", decompress=decompress)
    np.testing.assert_array_equal(tensor.cpu(), values[5:900:3, ::-1])
