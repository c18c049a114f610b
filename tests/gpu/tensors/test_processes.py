"""Process state: no driver, a fork, a device without memory, Ctrl-C, no zarr-python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import DRIVER

PRELUDE = """
import sys, numpy as np, zarrow
data = np.arange(6_000_000, dtype="f4").reshape(3, -1)
array = zarrow.create_array({path!r}, data=data, chunks=(1, 500_000))
"""


def run(tmp_path: Path, program: str, driver: str | None = DRIVER, **environment: str) -> str:
    """Run a program in a separate process, and return its output."""
    variables = {**os.environ, **environment}
    variables.pop("ZARROW_CUDA_DRIVER", None)
    if driver is not None:
        variables["ZARROW_CUDA_DRIVER"] = driver
    source = PRELUDE.format(path=str(tmp_path / "a.zarr")) + program
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_driver(tmp_path: Path) -> None:
    program = """
assert zarrow.gpu.is_available() is False
assert "libnothing.so" in zarrow.gpu.why_unavailable()
for use in (
    lambda: array.read(device="cuda:0"), lambda: zarrow.gpu.asarray([1]), zarrow.gpu.device_count,
    zarrow.gpu.synchronize, lambda: zarrow.gpu.Buffer.from_bytes(b"a"),
):
    try:
        use()
    except zarrow.DeviceError as error:
        assert error.kind == "unavailable" and isinstance(error, RuntimeError)
        assert "libnothing.so" in str(error)
    else:
        raise AssertionError(use)
zarrow.gpu.release_memory()
assert zarrow.release_memory() > 0
assert array.read(device="cpu").shape == array.shape
"""
    run(tmp_path, program, driver="libnothing.so")


def test_import_loads_no_driver(tmp_path: Path) -> None:
    program = """
import zarrow.gpu
zarrow.gpu.Tensor, dir(zarrow.gpu)
array[...], zarrow.release_memory()
assert "zarr" not in sys.modules
print(open("/proc/self/maps").read().count("libcuda"))
"""
    assert run(tmp_path, program).strip() == "0"


def test_without_zarr_python(tmp_path: Path) -> None:
    program = """
sys.modules["zarr"] = None
import zarrow.gpu
for name in ("Buffer", "NDBuffer", "buffer_prototype"):
    try:
        getattr(zarrow.gpu, name)
    except ImportError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError(name)
try:
    zarrow.gpu.enable()
except ImportError as error:
    assert "pip install" in str(error)
assert array.read(device="cuda:0").shape == array.shape
"""
    run(tmp_path, program)


def test_zarr_python_finds_the_buffers_by_name(tmp_path: Path) -> None:
    program = """
import zarr
assert "zarrow.gpu" not in sys.modules
with zarr.config.set({"buffer": "zarrow.gpu.Buffer", "ndbuffer": "zarrow.gpu.NDBuffer"}):
    print(type(zarr.open_array(%r)[0]).__module__)
"""
    assert run(tmp_path, program % str(tmp_path / "a.zarr")).strip() == "zarrow.gpu"


def test_after_a_fork(tmp_path: Path) -> None:
    program = """
import os
tensor = array.read(device="cuda:0")
capsules = [tensor.__dlpack__(), tensor.__arrow_c_device_array__()]
child = os.fork()
if child == 0:
    status = 1
    try:
        assert not zarrow.gpu.is_available() and "fork" in zarrow.gpu.why_unavailable()
        fill = lambda: tensor[0].fill(0)
        for use in (lambda: array.read(device="cuda:0"), tensor.cpu, tensor.copy, fill):
            try:
                use()
            except zarrow.DeviceError as error:
                assert error.kind == "forked" and "spawn" in str(error)
            else:
                raise AssertionError(use)
        zarrow.release_memory()
        assert array[0, :3].tolist() == [0, 1, 2]
        # Exported memory is dropped here without the driver.
        del tensor, capsules
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
assert (tensor.cpu().numpy() == array[...].numpy()).all()
"""
    run(tmp_path, program)


@pytest.mark.skipif(DRIVER is None, reason="only the software device has as little memory as is wanted")
def test_a_device_without_memory(tmp_path: Path) -> None:
    program = """
kept = array.read(0, device="cuda:0")
try:
    array.read(device="cuda:0")
except zarrow.OutOfMemoryError as error:
    assert isinstance(error, MemoryError) and "24000000 bytes of cuda:0" in str(error), error
else:
    raise AssertionError
assert (kept.cpu().numpy() == array[0].numpy()).all()
"""
    run(tmp_path, program, ZARROW_SOFTWARE_DEVICE_MEMORY=str(16 << 20))


@pytest.mark.skipif(DRIVER is None, reason="only the software device can inject failures")
def test_other_libraries_are_asked_for_memory(tmp_path: Path) -> None:
    program = """
import types
asked = []
def keep(name, **attributes):
    sys.modules[name] = types.SimpleNamespace(**attributes)
