"""Stores of one array, written byte by byte: for types that zarr-python lacks, and for known chunks."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import zarrow

# Every numeric type of Zarr, with its NumPy type.
NUMBERS: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(bool),
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e3m4": np.dtype(ml_dtypes.float8_e3m4),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "float8_e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "float8_e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "float8_e8m0fnu": np.dtype(ml_dtypes.float8_e8m0fnu),
}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def numbers(name: str, shape: tuple[int, ...] = (4, 6)) -> np.ndarray[Any, Any]:
    """Return small numbers in the range of the type."""
    count = np.arange(np.prod(shape, dtype=int))
    values = count % 2 if name == "bool" else count % 8 + 1
    return values.astype(np.float32).astype(NUMBERS[name]).reshape(shape)


def write(folder: Path, shape: Sequence[int], data_type: Any, codecs: Any, chunk: bytes, fill: Any) -> Path:
    """Write an array of one chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [max(1, n) for n in shape]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    }
    (folder / "zarr.json").write_text(json.dumps(document))
    key = folder.joinpath("c", *("0" for _ in shape))
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_bytes(chunk)
    return folder


def tensor(folder: Path, values: np.ndarray[Any, Any]) -> zarrow.Tensor:
    """Decode the values."""
    name = _name(values)
    fill = {"b": False, "c": [1.0, 0.0], "i": 1, "u": 1}.get(values.dtype.kind, 1.0)
    decoded = zarrow.open(write(folder, values.shape, name, [BYTES], values.tobytes(), fill))[...]
    assert isinstance(decoded, zarrow.Tensor)
    return decoded


def variable(folder: Path, values: Sequence[Any], shape: Sequence[int] | None = None) -> zarrow.Variable:
    """Decode strings or bytes."""
    name, codec, fill, chunk = _vlen(values)
    shape = [len(values)] if shape is None else shape
    decoded = zarrow.open(write(folder, shape, name, [{"name": codec}], chunk, fill))[...]
    assert isinstance(decoded, zarrow.Variable)
    return decoded


def masked_tensor(
    folder: Path, values: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]
) -> zarrow.MaskedTensor:
    """Decode the values that are not missing."""
    decoded = _optional(folder, values.shape, _name(values), [BYTES], values[~missing].tobytes(), missing)
    assert isinstance(decoded, zarrow.MaskedTensor)
    return decoded


def masked_variable(folder: Path, values: Sequence[Any]) -> zarrow.MaskedVariable:
    """Decode strings or bytes, None for missing ones."""
    name, codec, _, chunk = _vlen([value for value in values if value is not None])
    missing = np.array([value is None for value in values])
    decoded = _optional(folder, missing.shape, name, [{"name": codec}], chunk, missing)
    assert isinstance(decoded, zarrow.MaskedVariable)
    return decoded


def _name(values: np.ndarray[Any, Any]) -> str:
    return next(name for name, dtype in NUMBERS.items() if dtype == values.dtype)


def _vlen(values: Sequence[Any]) -> tuple[str, str, str, bytes]:
    """Return name, codec, fill value and chunk: a count, and each element after its length."""
    text = all(isinstance(value, str) for value in values)
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    chunk = struct.pack("<I", len(encoded)) + b"".join(struct.pack("<I", len(e)) + e for e in encoded)
    return ("string", "vlen-utf8", "", chunk) if text else ("bytes", "vlen-bytes", "", chunk)


def _optional(
    folder: Path, shape: Sequence[int], name: str, codecs: Any, data: bytes, missing: np.ndarray[Any, Any]
) -> Any:
    """Write and read zarrs' format: two lengths, the validity, and the present elements."""
    validity = (~missing).tobytes()
    chunk = struct.pack("<QQ", len(validity), len(data)) + validity + data
    optional = {
        "name": "zarrs.optional",
        "configuration": {"mask_codecs": [{"name": "bytes"}], "data_codecs": codecs},
    }
    data_type = {"name": "zarrs.optional", "configuration": {"name": name, "configuration": {}}}
    return zarrow.open(write(folder, shape, data_type, [optional], chunk, None))[...]
