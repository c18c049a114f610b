"""The driver that the tests of the kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .driver import Driver


@pytest.fixture(scope="session")
def shared() -> Iterator[Driver]:
    """One driver for all tests that leave it as it was."""
    driver = Driver()
    yield driver
    driver.close()


@pytest.fixture
def driver() -> Iterator[Driver]:
    """The second device, whose context is as new, and may be broken."""
    driver = Driver(1)
    yield driver
    driver.close()
