"""The engine under zarr-python: a codec pipeline that reads and writes chunks for `zarr.Array`.

>>> import zarr, zarrow
>>> with zarrow.zarr_python.enable():
...     array = zarr.open_array("data.zarr/temperature", mode="r")
>>> array[0].shape  # read by the engine
(6, 8)

enable                         zarr-python uses the engine from now on, or in a `with` block
explain                        what runs where for an array, and why
CodecPipeline                  the class, for `zarr.config` and `ZARR_CODEC_PIPELINE__PATH`
NDBuffer                       memory for results, for `zarr.config` and `ZARR_NDBUFFER`
reader                         reads the lazy views of zarr-indexing

zarr-python chooses the pipeline of an array when it opens it. What the engine cannot read or write in the
same way runs in zarr-python's own pipeline, with the same results. zarr-python is imported when it is first
needed.
"""

from __future__ import annotations

import typing as _typing

from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.zarr_python.enabling import enable
from zarrow.zarr_python.explaining import explain
from zarrow.zarr_python.explanation import Explanation
from zarrow.zarr_python.lazy_views import Reader, reader
from zarrow.zarr_python.loading import CLASSES, class_of_zarr_python

if _typing.TYPE_CHECKING:
    from zarrow.zarr_python.buffers import NDBuffer
    from zarrow.zarr_python.pipeline import CodecPipeline

__all__ = ["CodecPipeline", "Explanation", "NDBuffer", "Reader", "enable", "explain", "reader"]


if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> _typing.Any:
        """Import the classes when they are first looked at: their base classes are zarr-python's."""
        if name in CLASSES:
            return class_of_zarr_python(name)
        return _getattr_of(__name__)(name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
