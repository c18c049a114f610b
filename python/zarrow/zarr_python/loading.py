"""Imports the classes with a base class of zarr-python, which is not imported before."""

from __future__ import annotations

from importlib import import_module
from typing import Any

CLASSES = {"CodecPipeline": "zarrow.zarr_python.pipeline", "NDBuffer": "zarrow.zarr_python.buffers"}


def class_of_zarr_python(name: str) -> Any:
    """Return `CodecPipeline` or `NDBuffer`, registered with zarr-python.

    Raises
    ------
    ImportError
        zarr-python is not installed.
    """
    try:
        return getattr(import_module(CLASSES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "zarr":
            raise
        raise ImportError(
            "zarrow.zarr_python is for zarr-python, which is not installed: pip install 'zarr>=3.1'"
        ) from error
