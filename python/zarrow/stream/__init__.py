"""Stores frames of an instrument or a simulation, and reads an array that grows.

>>> import numpy, zarrow
>>> from zarrow.stream import Writer
>>> movie = zarrow.create_array("movie.zarr", shape=(0, 64, 64), chunks=(16, 64, 64), dtype="u2")
>>> with Writer(movie) as writer:
...     for number in range(40):
...         writer.append(numpy.full((64, 64), number, "u2"))
>>> movie.shape
(40, 64, 64)
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.stream.following import follow
from zarrow.stream.writer import FullError, Writer

__all__ = ["FullError", "Writer", "follow"]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
