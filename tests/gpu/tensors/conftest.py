"""The shared device of the tests, and the counters of its transfers.

`ZARROW_CUDA_DRIVER` names the driver of the software device; it must be set before the first use of CUDA.
Without it the tests run on a real device, which does not count bytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import zarrow

DRIVER = os.environ.get("ZARROW_CUDA_DRIVER")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test of this folder."""
    for item in items:
        if "/gpu/tensors/" in Path(item.path).as_posix():
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session", autouse=True)
def device() -> None:
    """Skip all tests without a device."""
    if (reason := zarrow.gpu.why_unavailable()) is not None:
        pytest.skip(reason)


@contextlib.contextmanager
def failing(function: str, call: int = 1) -> Iterator[None]:
    """Make a call of the driver fail with 801, which leaves the context usable."""
    if DRIVER is None:
        pytest.skip("only the software device can inject failures")
    library = ctypes.CDLL(DRIVER)
    library.zarrow_device_fail(f"{function}:{call}:801".encode())
    try:
        yield
    finally:
        library.zarrow_device_fail(b"")


class Border:
    """Bytes copied between the host and the device since the creation of this object."""

    def __init__(self) -> None:
        if DRIVER is None:
            pytest.skip("only the software device counts bytes")
        self._library = ctypes.CDLL(DRIVER)
        self._library.zarrow_device_reset_counters()

    def _counters(self) -> npt.NDArray[np.uint64]:
        counters = np.zeros(32, np.uint64)
        self._library.zarrow_device_counters(counters.ctypes.data_as(ctypes.c_void_p))
        return counters

    @property
    def to_device(self) -> int:
        """Return the bytes from the host to the device."""
        counters = self._counters()
        return int(counters[0] + counters[1])

    @property
    def pageable(self) -> int:
        """Return the bytes from pageable memory of the host, which the driver waits for."""
        return int(self._counters()[0])

    @property
    def to_host(self) -> int:
        """Return the bytes from the device to the host."""
        return int(self._counters()[2])

    @property
    def launches(self) -> int:
        """Return the number of launched kernels."""
        return int(self._counters()[4])

    @property
    def live_events(self) -> int:
        """Return the number of live events."""
        zarrow.gpu.synchronize()
        return int(self._counters()[8])

    @property
    def live_pinned(self) -> int:
        """Return the pinned bytes of the host."""
        return int(self._counters()[9])

    @property
    def live_bytes(self) -> int:
        """Return the allocated bytes of the devices."""
        zarrow.gpu.synchronize()
        return int(self._counters()[6])


@pytest.fixture
def border() -> Border:
    return Border()


@pytest.fixture
def values() -> Iterator[npt.NDArray[np.float32]]:
    """Return elements that differ from their neighbours."""
    yield np.random.default_rng(7).integers(-100, 100, (37, 53)).astype(np.float32)
