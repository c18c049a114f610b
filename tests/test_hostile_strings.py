"""Strings and bytes with false counts and lengths, and invalid text."""

import struct
from pathlib import Path

import pytest

from hostile.checks import check, check_all
from hostile.process import attempt
from hostile.stores import document, vlen, write

WRONG_STRINGS: dict[str, bytes] = {
    "empty": b"",
    "half a count": b"\2\0",
    "a count alone": struct.pack("<I", 2),
    "fewer than they say": vlen(b"one", count=2),
    "more than they say": vlen(b"one", b"two", b"three", count=2),
    "fewer than the metadata": vlen(b"one"),
    "more than the metadata": vlen(b"one", b"two", b"three"),
    "2^32 - 1 elements": vlen(b"one", b"two", count=2**32 - 1),
    "an element of 2^32 - 1": struct.pack("<II", 2, 2**32 - 1) + b"one" + struct.pack("<I", 3) + b"two",
    "an element of 2^31": vlen(b"one") + struct.pack("<I", 2**31),
    "an element too long by one": vlen(b"one", b"two", count=2)[:-1],
    "an element too short by one": vlen(b"one", b"two") + b"x",
    "cut in a length": vlen(b"one", b"two")[:-5],
}


@pytest.mark.parametrize("index", ["...", "slice(None, None, -1)", "1"])
@pytest.mark.parametrize(("data_type", "codec_name"), [("string", "vlen-utf8"), ("bytes", "vlen-bytes")])
def test_strings_that_are_wrong(data_type: str, codec_name: str, index: str, tmp_path: Path) -> None:
    metadata = document((2,), (2,), data_type, codecs=[{"name": codec_name}])
    kinds = ("corrupt", "wrong_size")
    check_all(tmp_path, metadata, WRONG_STRINGS.values(), *kinds, codec=codec_name, index=index)


# An invalid byte, a split character, half a surrogate pair, an overlong NUL.
NOT_UTF8 = [(b"\xff", b""), (b"\xc3", b"\xa9"), (b"\xed\xa0\x80", b""), (b"\xc0\x80", b"")]


@pytest.mark.parametrize("index", ["...", "slice(None, None, -1)", "slice(6, 19)", "slice(11, 2, -2)"])
def test_text_that_is_not_utf_8(index: str, tmp_path: Path) -> None:
    """The concatenated bytes may be valid text: each element must be valid alone."""
    good = vlen(b"one", "zwölf".encode(), b"three", b"")
    for elements in NOT_UTF8:
        bad = vlen(b"one", *elements, b"three")
        metadata = document((20,), (4,), "string", codecs=[{"name": "vlen-utf8"}])
        store = write(
            tmp_path / elements[0].hex(), metadata, {f"c/{at}": bad if at == 2 else good for at in range(5)}
        )
        outcome = attempt(store, "a", index=index)
        check(outcome, store, "CodecError", "corrupt", codec="vlen-utf8", chunk=[2])
