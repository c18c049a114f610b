"""The driver that the tests of the kernels share."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from .driver import Driver, library_path


@pytest.fixture(scope="session")
def gpu() -> None:
    """Skip what is asked of a GPU where this machine has none; the software device is always there."""
    if library_path() != "libcuda.so.1":
        return
    try:
        driver = ctypes.CDLL(library_path())
    except OSError as error:
        pytest.skip(str(error))
    if (status := driver.cuInit(0)) != 0:
        pytest.skip(f"cuInit answers {status}")


@pytest.fixture(scope="session")
def shared(gpu: None) -> Iterator[Driver]:
    """One driver for all tests that leave it as it was."""
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture
def driver(gpu: None) -> Iterator[Driver]:
    """The second device, whose context is as new, and may be broken."""
    driver = Driver(1)
    yield driver
    driver.close()
