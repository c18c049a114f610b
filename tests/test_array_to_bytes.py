"""Rare codecs from array to bytes: pcodec, and zarrs' codecs for strings."""

from pathlib import Path

import numpy as np
import pytest

import zarrow
from oracle.libraries import open_zarrs
from test_filters import BYTES, codec, same, v2, v3

# The squares of 0 to 23 modulo 97, encoded by PCodec() of numcodecs 0.17 with pcodec 1.1.
SQUARES = np.arange(24) ** 2 % 97
PCODEC = {
    "int16": ("70636f210300040604010817000000100000003c80002101c99062c0e800f3420a3ebe6fc8c8a8815900"),
    "int64": (
        "70636f210300040604010417000000100000000000000000003c0080002101c99062c0e800f3420a3ebe6fc8c8a8815900"
    ),
    "uint32": ("70636f210300040604010117000000100000000000380080002101c99062c0e800f3420a3ebe6fc8c8a8815900"),
    "float32": (
        "70636f2103000406040105170000020000f80b1000000000003c200000000000080080002101c99062c0e800f342"
        "0a3ebe6fc8c8a8815900"
    ),
    "float64": (
        "70636f210300040604010617000002000000000000ff0b100000000000000000003c400000000000000000001000"
        "80002101c99062c0e800f3420a3ebe6fc8c8a8815900"
    ),
}
# np.tile([7, 100000, 3], 100) as int32, with delta_spec "try_lookback".
LOOKBACK = (
    "70636f210300084b0401032b010020089c00001000000010f807000000001c0000f0ffffff01fd000000800040a6"
    "6100200000c0a5720000007806805000950a58500000"
)


@pytest.mark.parametrize("data_type", PCODEC)
def test_pcodec_as_numcodecs_writes_it(data_type: str, tmp_path: Path) -> None:
    values = SQUARES.astype(data_type).reshape(4, 6)
    pcodec = codec("numcodecs.pcodec", level=8)
    for number, codecs in enumerate(
        ([pcodec], [codec("numcodecs.delta"), pcodec], [pcodec, codec("zstd", level=1)])
    ):
        folder = v3(tmp_path / str(number), data_type, (4, 6), codecs)
        array = zarrow.open(folder)
        array[...] = values
        assert same(array[...].numpy(), values)
        assert same(array[1, ::2].numpy(), values[1, ::2])
        array[2, 3] = 5
        assert array[2, 2:5].numpy().tolist() == [values[2, 2], 5, values[2, 4]]
    folder = v3(tmp_path / "theirs", data_type, (4, 6), [pcodec])
    (folder / "c/0").mkdir(parents=True)
    (folder / "c/0/0").write_bytes(bytes.fromhex(PCODEC[data_type]))
    assert same(zarrow.open(folder)[...].numpy(), values)
    zarrow.open(folder)[...] = values
    assert (folder / "c/0/0").read_bytes().hex() == PCODEC[data_type]


def test_pcodec_in_version_2_and_files_with_false_claims(tmp_path: Path) -> None:
    folder = v2(
        tmp_path, "<i4", (300,), [], compressor={"id": "pcodec", "level": 8, "delta_spec": "try_lookback"}
    )
    chunk = bytes.fromhex(LOOKBACK)
    (folder / "0").write_bytes(chunk)
    values = np.tile(np.array([7, 100000, 3], "i4"), 100)
    assert same(zarrow.open(folder)[...].numpy(), values)
    zarrow.open(folder)[...] = values
    assert (folder / "0").read_bytes() == chunk
    # Too many numbers; a dictionary of 2**25 - 1 words; truncated; trailing bytes; no header.
    more = bytearray(chunk)
    more[10:13] = b"\xff\xff\xff"
    dictionary = chunk[:13] + b"\xf4\xff\xff\xff\x1f" + chunk[18:]
    for lie in (
        bytes(more),
        dictionary,
        chunk[:-1],
        chunk + b"\0",
        chunk[:20],
        b"",
        b"pco!",
        b"pco!\xff" + bytes(9),
    ):
        (folder / "0").write_bytes(lie)
        with pytest.raises(zarrow.CodecError):
            zarrow.open(folder)[...]
    for at in range(len(chunk)):
        for bit in range(at % 2, 8, 3):
            flipped = bytearray(chunk)
            flipped[at] ^= 1 << bit
            (folder / "0").write_bytes(flipped)
            try:
                zarrow.open(folder)[...]
            except (zarrow.CodecError, zarrow.LimitError) as error:
                assert "panicked" not in str(error), (at, bit)


WORDS = np.array([["", "a", "né"], ["日本語", "a", "a longer word"]])


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("index", ["uint32", "uint64"])
def test_vlen_of_zarrs(index: str, location: str, tmp_path: Path) -> None:
    vlen = codec(
        "zarrs.vlen",
        data_codecs=[{"name": "bytes"}, codec("zstd", level=1, checksum=False)],
        index_codecs=[BYTES, codec("zstd", level=1, checksum=False)],
        index_data_type=index,
        index_location=location,
    )
    ours = zarrow.open(v3(tmp_path / "ours", "string", (2, 3), [vlen], ""))
    ours[...] = WORDS
    assert ours[...].to_numpy().tolist() == WORDS.tolist()
    assert ours[1, ::2].to_numpy().tolist() == WORDS[1, ::2].tolist()
    theirs = open_zarrs(tmp_path / "ours")
    assert list(theirs[...].to_numpy().ravel()) == WORDS.ravel().tolist()
    ours[...] = np.array([["", "", ""], ["", "", "b"]])
    ours[1, 2] = ""
    assert ours[...].to_numpy().tolist() == [["", "", ""], ["", "", ""]]
    ours[...] = WORDS
    chunk = bytearray((tmp_path / "ours/c/0/0").read_bytes())
    for size in range(len(chunk)):
        (tmp_path / "ours/c/0/0").write_bytes(chunk[:size])
        with pytest.raises((zarrow.CodecError, zarrow.LimitError)):
            zarrow.open(tmp_path / "ours")[...]


def test_vlen_v2_of_zarrs(tmp_path: Path) -> None:
    ours = zarrow.open(v3(tmp_path, "string", (2, 3), [codec("zarrs.vlen_v2")], ""))
    ours[...] = WORDS
    assert ours[...].to_numpy().tolist() == WORDS.tolist()
    assert list(open_zarrs(tmp_path)[...].to_numpy().ravel()) == WORDS.ravel().tolist()


def test_offsets_that_run_backwards(tmp_path: Path) -> None:
    vlen = codec(
        "zarrs.vlen",
        data_codecs=[{"name": "bytes"}],
        index_codecs=[BYTES],
        index_data_type="uint32",
        index_location="start",
    )
    folder = v3(tmp_path, "string", (2,), [vlen], "")
    (folder / "c").mkdir()
    for offsets in ([0, 3, 2], [1, 2, 3], [0, 1, 4], [0, 1, 2**32 - 1]):
        chunk = (12).to_bytes(8, "little") + np.array(offsets, "<u4").tobytes() + b"abc"
        (folder / "c/0").write_bytes(chunk)
        with pytest.raises((zarrow.CodecError, zarrow.LimitError)):
            zarrow.open(folder)[...]
    (folder / "c/0").write_bytes((12).to_bytes(8, "little") + np.array([0, 1, 3], "<u4").tobytes() + b"abc")
    assert zarrow.open(folder)[...].to_numpy().tolist() == ["a", "bc"]
