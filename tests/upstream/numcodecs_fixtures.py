"""Encoded arrays of the fixtures in numcodecs' source distribution, read by zarrow beside numcodecs.

`make test-fixtures` reads all of them: each is equal or refused.

1. Each array becomes the chunk of an array of version 2 in memory. The codec is its compressor or filter.
2. numcodecs decodes the same chunk. Where it fails itself, zarrow may fail too.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numcodecs
import numpy as np

import zarrow

# Codecs of bytes; all others are filters of arrays.
_COMPRESSORS = {
    "adler32",
    "base64",
    "blosc",
    "bz2",
    "crc32",
    "crc32c",
    "gzip",
    "lz4",
    "lzma",
    "shuffle",
    "zlib",
    "zstd",
}
# Codecs that zarrow does not have.
_REFUSED = {"json", "json2", "msgpack2", "pickle", "vlen-array", "zfpy"}
# Messages of refusals of other codecs, which are documented.
_LIMITS = ("delta of bools", "elementsize is 0, which netCDF-C writes")
# Codecs that numcodecs has only with other packages; they lose nothing.
_LOSSLESS = {"pcodec"}


def cases(folder: Path) -> Iterator[tuple[str, np.ndarray[Any, Any], dict[str, Any], bytes]]:
    """Yield the name, array, codec and encoded bytes of each fixture."""
    for configuration in sorted(folder.glob("**/codec.*/config.json")):
        codec = json.loads(configuration.read_text())
        for encoded in sorted(configuration.parent.glob("encoded.*.dat")):
            number = encoded.name.split(".")[1]
            array = np.load(configuration.parents[1] / f"array.{number}.npy", allow_pickle=True)
            yield str(encoded.relative_to(folder)), array, codec, encoded.read_bytes()


def _order(array: np.ndarray[Any, Any]) -> Literal["C", "F"]:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def read(array: np.ndarray[Any, Any], codec: dict[str, Any], encoded: bytes) -> Any:
    """Read a fixture with zarrow (step 1)."""
    is_compressor = codec["id"] in _COMPRESSORS
    document = {
        "zarr_format": 2,
        "shape": array.shape,
        "chunks": array.shape,
        "dtype": array.dtype.str,
        "order": _order(array),
        "fill_value": None,
        "compressor": codec if is_compressor else None,
        "filters": None if is_compressor else [codec],
    }
    key = ".".join("0" * array.ndim) or "0"
    store = zarrow.MemoryStore({".zarray": json.dumps(document).encode(), key: encoded})
    return zarrow.open(store)[...].numpy()


def decoded(array: np.ndarray[Any, Any], codec: dict[str, Any], encoded: bytes) -> np.ndarray[Any, Any]:
    """Decode a fixture with numcodecs (step 2)."""
    order: Literal["C", "F"] = _order(array)
    found = numcodecs.get_codec(dict(codec)).decode(encoded)
    if array.dtype == object:
        return np.asarray(found, object).reshape(array.shape, order=order)
    flat = np.frombuffer(np.ascontiguousarray(found).reshape(-1).view("u1"), array.dtype)
    return flat.reshape(array.shape, order=order)


def same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Compare the bits, or the values of objects."""
    if one.dtype == object or other.dtype == object:
        return one.shape == other.shape and one.astype(object).tolist() == other.astype(object).tolist()
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def outcomes(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name, codec and outcome of each fixture: `equal`, `refused`, or what is wrong."""
    for name, array, codec, encoded in cases(folder):
        kind = codec["id"]
        try:
            expected = array if kind in _LOSSLESS else decoded(array, codec, encoded)
        except Exception as error:  # of any type, by the codec
            expected, reason = None, repr(error)
        try:
            found = read(array, codec, encoded)
        except zarrow.ZarrowError as error:
            is_known = kind in _REFUSED or expected is None or any(limit in str(error) for limit in _LIMITS)
            outcome = "refused" if is_known else f"fails: {error}"
        else:
            if expected is None:
                outcome = f"read, and numcodecs fails: {reason}"
            else:
                outcome = "equal" if same(found, expected) else "differs"
        yield name, kind, outcome


def main(folder: Path) -> None:
    """Check all fixtures, and print a line for each codec."""
    warnings.simplefilter("ignore")
    counted: Counter[tuple[str, str]] = Counter()
    wrong = []
    for name, kind, outcome in outcomes(folder):
        counted[kind, outcome if outcome in ("equal", "refused") else "wrong"] += 1
        if outcome not in ("equal", "refused"):
            wrong.append(f"{name}: {outcome}")
    for (kind, outcome), count in sorted(counted.items()):
        print(f"{kind:18} {outcome:8} {count}")
    if wrong or not counted:
        sys.exit("\n".join(wrong) or f"no fixtures below {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
