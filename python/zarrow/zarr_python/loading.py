"""Imports the pipeline: a class of zarr-python's, which is not imported before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zarrow.zarr_python.pipeline import CodecPipeline


def pipeline_class() -> type[CodecPipeline]:
    """Return the class, registered with zarr-python.

    Raises
    ------
    ImportError
        zarr-python is not installed.
    """
    try:
        from zarrow.zarr_python.pipeline import CodecPipeline
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "zarr":
            raise
        raise ImportError(
            "zarrow.zarr_python is for zarr-python, which is not installed: pip install 'zarr>=3.1'"
        ) from error
    return CodecPipeline
