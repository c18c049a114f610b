"""Codecs from bytes to bytes, compared with other libraries, and given hostile input."""

from __future__ import annotations

import bz2
import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs
import zarrista

import zarrow
from oracle.libraries import open_tensorstore, open_zarrs, unspecified

VALUES = (np.arange(1200, dtype="i4") // 7 * 31 % 1000).reshape(40, 30)
LZMA1, LZMA2, DELTA, X86 = 0x4000000000000001, 33, 3, 4

# Every codec, by its id and parameters.
CODECS: list[dict[str, Any]] = [
    {"id": "zstd", "level": 1},
    {"id": "gzip", "level": 1},
    {"id": "zlib", "level": 1},
    *(
        {"id": "blosc", "cname": name, "clevel": 5, "shuffle": 1}
        for name in ("lz4", "zlib", "zstd", "blosclz")
    ),
    {"id": "lz4"},
    {"id": "bz2", "level": 1},
    {"id": "lzma"},
    {"id": "lzma", "format": 1, "check": 0, "preset": 2},
    {"id": "lzma", "format": 1, "check": 10, "preset": 1 | 1 << 31},
    {"id": "lzma", "format": 2, "preset": 1},
    {"id": "lzma", "format": 3, "filters": [{"id": DELTA, "dist": 4}, {"id": LZMA2, "preset": 1}]},
    {
        "id": "lzma",
        "format": 3,
        "filters": [{"id": X86}, {"id": LZMA2, "dict_size": 65536, "lc": 0, "lp": 2}],
    },
    {"id": "lzma", "format": 3, "filters": [{"id": LZMA1, "mf": 4, "mode": 1, "nice_len": 64}]},
    {"id": "shuffle", "elementsize": 4},
    {"id": "shuffle", "elementsize": 8},
    {"id": "shuffle", "elementsize": 10},
    {"id": "base64"},
    *({"id": id} for id in ("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3")),
    *({"id": id, "location": "start"} for id in ("crc32c", "crc32", "adler32")),
    *({"id": id, "location": "end"} for id in ("crc32c", "crc32", "adler32")),
    {"id": "jenkins_lookup3", "initval": 0xDEADBEEF},
]
# Codecs with only one valid encoding.
EXACT = ("shuffle", "base64", "crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3")
# numcodecs, as bundled with zarr-python 3, lacks base64.
NOT_IN_ZARR_PYTHON_3 = ("base64",)
IN_ZARRS = ("zstd", "gzip", "zlib", "blosc", "bz2", "crc32c", "adler32", "fletcher32", "shuffle")


def named(codec: dict[str, Any]) -> str:
    return "-".join(str(value) for value in codec.values())


def numcodec(codec: dict[str, Any]) -> Any:
    return numcodecs.get_codec(dict(codec))


def read_by_zarr_python(folder: Path) -> Any:
    with unspecified():
        return np.asarray(zarr.open_array(folder, mode="r")[...])


def codec_of(document: dict[str, Any]) -> list[Any]:
    """Yield every codec of a document, at every depth."""
    found = []
    for codec in document["codecs"]:
        found.append(codec)
        for key in ("codecs", "index_codecs", "mask_codecs", "data_codecs"):
            if key in codec["configuration"]:
                found += codec_of({"codecs": codec["configuration"][key]})
    return found


def open_by_others(folder: Path, id: str) -> None:
    """Compare with every library that has the codec."""
    if id not in NOT_IN_ZARR_PYTHON_3:
        assert np.array_equal(read_by_zarr_python(folder), VALUES)
    names = {codec["name"] for codec in codec_of(json.loads((folder / "zarr.json").read_text()))}
    if not any(name.startswith("numcodecs.") for name in names):
        assert np.array_equal(open_tensorstore(folder).read().result(), VALUES)
    if id in IN_ZARRS and "numcodecs.crc32c" not in names:
        try:
            array = open_zarrs(folder)
        except zarrista.exceptions.ZarristaError as error:
            assert "is not supported" in str(error), error
            return
        assert np.array_equal(np.frombuffer(array[...].buffer(), "i4").reshape(VALUES.shape), VALUES)


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_other_libraries_read_written_chunks(codec: dict[str, Any], tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "2", data=VALUES, chunks=(20, 30), compressors=codec, zarr_format=2)
    assert np.array_equal(zarrow.open(tmp_path / "2")[...], VALUES)
    assert np.array_equal(read_by_zarr_python(tmp_path / "2"), VALUES)
    for name, shards in (("3", None), ("shards", (40, 30))):
        folder = tmp_path / name
        zarrow.create_array(folder, data=VALUES, chunks=(20, 10), shards=shards, compressors=codec)
        assert np.array_equal(zarrow.open(folder)[...], VALUES)
        assert np.array_equal(zarrow.open(folder)[3:37:2, 5:9], VALUES[3:37:2, 5:9])
        open_by_others(folder, codec["id"])


@pytest.mark.parametrize("codec", CODECS, ids=named)
def test_chunks_of_other_libraries_are_read(codec: dict[str, Any], tmp_path: Path) -> None:
    with unspecified():
        array = zarr.create_array(
            tmp_path / "2", data=VALUES, chunks=(20, 30), compressors=numcodec(codec), zarr_format=2
        )
        # As a filter before a compressor.
        zarr.create_array(
            tmp_path / "filter",
            data=VALUES,
            chunks=(20, 30),
            filters=[numcodec(codec)],
            compressors=numcodecs.Zstd(),
            zarr_format=2,
        )
        assert np.array_equal(array[...], VALUES)
    assert np.array_equal(zarrow.open(tmp_path / "2")[...], VALUES)
    assert np.array_equal(zarrow.open(tmp_path / "filter")[...], VALUES)
    if codec["id"] in EXACT:
        zarrow.create_array(tmp_path / "own", data=VALUES, chunks=(20, 30), compressors=codec, zarr_format=2)
        own, theirs = (tmp_path / "own" / "0.0").read_bytes(), (tmp_path / "2" / "0.0").read_bytes()
        assert own == theirs == bytes(numcodec(codec).encode(VALUES[:20].tobytes()))
    if codec["id"] in NOT_IN_ZARR_PYTHON_3:
        return
    name = codec["id"] if codec["id"] in ("zstd", "gzip", "blosc", "crc32c") else f"numcodecs.{codec['id']}"
    if codec.get("location"):
        name = f"numcodecs.{codec['id']}"
    configuration = {key: value for key, value in codec.items() if key != "id"}
    if name == "blosc":
        configuration |= {"shuffle": "shuffle", "typesize": 4, "blocksize": 0}
    chosen = {"name": name, "configuration": configuration} if name != "crc32c" else zarr.codecs.Crc32cCodec()
    for folder, shards in ((tmp_path / "3", None), (tmp_path / "shards", (40, 30))):
        with unspecified():
            zarr.create_array(folder, data=VALUES, chunks=(20, 10), shards=shards, compressors=[chosen])
        assert np.array_equal(zarrow.open(folder)[...], VALUES)


TYPES = ["<U3", ">U3", "S6", "V6", [("a", "<i2"), ("b", "S4")], "<M8[s]", "?", "<c16"]


@pytest.mark.parametrize(
    "id", ["shuffle", "fletcher32", "adler32", "crc32", "lzma", "base64", "jenkins_lookup3"]
)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_type_makes_no_difference(id: str, dtype: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    raw = rng.integers(0, 2, 48 * np.dtype(dtype).itemsize, "u1").tobytes()
    values = np.frombuffer(raw, dtype) if np.dtype(dtype).kind not in "U" else None
    if values is None:
        values = np.array(["", "a", "né", "日本語"] * 12, dtype)
    values = values.reshape(12, 4)
    codec = {"id": id, "elementsize": 3} if id == "shuffle" else {"id": id}
    if id == "shuffle":
        codec["elementsize"] = 4 if values.nbytes % 12 else 3
    with unspecified():
        zarr.create_array(
            tmp_path / "theirs",
            data=values,
            chunks=(6, 4),
            filters=[numcodec(codec)],
            compressors=None,
            zarr_format=2,
        )
    assert (
        zarrow.open(tmp_path / "theirs")[...].numpy().tobytes()
        == values.astype(np.dtype(dtype).newbyteorder("=")).tobytes()
    )
    document = json.loads((tmp_path / "theirs" / ".zarray").read_text())
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / ".zarray").write_text(json.dumps(document))
    zarrow.open(tmp_path / "own")[...] = values
    chunks = [(tmp_path / folder / "1.0").read_bytes() for folder in ("own", "theirs")]
    assert id == "lzma" or chunks[0] == chunks[1]
    with unspecified():
        assert zarr.open_array(tmp_path / "own", mode="r")[...].tobytes() == values.tobytes()


def stored(
    folder: Path, chunk: bytes, codec: dict[str, Any] | None, dtype: str = "<i4", size: int = 600
) -> Any:
    """Open an array of version 2 with one chunk."""
    folder.mkdir(exist_ok=True)
    document = {
        "zarr_format": 2,
        "shape": [size],
        "chunks": [size],
        "dtype": dtype,
        "compressor": codec,
        "filters": None,
        "fill_value": 0,
        "order": "C",
    }
    (folder / ".zarray").write_text(json.dumps(document))
    (folder / "0").write_bytes(chunk)
    return zarrow.open(folder)


RAW = VALUES[:20].tobytes()


@pytest.mark.parametrize(
    ("id", "chunk"),
    [
        ("gzip", gzip.compress(RAW) + bytes(512)),
        ("gzip", gzip.compress(RAW[:1000]) + bytes(7) + gzip.compress(RAW[1000:]) + bytes(1)),
        ("zlib", zlib.compress(RAW) + bytes(5)),
        ("bz2", bz2.compress(RAW[:1000]) + bz2.compress(RAW[1000:]) + bytes(9)),
        ("blosc", numcodecs.Blosc("lz4").encode(RAW) + b"\1\2\3 anything"),
        ("blosc", numcodecs.Blosc("zstd").encode(RAW) + bytes(4096)),
        ("lzma", numcodecs.LZMA().encode(RAW[:1000]) + numcodecs.LZMA().encode(RAW[1000:]) + bytes(8)),
    ],
)
def test_trailing_bytes_are_ignored(id: str, chunk: bytes, tmp_path: Path) -> None:
    array = stored(tmp_path, chunk, {"id": id})
    assert array[...].numpy().tobytes() == RAW
    assert array[100:107].numpy().tobytes() == RAW[400:428]


@pytest.mark.parametrize(
    ("id", "chunk"),
    [
        ("gzip", gzip.compress(RAW) + bytes(8) + b"\1"),
        ("zlib", zlib.compress(RAW) + b"\1"),
        ("bz2", bz2.compress(RAW) + b"\1"),
        ("gzip", bytes(100)),
        ("bz2", bytes(100)),
        ("zlib", bytes(100)),
        ("blosc", numcodecs.Blosc("lz4").encode(RAW)[:-1]),
        ("lzma", numcodecs.LZMA().encode(RAW) + b"\1\2\3\4"),
        ("base64", b"AAA"),
        ("base64", b"A" * 3199 + b"\n"),
        ("base64", b"=" * 3200),
    ],
)
def test_other_bytes_behind_a_chunk_are_corrupt(id: str, chunk: bytes, tmp_path: Path) -> None:
    with pytest.raises(zarrow.ZarrowError, match=id):
        stored(tmp_path, chunk, {"id": id})[...]


@pytest.mark.parametrize("id", ["crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"])
def test_a_checksum_that_does_not_match_is_an_error(id: str, tmp_path: Path) -> None:
    chunk = bytearray(numcodec({"id": id}).encode(RAW))
    chunk[1201] ^= 4
    with pytest.raises(zarrow.CodecError, match=id):
        stored(tmp_path, bytes(chunk), {"id": id})[...]


def test_numbers_that_netcdf_writes_as_text(tmp_path: Path) -> None:
    shuffled = numcodecs.Shuffle(4).encode(RAW)
    array = stored(tmp_path, bytes(shuffled), {"id": "shuffle", "elementsize": "4"})
    assert array[...].numpy().tobytes() == RAW
    array = stored(tmp_path, zlib.compress(RAW), {"id": "zlib", "level": "9"})
    array[:300] = 1
    assert array[299:301].numpy().tolist() == [1, VALUES.ravel()[300]]


def test_the_rest_of_a_shuffle_stays_in_place(tmp_path: Path) -> None:
    """HDF5 does so, and numcodecs never writes it."""
    for size in (7, 16, 1000, 4096):
        whole = len(RAW) // size * size
        chunk = np.frombuffer(RAW[:whole], "u1").reshape(-1, size).T.tobytes() + RAW[whole:]
        array = stored(tmp_path, chunk, {"id": "shuffle", "elementsize": size})
        assert array[...].numpy().tobytes() == RAW
        if whole < len(RAW):
            with pytest.raises(zarrow.ZarrowError, match="shuffle"):
                array[...] = 1


def test_shuffle_of_no_element_size_says_why(tmp_path: Path) -> None:
    for size in (0, "0"):
        with pytest.raises(zarrow.ZarrowError, match="netCDF-C"):
            stored(tmp_path, RAW, {"id": "shuffle", "elementsize": size})[...]


def test_blosc_with_snappy_says_so(tmp_path: Path) -> None:
    frame = bytearray(numcodecs.Blosc("lz4").encode(RAW))
    frame[2] = frame[2] & 0x1F | 2 << 5
    with pytest.raises(zarrow.UnsupportedError, match="snappy"):
        stored(tmp_path, bytes(frame), {"id": "blosc"})[...]
    with pytest.raises(zarrow.UnsupportedError, match="snappy"):
        zarrow.create_array(
            tmp_path / "new", shape=4, dtype="i4", compressors={"id": "blosc", "cname": "snappy"}
        )


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC32C = {"name": "crc32c", "configuration": {}}


def other(id: str, **configuration: Any) -> dict[str, Any]:
    return {"name": f"numcodecs.{id}", "configuration": configuration}


def turned(*order: int) -> dict[str, Any]:
    return {"name": "transpose", "configuration": {"order": order}}


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize(
    ("index", "readers"),
    [
        ([LITTLE], ["zarr", "tensorstore", "zarrs"]),
        ([BIG, CRC32C, CRC32C], ["zarr", "tensorstore", "zarrs"]),
        ([turned(2, 0, 1), LITTLE, CRC32C], ["zarr", "tensorstore", "zarrs"]),
        ([turned(1, 2, 0), turned(0, 2, 1), BIG], ["zarr", "tensorstore", "zarrs"]),
        ([LITTLE, other("crc32")], ["zarr"]),
        ([LITTLE, other("adler32", location="end"), CRC32C], ["zarr"]),
        ([LITTLE, other("fletcher32"), other("jenkins_lookup3", initval=3)], ["zarr"]),
        ([BIG, other("shuffle", elementsize=8), CRC32C], []),
        ([LITTLE, other("base64")], []),
    ],
)
def test_any_index_of_a_size_that_is_known(
    index: list[Any], readers: list[str], location: str, tmp_path: Path
) -> None:
    sharding = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [10, 6],
            "codecs": [LITTLE],
            "index_codecs": index,
            "index_location": location,
        },
    }
    values = VALUES.copy()
    values[:10, :6] = 0
    zarrow.create_array(tmp_path / "own", shape=(40, 30), chunks=(20, 30), codecs=[sharding], dtype="i4")
    zarrow.open(tmp_path / "own")[...] = values
    zarrow.open(tmp_path / "own")[15:25, 3:9] = values[15:25, 3:9]
    assert np.array_equal(zarrow.open(tmp_path / "own")[...], values)
    assert np.array_equal(zarrow.open(tmp_path / "own")[12:14, 7:8], values[12:14, 7:8])
    if "zarr" in readers:
        assert np.array_equal(read_by_zarr_python(tmp_path / "own"), values)
    if "tensorstore" in readers:
        array = open_tensorstore(tmp_path / "own")
        assert np.array_equal(array.read().result(), values)
        # zarrow reads TensorStore's encoding.
        array[5:35].write(values[5:35] + 1).result()
        expected = values.copy()
        expected[5:35] += 1
        assert np.array_equal(zarrow.open(tmp_path / "own")[...], expected)
        array[5:35].write(values[5:35]).result()
    if "zarrs" in readers:
        found = np.frombuffer(open_zarrs(tmp_path / "own")[...].buffer(), "i4").reshape(40, 30)
        assert np.array_equal(found, values)


