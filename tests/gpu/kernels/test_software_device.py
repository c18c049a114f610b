"""The software device is strict: it detects errors that a driver may tolerate."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from .driver import PTX, Bytes, CudaError, Driver, library_path
from .structs import Piece, lengths, strides

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.skipif(
        "software-device" not in os.environ.get("ZARROW_CUDA_DRIVER", ""), reason="another driver"
    ),
]

POISON = 0xA5
ILLEGAL_ADDRESS = 700
HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
COUNTERS = (
    "pageable",
    "pinned",
    "to_host",
    "on_device",
    "launches",
    "allocations",
    "nbytes",
    "streams",
    "events",
    "pinned_nbytes",
)


def counters(driver: Driver) -> dict[str, int]:
    """Return all counters by name."""
    numbers = (ctypes.c_uint64 * len(COUNTERS))()
    driver("zarrow_device_counters", numbers)
    return dict(zip(COUNTERS, numbers, strict=True))


def code_of(driver: Driver, function: str, *arguments: object) -> int:
    """Return the result of a failing call."""
    with pytest.raises(CudaError) as failure:
        driver(function, *arguments)
    return failure.value.code


def stream(driver: Driver) -> ctypes.c_void_p:
    """A non-blocking stream."""
    return driver.made("cuStreamCreate", ctypes.c_uint(1))


def pinned(driver: Driver, nbytes: int) -> Bytes:
    """Pinned memory with the lifetime of the context."""
    memory = driver.made("cuMemHostAlloc", ctypes.c_size_t(nbytes), ctypes.c_uint(0))
    assert memory.value is not None
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(memory.value), np.uint8)


def upload(driver: Driver, to: int, source: Bytes, on: ctypes.c_void_p) -> None:
    driver(
        "cuMemcpyHtoDAsync_v2",
        ctypes.c_uint64(to),
        ctypes.c_void_p(source.ctypes.data),
        ctypes.c_size_t(source.nbytes),
        on,
    )


def download(driver: Driver, target: Bytes, of: int, on: ctypes.c_void_p) -> None:
    driver(
        "cuMemcpyDtoHAsync_v2",
        ctypes.c_void_p(target.ctypes.data),
        ctypes.c_uint64(of),
        ctypes.c_size_t(target.nbytes),
        on,
    )


@contextmanager
def held(driver: Driver, on: ctypes.c_void_p) -> Iterator[None]:
    """Blocks a stream inside the `with`."""
    go = threading.Event()
    function = HostFunction(lambda _: go.wait() and None)
    driver("cuLaunchHostFunc", on, function, None)
    try:
        yield
    finally:
        go.set()
        # It may return the error that the test expects.
        driver.library.cuStreamSynchronize(on)


def copy_of(source: int, destination: int, count: int) -> Piece:
    """Return a piece that copies `count` bytes."""
    return Piece(
        source=source,
        destination=destination,
        count=count,
        shape=lengths([count]),
        source_stride=strides([1]),
        destination_stride=strides([1]),
        rank=1,
    )


def run_python(text: str, **environment: str) -> str:
    """Return the output of a separate process."""
    return subprocess.run(
        [sys.executable, "-c", "from gpu.kernels.driver import *; import ctypes\n" + text],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_fresh_memory_is_poisoned(driver: Driver) -> None:
    assert set(driver.download(driver.allocate(100), 100)) == {POISON}


def test_a_host_that_follows_a_device_address_faults(driver: Driver) -> None:
    assert driver.allocate(1) >> 62 & 1
    program = "d = Driver(); print('ready', flush=True); ctypes.string_at(d.allocate(8), 1)"
    process = subprocess.run(
        [sys.executable, "-c", "from gpu.kernels.driver import *; import ctypes\n" + program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert process.returncode != 0
    assert process.stdout == b"ready\n"


def test_a_missing_wait_between_streams_is_seen(driver: Driver) -> None:
    """A stream that has not waited does not see another stream's copy."""
    first, second = stream(driver), stream(driver)
    address = driver.allocate(64)
    source, target = pinned(driver, 64), pinned(driver, 64)
    source[:] = 1
    with held(driver, first):
        upload(driver, address, source, first)
        download(driver, target, address, second)
        driver("cuStreamSynchronize", second)
        assert set(target) == {POISON}
    event = driver.made("cuEventCreate", ctypes.c_uint(2))
    with held(driver, first):
        source[:] = 2
        upload(driver, address, source, first)
        driver("cuEventRecord", event, first)
        driver("cuStreamWaitEvent", second, event, ctypes.c_uint(0))
        download(driver, target, address, second)
        assert code_of(driver, "cuEventQuery", event) == 600
        assert code_of(driver, "cuStreamQuery", second) == 600
    driver("cuStreamSynchronize", second)
    assert set(target) == {2}
    driver("cuEventQuery", event)


