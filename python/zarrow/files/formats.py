"""The formats of files, and their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

from zarrow._zarrow import _import
from zarrow.api.progress import size
from zarrow.errors import UnsupportedError

Format: TypeAlias = Literal["npy", "raw", "safetensors", "parquet", "arrow"]
"""The format of a file."""

FORMATS: tuple[Format, ...] = ("npy", "raw", "safetensors", "parquet", "arrow")

_ENDINGS: dict[str, Format] = {
    ".npy": "npy",
    ".bin": "raw",
    ".raw": "raw",
    ".safetensors": "safetensors",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}


def format_of(file: str | os.PathLike[str], given: str | None) -> Format:
    """Return the format of a file: a given one, or by the end of its name.

    Raises
    ------
    ValueError
        The format is unknown.
    """
    for known in FORMATS:
        if given == known:
            return known
    if given is not None:
        raise ValueError(f"format is {given!r}, expected one of {', '.join(FORMATS)}")
    ending = Path(file).suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(
            f"{os.fspath(file)!r} ends with no known format: pass format=, one of {', '.join(FORMATS)}"
        )
    return _ENDINGS[ending]


def unit_of(chosen: Format) -> Callable[[int], str]:
    """Return the unit of progress for a format, as a function to text: rows of a table, or bytes."""
    return "{} rows".format if chosen in ("parquet", "arrow") else size


def pyarrow(module: str) -> Any:
    """Return a module of pyarrow.

    Raises
    ------
    UnsupportedError
        pyarrow is not installed.
    """
    try:
        return _import(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise UnsupportedError("Parquet and Arrow files need pyarrow: pip install pyarrow") from error