def test_an_index_of_no_fixed_size_is_refused(tmp_path: Path) -> None:
    configuration = {"chunk_shape": [2], "codecs": [LITTLE], "index_codecs": [LITTLE, "zstd"]}
    codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    with pytest.raises(zarrow.UnsupportedError, match="zstd"):
        zarrow.create_array(tmp_path / "a", shape=4, dtype="i4", codecs=codecs)


def has_normal_form(document: dict[str, Any]) -> bool:
    return all(
        isinstance(codec, dict) and isinstance(codec["configuration"], dict) for codec in codec_of(document)
    )


def test_codecs_are_written_in_the_normal_form_at_every_depth(tmp_path: Path) -> None:
    sharding = {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [10, 6], "codecs": ["bytes", "fletcher32", "zstd"]},
    }
    zarrow.create_array(tmp_path / "a", data=VALUES, chunks=(20, 30), codecs=[sharding])
    document = json.loads((tmp_path / "a" / "zarr.json").read_text())
    inner = document["codecs"][0]["configuration"]
    assert has_normal_form(document)
    assert inner["codecs"] == [
        LITTLE,
        other("fletcher32"),
        {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
    ]
    assert inner["index_codecs"] == [LITTLE, CRC32C]
    assert np.array_equal(read_by_zarr_python(tmp_path / "a"), VALUES)
    optional = {
        "name": "zarrs.optional",
        "configuration": {"mask_codecs": ["packbits", "adler32"], "data_codecs": ["bytes", "crc32c"]},
    }
    zarrow.create_array(tmp_path / "b", shape=6, dtype="optional[int32]", codecs=[optional, "crc32"])
    assert has_normal_form(json.loads((tmp_path / "b" / "zarr.json").read_text()))


@pytest.mark.parametrize("edit", ["attributes", "resize", "append"])
def test_codecs_get_the_normal_form_when_a_document_is_edited(edit: str, tmp_path: Path) -> None:
    inner = {
        "chunk_shape": [10, 30],
        "codecs": [LITTLE, {"name": "numcodecs.fletcher32"}],
        "index_codecs": [LITTLE, "crc32c"],
    }
    zarrow.create_array(
        tmp_path, data=VALUES, chunks=(20, 30), codecs=[{"name": "sharding_indexed", "configuration": inner}]
    )
    document = json.loads((tmp_path / "zarr.json").read_text())
    document["codecs"][0]["configuration"] = inner
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    array = zarrow.open(tmp_path)
    expected = VALUES
    if edit == "attributes":
        array.attrs["title"] = "rain"
    elif edit == "resize":
        array.resize((20, 30))
        expected = VALUES[:20]
    else:
        array.append(VALUES)
        expected = np.concatenate([VALUES, VALUES])
    after = json.loads((tmp_path / "zarr.json").read_text())
    assert has_normal_form(after)
    assert {**after, "codecs": 0, "shape": 0, "attributes": 0} == {
        **document,
        "codecs": 0,
        "shape": 0,
        "attributes": 0,
    }
    assert np.array_equal(read_by_zarr_python(tmp_path), expected)


def xz_with_dictionary(bits: int) -> bytes:
    """Make an `.xz` file with a dictionary size of 2 or 3 times 2**(bits // 2 + 11) in its header."""
    chunk = bytearray(numcodecs.LZMA(preset=1).encode(RAW))
    size = (chunk[12] + 1) * 4
    header = chunk[12 : 12 + size - 4]
    assert header[2:4] == b"\x21\x01", "one filter, LZMA2, with one byte of properties"
    header[4] = bits
    chunk[12 : 12 + size] = header + struct.pack("<I", zlib.crc32(header))
    return bytes(chunk)


def test_a_dictionary_is_limited_by_the_decoded_size(tmp_path: Path) -> None:
    # Preset 9 claims 64 MiB for any chunk; 4 GiB is absurd for 2,400 bytes.
    assert stored(tmp_path, xz_with_dictionary(28), {"id": "lzma"})[...].numpy().tobytes() == RAW
    with pytest.raises(zarrow.CodecError, match="more memory"):
        stored(tmp_path, xz_with_dictionary(40), {"id": "lzma"})[...]
    # In the other formats the size is limited to the chunk's.
    alone = bytearray(numcodecs.LZMA(format=2).encode(RAW))
    alone[1:5] = b"\xff\xff\xff\xff"
    array = stored(tmp_path, bytes(alone), {"id": "lzma", "format": 2})
    assert array[...].numpy().tobytes() == RAW
    filters = [{"id": LZMA2, "preset": 1}]
    raw = numcodecs.LZMA(format=3, filters=filters).encode(RAW)
    claimed = {"id": "lzma", "format": 3, "filters": [{"id": LZMA2, "preset": 1, "dict_size": 2**32 - 1}]}
    assert stored(tmp_path, bytes(raw), claimed)[...].numpy().tobytes() == RAW


@pytest.mark.parametrize("format", [1, 2])
def test_a_bomb_of_lzma_is_an_error(format: int, tmp_path: Path) -> None:
    bomb = numcodecs.LZMA(format=format, preset=1).encode(bytes(64 << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(zarrow.ZarrowError, match="lzma"):
        stored(tmp_path, bytes(bomb), {"id": "lzma", "format": format})[...]
    document = json.loads((tmp_path / ".zarray").read_text())
    # Between two stages only the metadata bound the size.
    document["compressor"] = {"id": "lzma", "format": format}
    document["filters"] = [{"id": "zlib", "level": 1}]
    (tmp_path / ".zarray").write_text(json.dumps(document))
    with pytest.raises(zarrow.ZarrowError, match="lzma"):
        zarrow.open(tmp_path)[...]


@pytest.mark.parametrize(
    "codec",
    [
        {"id": "lzma", "format": 4},
        {"id": "lzma", "format": 3},
        {"id": "lzma", "format": 3, "filters": []},
        {"id": "lzma", "format": 3, "filters": [{"id": LZMA2}] * 5},
        {"id": "lzma", "format": 3, "filters": [{"id": 99}]},
        {"id": "lzma", "format": 3, "filters": [{"id": LZMA2, "dict_size": -1}]},
        {"id": "shuffle", "elementsize": -1},
        {"id": "shuffle", "elementsize": 2**40},
        {"id": "shuffle", "elementsize": 4.5},
        {"id": "adler32", "location": "middle"},
        {"id": "crc32", "location": 1},
        {"id": "jenkins_lookup3", "initval": 2**32},
        {"id": "jenkins_lookup3", "prefix": "text"},
    ],
    ids=named,
)
def test_settings_without_a_reader_are_refused(codec: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(zarrow.ZarrowError, match=codec["id"]):
        stored(tmp_path, RAW, codec)[...]


def test_strings_go_through_byte_codecs(tmp_path: Path) -> None:
    words = np.array(["", "a", "né", "日本語"] * 50, dtype=object)
    for id in ("lzma", "base64", "crc32", "adler32", "fletcher32", "jenkins_lookup3"):
        with unspecified():
            zarr.create_array(
                tmp_path / id,
                shape=200,
                chunks=100,
                compressors=numcodec({"id": id}),
                dtype=str,
                zarr_format=2,
            )[:] = words
        array = zarrow.open(tmp_path / id)
        assert array[...].numpy().tolist() == words.tolist()
        array[3:5] = ["longer than before", "x"]
        with unspecified():
            assert zarr.open_array(tmp_path / id, mode="r")[2:6].tolist() == [
                "né",
                "longer than before",
                "x",
                "a",
            ]