def test_time_between_events_is_that_of_the_stream(driver: Driver) -> None:
    on = stream(driver)
    start, end, untimed = (driver.made("cuEventCreate", ctypes.c_uint(flags)) for flags in (0, 0, 2))
    milliseconds = ctypes.c_float(-1)
    elapsed = ("cuEventElapsedTime", ctypes.byref(milliseconds))
    assert code_of(driver, *elapsed, start, end) == 400, "never recorded"
    driver("cuEventRecord", start, on)
    with held(driver, on):
        for event in (end, untimed):
            driver("cuEventRecord", event, on)
        assert code_of(driver, *elapsed, start, end) == 600, "not reached"
        driver("cuEventSynchronize", start)
        time.sleep(0.02)
    driver("cuStreamSynchronize", on)
    driver(*elapsed, start, end)
    assert milliseconds.value >= 19
    assert code_of(driver, *elapsed, start, untimed) == 400, "without its time"


def test_pinned_memory_is_read_when_the_stream_reaches_it(driver: Driver) -> None:
    """Reusing pinned memory too early is visible; pageable memory is copied at once."""
    on = stream(driver)
    address, other = driver.allocate(8), driver.allocate(8)
    source, pageable = pinned(driver, 8), np.ones(8, np.uint8)
    source[:] = 1
    with held(driver, on):
        upload(driver, address, source, on)
        upload(driver, other, pageable, on)
        source[:] = 9
        pageable[:] = 9
    assert set(driver.download(address, 8)) == {9}
    assert set(driver.download(other, 8)) == {1}


def test_a_copy_to_pageable_memory_returns_when_it_is_done(driver: Driver) -> None:
    address, target = driver.allocate(8), np.zeros(8, np.uint8)
    go = threading.Event()
    function = HostFunction(lambda _: go.wait() and None)
    driver("cuLaunchHostFunc", driver.stream, function, None)
    threading.Timer(0.05, go.set).start()
    download(driver, target, address, driver.stream)
    assert go.is_set()
    assert set(target) == {POISON}


def test_pinned_memory_that_was_freed_too_early_is_illegal(driver: Driver) -> None:
    on = stream(driver)
    address, source = driver.allocate(8), pinned(driver, 8)
    go = threading.Event()
    function = HostFunction(lambda _: go.wait() and None)
    driver("cuLaunchHostFunc", on, function, None)
    upload(driver, address, source, on)
    driver("cuMemFreeHost", ctypes.c_void_p(source.ctypes.data))
    go.set()
    assert code_of(driver, "cuStreamSynchronize", on) == ILLEGAL_ADDRESS


