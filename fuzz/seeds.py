"""Valid seed inputs for the fuzz targets: `seeds.py FOLDER` writes FOLDER/TARGET/NAME.

The first byte of each is the number of its chain in the target, the rest is the stored value.
"""

import json
import struct
import sys
from pathlib import Path

import google_crc32c
import numcodecs
import numpy as np

NUMBERS = np.arange(480, dtype="<i4").reshape(20, 24)
WORDS = ["", "a", "né", "日本語", "a longer string than the others"]
ABSENT = struct.pack("<QQ", 2**64 - 1, 2**64 - 1)

zstd = numcodecs.Zstd(level=1).encode
zstd_checked = numcodecs.Zstd(level=1, checksum=True).encode
gzip = numcodecs.GZip(level=1).encode
zlib = numcodecs.Zlib(level=1).encode
lz4 = numcodecs.LZ4().encode
bz2 = numcodecs.BZ2(level=1).encode
lzma = numcodecs.LZMA(preset=1)
lzma_alone = numcodecs.LZMA(format=2, preset=1)
lzma_raw = numcodecs.LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}])


def blosc(name: str, shuffle: int = 1) -> numcodecs.Blosc:
    """Return a Blosc encoder."""
    return numcodecs.Blosc(cname=name, clevel=5, shuffle=shuffle)


def crc32c(data: bytes) -> bytes:
    """Append the checksum of `data`."""
    return data + struct.pack("<I", google_crc32c.value(data))


def chunks() -> list[tuple[int, bytes]]:
    """One chunk of numbers for each decoder."""
    raw, turned = NUMBERS.tobytes(), NUMBERS.T.astype(">i4").tobytes()
    bits = np.packbits(NUMBERS.ravel() % 3 == 0, bitorder="little").tobytes()
    shuffled = bytes(numcodecs.Shuffle(4).encode(NUMBERS.tobytes()))
    bloscs = [
        blosc(name, shuffle).encode(raw)
        for name in numcodecs.blosc.list_compressors()
        for shuffle in (0, 1, 2)
    ]
    fletcher, adler = numcodecs.Fletcher32().encode(raw), numcodecs.Adler32().encode(raw)
    return [
        *((0, raw), (1, zstd(raw)), (1, zstd_checked(raw)), (1, zstd(raw[:960]) + zstd(raw[960:]))),
        *(
            (2, gzip(raw)),
            (2, gzip(raw[:960]) + gzip(raw[960:])),
            (3, zlib(raw)),
            *((4, data) for data in bloscs),
        ),
        *((5, lz4(raw)), (6, bz2(raw)), (6, bz2(raw[:960]) + bz2(raw[960:])), (7, crc32c(raw)), (8, bits)),
        *((9, zstd(b"\0" + bits)), (10, lz4(turned)), (11, zlib(shuffled)), (12, zstd(lz4(raw)))),
        *(
            (13, blosc("lz4").encode(gzip(raw))),
            (14, bz2(bz2(raw))),
            (15, fletcher),
            (16, adler),
            (25, zstd(raw)),
        ),
        *((17, lzma.encode(raw)), (17, lzma.encode(raw[:960]) + lzma.encode(raw[960:]))),
        *((18, lzma_alone.encode(raw)), (19, lzma_raw.encode(raw)), (20, numcodecs.Base64().encode(raw))),
        *(
            (21, numcodecs.CRC32().encode(raw)),
            (22, numcodecs.JenkinsLookup3(initval=7).encode(raw)),
            (23, numcodecs.CRC32C(location="start").encode(raw)),
            (24, crc32c(lzma.encode(shuffled))),
        ),
        # Some stores append padding to a chunk.
        *((2, gzip(raw) + bytes(64)), (3, zlib(raw) + bytes(3)), (4, blosc("lz4").encode(raw) + b"behind")),
    ]


def blosc_frames() -> list[bytes]:
    """Frames of Blosc, in blocks of several sizes."""
    return [
        bytes(numcodecs.Blosc(name, level, shuffle, block, typesize=size).encode(NUMBERS.tobytes()))
        for name in numcodecs.blosc.list_compressors()
        for shuffle in (0, 1, 2)
        for level, block, size in ((5, 0, 4), (1, 256, 8), (9, 500, 12), (0, 0, 4))
    ]


