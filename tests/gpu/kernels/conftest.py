"""The shared driver of the kernel tests."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from .driver import Driver, library_path


@pytest.fixture(scope="session")
def gpu() -> None:
    """Skip GPU tests on a machine without a GPU; the software device always exists."""
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
    """One driver for all tests that leave it unchanged."""
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture
def driver(gpu: None) -> Iterator[Driver]:
    """The second device, with a new context that a test may break."""
    driver = Driver(1)
    yield driver
    driver.close()