def test_use_after_free_is_illegal_and_stays_so(driver: Driver) -> None:
    address = driver.allocate(8)
    driver.free(address)
    driver("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_uint8(0), ctypes.c_size_t(8), driver.stream)
    assert code_of(driver, "cuStreamSynchronize", driver.stream) == ILLEGAL_ADDRESS
    assert (
        code_of(driver, "cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(8))
        == ILLEGAL_ADDRESS
    )
    assert code_of(driver, "cuCtxSynchronize") == ILLEGAL_ADDRESS


@pytest.mark.parametrize("beyond", [-1, 1])
def test_a_kernel_that_reaches_beyond_its_memory_is_stopped(driver: Driver, beyond: int) -> None:
    source, destination = driver.allocate(64), driver.allocate(64)
    driver.launch("zarrow_copy_1", copy_of(source, destination, 64))
    driver.synchronize()
    driver.launch("zarrow_copy_1", copy_of(source + beyond, destination, 64))
    assert code_of(driver, "cuStreamSynchronize", driver.stream) == ILLEGAL_ADDRESS


def test_stream_ordered_memory_exists_only_between_its_operations(driver: Driver) -> None:
    maker, user = stream(driver), stream(driver)
    address = ctypes.c_uint64()
    with held(driver, maker):
        driver("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(16), maker)
        driver("cuMemsetD8Async", address, ctypes.c_uint8(1), ctypes.c_size_t(16), user)
        assert code_of(driver, "cuStreamSynchronize", user) == ILLEGAL_ADDRESS


def test_memory_cannot_be_freed_before_its_allocation(driver: Driver) -> None:
    maker, other = stream(driver), stream(driver)
    address = ctypes.c_uint64()
    with held(driver, maker):
        driver("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(16), maker)
        driver("cuMemFreeAsync", address, other)
        assert code_of(driver, "cuStreamSynchronize", other) == ILLEGAL_ADDRESS


def test_memory_freed_in_a_stream_is_invalid_after_it(driver: Driver) -> None:
    address = ctypes.c_uint64()
    driver("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(16), driver.stream)
    driver("cuMemsetD8Async", address, ctypes.c_uint8(1), ctypes.c_size_t(16), driver.stream)
    assert set(driver.download(address.value, 16)) == {1}
    driver("cuMemFreeAsync", address, driver.stream)
    assert code_of(driver, "cuMemFreeAsync", address, driver.stream) == 1
    driver("cuMemsetD8Async", address, ctypes.c_uint8(1), ctypes.c_size_t(16), driver.stream)
    assert code_of(driver, "cuStreamSynchronize", driver.stream) == ILLEGAL_ADDRESS


def test_the_legacy_stream_waits_for_blocking_streams_alone(driver: Driver) -> None:
    blocking = driver.made("cuStreamCreate", ctypes.c_uint(0))
    address = driver.allocate(4)
    seen = pinned(driver, 4)
    with held(driver, blocking):
        driver("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_uint8(1), ctypes.c_size_t(4), blocking)
        download(driver, seen, address, ctypes.c_void_p(0))
        assert code_of(driver, "cuStreamQuery", ctypes.c_void_p(1)) == 600
    driver("cuStreamSynchronize", ctypes.c_void_p(0))
    assert set(seen) == {1}
    other = stream(driver)
    with held(driver, other):
        driver("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_uint8(2), ctypes.c_size_t(4), other)
        download(driver, seen, address, ctypes.c_void_p(0))
        driver("cuStreamSynchronize", ctypes.c_void_p(0))
        assert set(seen) == {1}
    assert set(driver.download(address, 4)) == {2}


def test_a_blocking_stream_waits_for_the_legacy_stream(driver: Driver) -> None:
    blocking, legacy = driver.made("cuStreamCreate", ctypes.c_uint(0)), ctypes.c_void_p(1)
    address, seen = driver.allocate(4), pinned(driver, 4)
    with held(driver, legacy):
        driver("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_uint8(3), ctypes.c_size_t(4), legacy)
        for on in (blocking, ctypes.c_void_p(2)):
            download(driver, seen, address, on)
            assert code_of(driver, "cuStreamQuery", on) == 600
    driver("cuCtxSynchronize")
    assert set(seen) == {3}


def test_rows_are_copied(driver: Driver) -> None:
    """`CUDA_MEMCPY2D`: three rows of five bytes, from a pitch of eight to one of seven, offset by (1, 1)."""
    source = np.arange(64, dtype=np.uint8)
    address = driver.allocate(64)
    driver("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_uint8(0), ctypes.c_size_t(64), driver.stream)
    words = [1, 1, 1, source.ctypes.data, 0, 0, 8, 1, 1, 2, 0, address, 0, 7, 5, 3]
    rows = (ctypes.c_uint64 * 16)(*words)
    driver("cuMemcpy2DAsync_v2", rows, driver.stream)
    expected = np.zeros(64, np.uint8)
    for row in (1, 2, 3):
        expected[row * 7 + 1 :][:5] = source[row * 8 + 1 :][:5]
    np.testing.assert_array_equal(driver.download(address, 64), expected)


def test_devices_are_apart_but_for_peer_copies(driver: Driver) -> None:
    address = driver.allocate(4)
    driver.upload(address, np.full(4, 5, np.uint8))
    other = driver.made("cuDevicePrimaryCtxRetain", ctypes.c_int(0))
    driver("cuCtxPushCurrent_v2", other)
    there = driver.allocate(4)
    on = stream(driver)
    driver(
        "cuMemcpyPeerAsync",
        ctypes.c_uint64(there),
        other,
        ctypes.c_uint64(address),
        driver.context,
        ctypes.c_size_t(4),
        on,
    )
    seen = pinned(driver, 4)
    download(driver, seen, there, on)
    driver("cuStreamSynchronize", on)
    assert set(seen) == {5}
    ordinal = ctypes.c_int()
    driver("cuPointerGetAttribute", ctypes.byref(ordinal), 9, ctypes.c_uint64(there))
    assert ordinal.value == 0
    assert (
        code_of(driver, "cuEventRecord", driver.made("cuEventCreate", ctypes.c_uint(0)), driver.stream) == 400
    )
    driver("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(there), ctypes.c_uint64(address), ctypes.c_size_t(4), on)
    assert code_of(driver, "cuStreamSynchronize", on) == ILLEGAL_ADDRESS
    driver("cuCtxPopCurrent_v2", None)
    driver("cuDevicePrimaryCtxRelease_v2", ctypes.c_int(0))
    # Its errors stay in its context.
    driver("cuCtxSynchronize")


def test_calls_without_a_context_are_refused(driver: Driver) -> None:
    program = """
driver = Driver()
driver("cuCtxPopCurrent_v2", None)
print(driver.library.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(8)))
driver("cuCtxSetCurrent", driver.context)
driver("cuDevicePrimaryCtxRelease_v2", ctypes.c_int(0))
print(driver.library.cuCtxSynchronize())
"""
    assert run_python(program).split() == ["201", "709"]


def test_calls_of_a_host_function_are_refused(driver: Driver) -> None:
    codes: list[int] = []
    function = HostFunction(lambda _: codes.append(driver.library.cuCtxSynchronize()))
    driver("cuLaunchHostFunc", driver.stream, function, None)
    driver.synchronize()
    assert codes == [800]


def test_nothing_works_in_a_fork() -> None:
    program = """
import os
driver = Driver()
child = os.fork()
if not child:
    os._exit(driver.library.cuCtxSynchronize() * 10 + driver.library.cuInit(0))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(program) == "33"


def test_injected_failures_occur_as_configured(driver: Driver) -> None:
    program = """
driver = Driver()
address = driver.allocate(8)
for _ in range(3):
    print(driver.library.cuMemAllocAsync(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(8), driver.stream))
print(driver.library.cuCtxSynchronize(), driver.library.cuCtxSynchronize())
"""
    failures = "cuMemAllocAsync:2,cuCtxSynchronize:2:719"
    assert run_python(program, ZARROW_SOFTWARE_DEVICE_FAIL=failures).split() == ["0", "2", "0", "0", "719"]
    driver("zarrow_device_fail", b"cuMemAlloc_v2:1")
    assert code_of(driver, "cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(8)) == 2
    driver.allocate(8)
    driver("zarrow_device_fail", None)


def test_a_device_has_the_configured_memory() -> None:
    program = """
driver = Driver()
address = driver.allocate(1000)
print(driver.library.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1)))
driver("cuMemFreeAsync", ctypes.c_uint64(address), driver.stream)
free, total = ctypes.c_size_t(), ctypes.c_size_t()
driver.allocate(600)
driver("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
print(free.value, total.value)
"""
    assert run_python(program, ZARROW_SOFTWARE_DEVICE_MEMORY="1000").split() == ["2", "400", "1000"]


def test_a_pool_keeps_memory_up_to_its_threshold(driver: Driver) -> None:
    properties = (ctypes.c_uint32 * 22)(1, 0, 1, 1)
    pool = driver.made("cuMemPoolCreate", properties)
    address, number = ctypes.c_uint64(), ctypes.c_uint64(4096)
    driver("cuMemPoolSetAttribute", pool, 4, ctypes.byref(number))
    for nbytes in (3000, 9000):
        driver("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(nbytes), pool, driver.stream)
        driver("cuMemFreeAsync", address, driver.stream)
        driver.synchronize()
        driver("cuMemPoolGetAttribute", pool, 5, ctypes.byref(number))
        assert number.value == min(nbytes, 4096)
    driver("cuMemPoolGetAttribute", pool, 8, ctypes.byref(number))
    assert number.value == 9000
    driver("cuMemPoolTrimTo", pool, ctypes.c_size_t(0))
    driver("cuMemPoolGetAttribute", pool, 5, ctypes.byref(number))
    assert number.value == 0
    driver("cuMemPoolDestroy", pool)
    assert code_of(driver, "cuMemPoolTrimTo", pool, ctypes.c_size_t(0)) == 400


def test_counters_count(driver: Driver) -> None:
    driver("zarrow_device_reset_counters")
    before = counters(driver)
    address = driver.allocate(100)
    source = pinned(driver, 60)
    upload(driver, address, source, driver.stream)
    driver.upload(address, np.zeros(7, np.uint8))
    driver.download(address, 5)
    driver(
        "cuMemcpyDtoDAsync_v2",
        ctypes.c_uint64(address),
        ctypes.c_uint64(address),
        ctypes.c_size_t(3),
        driver.stream,
    )
    driver.launch("zarrow_copy_1", copy_of(address, address + 50, 4))
    driver.synchronize()
    after = counters(driver)
    driver.free(address)
    expected = {"pageable": 7, "pinned": 60, "to_host": 5, "on_device": 3, "launches": 1}
    assert {name: after[name] for name in expected} == expected
    assert (after["allocations"] - before["allocations"], after["nbytes"] - before["nbytes"]) == (2, 100)
    assert counters(driver)["nbytes"] == before["nbytes"]


def test_everything_ends_with_the_context(driver: Driver) -> None:
    live = ("allocations", "nbytes", "streams", "events", "pinned_nbytes")
    before = counters(driver)
    on = stream(driver)
    address = ctypes.c_uint64()
    driver("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(16), on)
    driver.allocate(50)
    pinned(driver, 9)
    driver.made("cuEventCreate", ctypes.c_uint(0))
    added = [counters(driver)[name] - before[name] for name in live]
    assert added == [3, 66, 1, 1, 9]
    driver("cuDevicePrimaryCtxRelease_v2", driver.device)
    assert [counters(driver)[name] - before[name] for name in live] == [0, 0, -1, 0, 0]
    # The handles of the old context are invalid.
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), driver.device)
    assert code_of(driver, "cuStreamSynchronize", on) == 400


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"no text", 218),
        (b".version 9.0\n.target sm_70\n", 222),
        (b".version 8.0\n.visible .entry unknown()", 209),
        (b".version 8.0\n.visible .entry zarrow_copy_1(\n.param .align 8 .b8 p[264]\n)", 200),
        (b".version 8.0\n.visible .entry zarrow_copy_1(\n.param .align 8 .b8 p[272]\n)", 0),
    ],
)
def test_text_of_other_kernels_is_refused(driver: Driver, text: bytes, code: int) -> None:
    assert driver.library.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), text) == code


def test_every_kernel_of_the_ptx_is_compiled_in(driver: Driver) -> None:
    """Loading it has shown that; and the library exports the functions of a driver's table."""
    assert PTX.read_text().count(".entry") == 22
    assert Path(library_path()).name == "libcuda.so.1"