def frames() -> list[tuple[int, bytes]]:
    """Chunks of each compressor that a device can decompress, after their decoded bytes."""
    raw = NUMBERS.tobytes()
    size = struct.pack("<I", len(raw))
    named = bytearray(gzip(raw))
    named[3], named[10:10] = 0b1110, b"\2\0exname\0xx"
    made = [
        *((0, zstd(raw)), (0, zstd_checked(raw)), (1, lz4(raw)), (3, gzip(raw)), (3, bytes(named))),
        *((4, zlib(raw)), (5, bz2(raw)), *((2, frame) for frame in blosc_frames())),
    ]
    return [(number, size + bytes(frame)) for number, frame in made]


def bloscs() -> list[tuple[int, bytes]]:
    """Frames of Blosc, and inputs to encode with each of its compressors."""
    raw = NUMBERS.tobytes()
    settings = [bytes([128 + number, 5, 4, 16]) for number in range(15)]
    return [
        *((0, frame) for frame in blosc_frames()),
        *((setting[0], setting[1:] + raw) for setting in settings),
    ]


def vlen(count: int) -> bytes:
    """Encode words as `vlen-utf8` does."""
    words = [WORDS[at % len(WORDS)].encode() for at in range(count)]
    return struct.pack("<I", count) + b"".join(struct.pack("<I", len(word)) + word for word in words)


def shard(parts: list[bytes | None], at_end: bool, order: str = "<", checked: bool = False) -> bytes:
    """Lay out a shard of `parts`, `None` for a missing one."""
    length = 16 * len(parts) + 4 * checked
    body, index, at = b"", b"", 0 if at_end else length
    for part in parts:
        index += ABSENT if part is None else struct.pack(f"{order}QQ", at, len(part))
        body, at = body + (part or b""), at + len(part or b"")
    index = crc32c(index) if checked else index
    return body + index if at_end else index + body


def shards() -> list[tuple[int, bytes]]:
    """Shards of four parts."""
    raw = NUMBERS.tobytes()[:96]
    nested = shard([zstd(raw[:48]), zstd(raw[48:]), None, zstd(raw[48:])], at_end=False)
    plain = shard([raw, None, raw, raw], at_end=False)
    return [
        (0, shard([zstd(raw)] * 4, at_end=True, checked=True)),
        (1, shard([zstd(raw), None, zstd(raw), zstd(raw)], at_end=True)),
        (2, shard([raw, None, raw, raw], at_end=False, order=">")),
        (3, zstd(plain)),
        (4, shard([nested, nested], at_end=True)),
        (5, shard([zstd(vlen(24)), None, zstd(vlen(24)), zstd(vlen(24))], at_end=True)),
        (6, shard([zstd(raw)] * 4, at_end=True)),
        (7, crc32c(shard([vlen(24), vlen(24), None, vlen(24)], at_end=False))),
    ]


# np.tile([7, 100000, 3, 5], 120) as int32, by pcodec 1.1.
PCO = bytes.fromhex(
    "70636f2103000878040103df010010210300c6f2fcff800400000001320d03000107000080f1711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc771140000"
)


def filtered() -> list[tuple[int, bytes]]:
    """Chunks with a filter."""
    numbers = NUMBERS.ravel()
    words = [WORDS[at % len(WORDS)].encode() for at in range(480)]
    offsets = np.cumsum([0, *map(len, words)])
    narrow, wide = offsets.astype("<u4").tobytes(), offsets.astype("<u8").tobytes()
    length = struct.Struct("<Q").pack
    return [
        (0, numcodecs.Delta("<i4", "<i2").encode(numbers).tobytes()),
        (1, numcodecs.PackBits().encode(numbers % 3 == 0).tobytes()),
        (2, (numbers * 3).tobytes()),
        (3, numbers.astype("<i2").tobytes()),
        (4, (numbers % 4).astype("u1").tobytes()),
        (5, PCO),
        (6, b"".join(words) + narrow + length(len(narrow))),
        (7, length(len(wide)) + wide + b"".join(words)),
    ]


def strings() -> list[tuple[int, bytes]]:
    """Chunks of strings."""
    words = vlen(12)
    stored = [
        words,
        words,
        zstd(words),
        gzip(words),
        lz4(words),
        blosc("lz4").encode(words),
        words,
        crc32c(words),
    ]
    return list(enumerate(stored))


