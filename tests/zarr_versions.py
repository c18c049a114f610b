"""Marks of tests that need a newer zarr-python. Python 3.11 gets 3.1, the oldest that is supported."""

import pytest

from oracle.gaps import ZARR_PYTHON

# Rectilinear grids, `read_missing_chunks` and repaired documents.
needs_new_zarr = pytest.mark.skipif(ZARR_PYTHON < (3, 4), reason="zarr-python 3.4 or later is needed")
