"""The marks of modules that compare xarray on zarrow with xarray on zarr-python."""

from __future__ import annotations

import pytest

# Warnings of zarr-python and xarray, about stores that these tests make on purpose.
_EXPECTED = ("Consolidated metadata is currently", "The data type", "Failed to open Zarr store with")


def marks(*expected: str) -> list[pytest.MarkDecorator]:
    """Return marks that ignore these warnings, and those that all such modules expect."""
    ignored = (pytest.mark.filterwarnings(f"ignore:{message}") for message in (*_EXPECTED, *expected))
    return [pytest.mark.small_files, *ignored]