def optionals() -> list[tuple[int, bytes]]:
    """Chunks of optional elements."""
    present = np.arange(12) % 3 > 0
    mask, bits = present.astype("u1").tobytes(), b"\4" + np.packbits(present, bitorder="little").tobytes()
    numbers, words = NUMBERS.ravel()[:8].tobytes(), vlen(8)

    def both(mask: bytes, data: bytes) -> bytes:
        return struct.pack("<QQ", len(mask), len(data)) + mask + data

    inner = np.arange(8) % 2 > 0
    inner_bits = b"\0" + np.packbits(inner, bitorder="little").tobytes()
    return [
        *(
            (0, both(mask, numbers)),
            (1, both(bits, zstd(numbers))),
            (2, both(mask, words)),
            (3, both(bits, zstd(words))),
        ),
        (4, both(mask, both(inner.astype("u1").tobytes(), numbers[:16]))),
        (5, both(bits, both(inner_bits, vlen(4)))),
        (6, zstd(both(mask, numbers))),
    ]


def documents() -> list[tuple[int, bytes]]:
    """Metadata of all versions, some with a second document after a zero byte."""
    grid = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    rectilinear = {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[[2, 3]], [1, 3]]},
    }
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    index = {"chunk_shape": [1, 3], "codecs": [little], "index_codecs": [little, {"name": "crc32c"}]}
    sharding = {"name": "sharding_indexed", "configuration": index}

    def array(**changes: object) -> dict[str, object]:
        usual = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [6, 4],
            "data_type": "int16",
            "fill_value": 1,
            "chunk_grid": grid,
            "chunk_key_encoding": {"name": "default"},
            "codecs": [little],
        }
        return usual | changes

    def v2(**changes: object) -> dict[str, object]:
        usual = {
            "zarr_format": 2,
            "shape": [6, 4],
            "chunks": [2, 3],
            "dtype": "<f8",
            "fill_value": "NaN",
            "order": "F",
            "filters": [{"id": "delta", "dtype": "<f8"}],
            "compressor": {"id": "zstd"},
        }
        return usual | {"filters": None} | changes

    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    consolidated = {
        "kind": "inline",
        "must_understand": False,
        "metadata": {"a": array(), "g": group, "g/b": array()},
    }
    zmetadata = {
        "zarr_consolidated_format": 1,
        "metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": v2()},
    }
    masked = {"mask_codecs": [{"name": "bytes"}], "data_codecs": [little]}
    optional = {
        "data_type": {"name": "zarrs.optional", "configuration": {"name": "int32", "configuration": {}}},
        "codecs": [{"name": "zarrs.optional", "configuration": masked}],
        "fill_value": None,
    }
    dump = lambda value: json.dumps(value).encode()  # noqa: E731
    return [
        *(
            (0, dump(array())),
            (0, dump(array()) + b"\0" + NUMBERS.tobytes()[:12]),
            (0, dump(array(chunk_grid=rectilinear))),
        ),
        *(
            (0, dump(array(codecs=[sharding]))),
            (0, dump(array(data_type="string", fill_value="é", codecs=[{"name": "vlen-utf8"}]))),
        ),
        *(
            (0, dump(array(data_type="complex64", fill_value=["NaN", "0x7fc00000"]))),
            (0, dump(array(**optional))),
        ),
        *((0, dump(group)), (0, dump(group | {"consolidated_metadata": consolidated}))),
        *(
            (1, dump(v2())),
            (1, dump(v2(dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value="")) + b'\0{"a": 1}'),
        ),
        *(
            (1, dump(v2(dtype="<M8[10ns]", fill_value=0))),
            (1, dump(v2(dtype="|S5", fill_value="AAAAAAA="))),
            (1, dump(v2(dtype="<U3", fill_value="a"))),
        ),
        (2, dump({"zarr_format": 2}) + b"\0" + dump(zmetadata)),
    ]


def main(folder: Path) -> None:
    """Write all seeds."""
    targets = {
        "chunk": chunks,
        "blosc": bloscs,
        "frames": frames,
        "shard": shards,
        "vlen": strings,
        "filter": filtered,
        "optional": optionals,
        "metadata": documents,
    }
    for target, seeds in targets.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for at, (number, data) in enumerate(seeds()):
            (folder / target / f"seed-{at}").write_bytes(bytes([number]) + bytes(data))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
