"""Write `zarr_python.jsonl`: metadata as zarr-python writes it, with NumPy's type and fill value.

Run with zarr-python 3.1. Each line is one array: `documents` by key, the NumPy type string without byte
order, and the little-endian bytes of the fill value in hexadecimal. The script also
writes `zarr_python_v2.json` (a `.zmetadata`) and `zarr_python_v3.json` (a `zarr.json`), the consolidated
metadata of one hierarchy.
"""

import json
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import zarr
import zarr.codecs as v3
import zarr.codecs.numcodecs as v3_numcodecs

NUMBERS = ["b1", "i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u8", "f2", ">f4", "f8", "c8", ">c16"]
TYPES: list[Any] = [*NUMBERS, "M8[s]", "m8[10us]", ">M8[ns]", "U5", ">U2", "S3", "V4", str]
FILLS: list[tuple[Any, Any]] = [
    ("f4", np.nan),
    ("f8", -np.inf),
    ("f2", 1.5),
    ("f8", 0.1),
    ("f4", 0.1),
    ("f8", 1e300),
    ("f4", 3),
    ("c16", complex(1, np.nan)),
    ("c8", complex(-0.5, np.inf)),
    ("M8[s]", np.datetime64("NaT")),
    ("M8[s]", np.datetime64(5, "s")),
    ("m8[h]", np.timedelta64(-7, "h")),
    ("U5", "hé"),
    ("S3", b"ab"),
    ("V4", b"abcd"),
    ("u8", 2**64 - 1),
    ("i8", -(2**63)),
    ("i1", -128),
    ("b1", True),
    (str, "né"),
]
V2_COMPRESSORS: list[Any] = [
    numcodecs.Zlib(),
    numcodecs.GZip(),
    numcodecs.Zstd(),
    numcodecs.Blosc("zstd", 3, numcodecs.Blosc.AUTOSHUFFLE),
    numcodecs.Blosc("lz4", 3, numcodecs.Blosc.BITSHUFFLE),
    numcodecs.LZ4(),
    numcodecs.BZ2(),
    numcodecs.LZMA(),
]


def array(name: str, **options: Any) -> None:
    """Add one array to the output."""
    store = zarr.storage.MemoryStore()
    options = {"shape": (6,), "chunks": (4,), "compressors": None} | options
    made = zarr.create_array(store, **options)
    documents = {key: json.loads(value.to_bytes()) for key, value in store._store_dict.items()}
    if options["dtype"] is str:
        code, raw = "string", made.fill_value.encode()
    elif options["dtype"] == "bytes":
        code, raw = "bytes", made.fill_value
    else:
        native = np.dtype(options["dtype"]).newbyteorder("<")
        code, raw = native.str[1:], np.array(made.fill_value, dtype=native).tobytes()
        if documents.get(".zarray", {"fill_value": 0})["fill_value"] is None:
            raw = bytes(native.itemsize)
    line = {"name": name, "documents": documents, "code": code, "fill": raw.hex()}
    lines.append(json.dumps(line, separators=(",", ":")))


lines: list[str] = []
warnings.simplefilter("ignore")
for version in (2, 3):
    for dtype in TYPES:
        array(f"v{version} {getattr(dtype, '__name__', dtype)}", dtype=dtype, zarr_format=version)
    for dtype, value in FILLS:
        name = f"v{version} {getattr(dtype, '__name__', dtype)} fill {value}"
        array(name, dtype=dtype, zarr_format=version, fill_value=value)
    array(f"v{version} 0-d", dtype="f4", shape=(), chunks=(), zarr_format=version)
array("v2 null", dtype="f4", zarr_format=2, fill_value=None)
for compressor in V2_COMPRESSORS:
    key_encoding = {"name": "v2", "separator": "/"}
    array(
        f"v2 {compressor}",
        dtype=">f4",
        shape=(5, 6),
        chunks=(4, 4),
        zarr_format=2,
        order="F",
        compressors=compressor,
        attributes={"a": [1, {"b": None}]},
        chunk_key_encoding=key_encoding,
    )
delta, scale = numcodecs.Delta(">i4"), numcodecs.FixedScaleOffset(1, 10, ">i4", "i2")
array(
    "v2 filters",
    dtype=">i4",
    zarr_format=2,
    filters=[delta, scale, numcodecs.Shuffle(2)],
    compressors=numcodecs.LZ4(),
)
array("v2 packbits", dtype="b1", zarr_format=2, filters=[numcodecs.PackBits()])
array("v3 bytes", dtype="bytes")
array("v3 axes", dtype="f4", shape=(3, 4), chunks=(3, 4), dimension_names=["x", None], attributes={"q": 1})
array(
    "v3 sharded",
    dtype=">u2",
    shape=(8, 8),
    chunks=(2, 2),
    shards=(4, 4),
    filters=[v3.TransposeCodec(order=(1, 0))],
    serializer=v3.BytesCodec(endian="big"),
    compressors=[v3.BloscCodec(cname="zstd", clevel=4, shuffle="bitshuffle")],
)
array("v3 gzip", dtype="f4", compressors=[v3.GzipCodec(level=3), v3.Crc32cCodec()])
array(
    "v3 numcodecs",
    dtype="f4",
    filters=[v3_numcodecs.Delta(dtype="<f4"), v3_numcodecs.BitRound(keepbits=3)],
    compressors=[
        v3_numcodecs.Shuffle(elementsize=4),
        v3_numcodecs.LZ4(acceleration=1),
        v3_numcodecs.Zlib(level=1),
        v3_numcodecs.GZip(level=1),
        v3_numcodecs.Zstd(level=2),
        v3_numcodecs.Blosc(cname="lz4", clevel=3, shuffle=2, blocksize=0),
        v3_numcodecs.CRC32C(),
    ],
)
here = Path(__file__)
here.with_suffix(".jsonl").write_text("\n".join(lines) + "\n")
for version, key in ((2, ".zmetadata"), (3, "zarr.json")):
    store = zarr.storage.MemoryStore()
    root = zarr.create_group(store, zarr_format=version, attributes={"title": "root"})
    root.create_array("a", shape=(3,), dtype="i4", chunks=(2,))
    sub = root.create_group("sub", attributes={"title": "sub"})
    sub.create_array("b", shape=(5,), dtype="f8", chunks=(2,))
    sub.create_group("deep").create_array("c", shape=(7,), dtype="u1", chunks=(2,))
    root.create_group("sub-1")
    zarr.consolidate_metadata(store)
    document = json.loads(store._store_dict[key].to_bytes())
    here.with_name(f"zarr_python_v{version}.json").write_text(
        json.dumps(document, separators=(",", ":")) + "\n"
    )