pool = types.SimpleNamespace(free_all_blocks=lambda: asked.append("cupy"))
empty_cache = lambda: asked.append("torch")
keep("torch", cuda=types.SimpleNamespace(is_initialized=lambda: True, empty_cache=empty_cache))
keep("cupy", get_default_memory_pool=lambda: pool, get_default_pinned_memory_pool=lambda: pool)
tensor = zarrow.gpu.Tensor._empty((10,), "f4")
assert asked == ["torch", "cupy", "cupy"], asked
"""
    run(tmp_path, program, ZARROW_SOFTWARE_DEVICE_FAIL="cuMemAllocFromPoolAsync:1")


@pytest.mark.skipif(DRIVER is None, reason="only the software device can inject failures")
@pytest.mark.parametrize(
    "function", ["cuMemcpyHtoDAsync_v2", "cuLaunchKernel", "cuModuleLoadData", "cuEventRecord"]
)
def test_calls_of_the_driver_that_fail(tmp_path: Path, function: str) -> None:
    program = f"""
try:
    array.read(np.s_[:, ::2], device="cuda:0").T.copy().cpu()
except zarrow.DeviceError as error:
    assert error.kind == "driver" and {function!r} in str(error), error
else:
    raise AssertionError
assert array[0, :3].tolist() == [0, 1, 2]
"""
    run(tmp_path, program, ZARROW_SOFTWARE_DEVICE_FAIL=f"{function}:1:1")


@pytest.mark.skipif(DRIVER is None, reason="only the software device can inject failures")
@pytest.mark.parametrize(
    ("failure", "name"),
    [
        ("cuLaunchKernel:1:700", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("cuStreamSynchronize:1:719", "CUDA_ERROR_LAUNCH_FAILED"),
        ("cuMemcpyHtoDAsync_v2:1:716", "CUDA_ERROR_MISALIGNED_ADDRESS"),
    ],
)
def test_a_context_that_is_lost_stays_lost(tmp_path: Path, failure: str, name: str) -> None:
    """The driver repeats the same error for ever: every call names the remedy and the first failure."""
    program = f"""
kept = zarrow.gpu.Tensor._empty((10,), "f4")
assert zarrow.gpu.is_available()
uses = [
    lambda: array.read(np.s_[:, ::2], device="cuda:0").T.copy().cpu(), kept.copy, kept.cpu, kept.__dlpack__,
    lambda: array.read(device="cuda:0"), lambda: zarrow.gpu.asarray([1]), zarrow.gpu.synchronize,
    zarrow.gpu.device_count, zarrow.gpu.release_memory, zarrow.gpu.enable,
]
for use in uses:
    try:
        use()
    except zarrow.DeviceError as error:
        assert error.kind == "context_lost", (use, error)
        assert "start a new process" in str(error) and {failure.partition(":")[0]!r} in str(error), error
        assert {name!r} in str(error), error
    else:
        raise AssertionError(use)
assert zarrow.gpu.is_available() is False
assert "start a new process" in zarrow.gpu.why_unavailable()
assert array[0, :3].tolist() == [0, 1, 2]
del kept, uses
"""
    run(tmp_path, program, ZARROW_SOFTWARE_DEVICE_FAIL=failure)


@pytest.mark.skipif(DRIVER is None, reason="only the software device can inject failures")
def test_a_context_that_another_library_has_lost(tmp_path: Path) -> None:
    program = """
import ctypes, os
tensor = array.read(device="cuda:0")
assert zarrow.gpu.is_available()
driver, context = ctypes.CDLL(os.environ["ZARROW_CUDA_DRIVER"]), ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0 and driver.cuCtxSynchronize() == 700
assert not zarrow.gpu.is_available() and "start a new process" in zarrow.gpu.why_unavailable()
"""
    run(tmp_path, program, ZARROW_SOFTWARE_DEVICE_FAIL="cuCtxSynchronize:1:700")


def test_interruption(tmp_path: Path) -> None:
    program = """
import signal, threading, time
def keys():
    time.sleep(0.3)
    signal.raise_signal(signal.SIGINT)
threading.Thread(target=keys, daemon=True).start()
started = time.monotonic()
try:
    while time.monotonic() - started < 60:
        array.read(device="cuda:0")
except KeyboardInterrupt:
    print("stopped")
assert (array.read(0, device="cuda:0").cpu().numpy() == array[0].numpy()).all()
"""
    assert run(tmp_path, program).strip() == "stopped"


def test_threads_read_at_once(tmp_path: Path) -> None:
    program = """
from concurrent.futures import ThreadPoolExecutor
expected = array[...].numpy()
def read(number):
    tensor = array.read(number % 3, device=f"cuda:{number % zarrow.gpu.device_count()}")
    return bool((tensor.T.copy().cpu().numpy() == expected[number % 3]).all())
with ThreadPoolExecutor(4) as pool:
    assert all(pool.map(read, range(12)))
"""
    run(tmp_path, program)
