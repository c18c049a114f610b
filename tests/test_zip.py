"""Zip archives: read in place, with the same result as zipfile; damaged and hostile ones are refused."""

from __future__ import annotations

import json
import pickle
import random
import struct
import zipfile
import zlib

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

import zarrow

ELEMENTS = np.arange(60 * 44, dtype="u4").reshape(60, 44)


@pytest.fixture
def archive(tmp_path):
    """Make an archive of a group with an array of several chunks, and an array of strings."""

    def make(name="data.zip", method=zipfile.ZIP_STORED, below="", before=b"", comment=b"", zip64=False):
        group = zarrow.create_group(tmp_path / (name + ".folder"), attributes={"title": "rain"})
        for kind, shards in [("plain", None), ("sharded", (32, 24))]:
            chunks = (8, 6) if shards else (16, 12)
            group.create_array(kind, data=ELEMENTS, chunks=chunks, shards=shards, compressors=None)
        group["below/names"] = ["Oslo", "Rome", "Quito"]
        path = tmp_path / name
        path.write_bytes(before)
        with zipfile.ZipFile(path, "a" if before else "w", method) as file:
            for place in sorted((tmp_path / (name + ".folder")).rglob("*")):
                key = below + place.relative_to(tmp_path / (name + ".folder")).as_posix()
                if place.is_dir():
                    file.writestr(key + "/", b"")
                    continue
                with file.open(zipfile.ZipInfo(key) if zip64 else key, "w", force_zip64=zip64) as member:
                    member.write(place.read_bytes())
            file.comment = comment
        return path

    return make


def check(root):
    assert root.attrs["title"] == "rain" and root.read_only
    assert list(root) == ["below", "plain", "sharded"]
    for name in ("plain", "sharded"):
        array = root[name]
        np.testing.assert_array_equal(array[...].numpy(), ELEMENTS)
        np.testing.assert_array_equal(array[3:50:7, -5].numpy(), ELEMENTS[3:50:7, -5])
    assert root["below/names"][...].tolist() == ["Oslo", "Rome", "Quito"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"before": b"#!/bin/sh\nexit\n" * 99},
        {"comment": b"PK\x05\x06 is no end" * 100},
        {"zip64": True, "before": b"more"},
    ],
)
def test_an_archive_is_read_like_its_folder(archive, method, options):
    check(zarrow.open(archive(method=method, **options)))


def test_more_members_than_sixteen_bits_count(tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as file:
        for number in range(66_000):
            file.writestr(f"chunks/{number}", b"")
        file.writestr("zarr.json", json.dumps({"zarr_format": 3, "node_type": "group"}))
    assert list(zarrow.open(path)) == []


def test_a_folder_in_an_archive(archive):
    path = archive(below="deep/data.zarr/")
    for url in (
        f"zip://{path}::deep/data.zarr",
        f"ZIP://deep/data.zarr::{path}",
        f"zip://deep/data.zarr/::file://{path}",
    ):
        root = zarrow.open(url)
        check(root)
        assert root == zarrow.open(url) and root == zarrow.open(root.store)
        check(pickle.loads(pickle.dumps(root)))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(root["plain"]))[0].numpy(), ELEMENTS[0])
    check(zarrow.open(f"zip://{path}", "deep/data.zarr"))
    with pytest.raises(
        zarrow.NotFoundError, match=r"there is one in a folder: zarrow\.open\(.*, 'deep/data\.zarr'\)"
    ):
        zarrow.open(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_of_zarr_python(tmp_path):
    path = tmp_path / "data.zarr.zip"
    with ZipStore(path, mode="w") as store:
        root = zarr.create_group(store)
        array = root.create_array("plain", shape=(60, 44), chunks=(16, 12), dtype="u4")
        array[:] = 0
        # Each is a second member of its name: the last one counts.
        array[:] = ELEMENTS
        root.attrs["title"] = "rain"
    store = ZipStore(path, mode="r")
    for given in (path, str(path), store):
        root = zarrow.open(given)
        np.testing.assert_array_equal(root["plain"][...].numpy(), ELEMENTS)
        assert root.attrs["title"] == "rain"
    assert pickle.loads(pickle.dumps(root)) == root


def test_archives_are_not_written(archive, tmp_path):
    path = archive()
    before = path.read_bytes()
    root = zarrow.open(path)
    with pytest.raises(zarrow.ReadOnlyError):
        root["plain"][0] = 1
    with pytest.raises(zarrow.ReadOnlyError):
        root.attrs["title"] = "snow"
    for mode in ("w", "w-"):
        with pytest.raises(zarrow.ZarrowError):
            zarrow.open(path, mode=mode)
    check(zarrow.open(path, mode="a"))
    with pytest.raises(
        zarrow.UnsupportedError, match=r"shutil\.make_archive\('.*new', .zip., folder\)|make_archive"
    ):
        zarrow.create_group(tmp_path / "new.zip")
    assert path.read_bytes() == before and not (tmp_path / "new.zip").exists()


def test_stored_members_that_begin_on_a_page_are_mapped(tmp_path):
    elements = np.arange(1 << 17, dtype="u8")
    array = zarrow.create_array(tmp_path / "data", data=elements, chunks=elements.shape, compressors=None)
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("zarr.json", (tmp_path / "data" / "zarr.json").read_bytes())
        member = zipfile.ZipInfo("c/0")
        at = file.start_dir + 30 + len("c/0")
        missing = (-at - 4) % 4096
        member.extra = struct.pack("<HH", 0xFFFF, missing) + bytes(missing)
        file.writestr(member, (tmp_path / "data" / "c" / "0").read_bytes())
    tensor = zarrow.open(path).read(mmap=True)
    assert tensor.is_mapped
    np.testing.assert_array_equal(tensor.numpy(), elements)
    assert array.shape == tensor.shape


def test_an_archive_that_changes_is_an_error(archive):
    path = archive()
    array = zarrow.open(path)["plain"]
    array[0]
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(
        zarrow.ZarrowError, match="zip archive that has changed since it was opened here: open it again"
    ):
        array[0]
    # A replacement is another file: the opened one stays.
    other = archive("other.zip")
    array = zarrow.open(other)["plain"]
    archive("third.zip").replace(other)
    np.testing.assert_array_equal(array[...].numpy(), ELEMENTS)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_directory_matches_zipfile(tmp_path):
    """Random archives: names, order, duplicates, methods, extra fields, comments, and leading bytes."""
    chance = random.Random(5)
    letters = ["a", "b", "é", "雨", "a.b", "a-b", "Z", "_"]
    path = tmp_path / "random.zip"
    for _ in range(60):
        path.write_bytes(chance.randbytes(chance.choice([0, 0, 1, 5000])))
        with zipfile.ZipFile(path, "a") as file:
            for number in range(chance.randrange(12)):
                folder = "".join(f"{chance.choice(letters)}/" for _ in range(chance.randrange(3)))
                member = zipfile.ZipInfo(folder + "zarr.json")
                member.compress_type = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
                member.extra = b"" if chance.random() < 0.5 else struct.pack("<HH", 0x7777, 3) + b"abc"
                member.comment = chance.randbytes(chance.randrange(3))
                document = {"zarr_format": 3, "node_type": "group", "attributes": {"number": number}}
                with file.open(member, "w", force_zip64=chance.random() < 0.3) as target:
                    target.write(json.dumps(document).encode())
            file.comment = chance.randbytes(chance.choice([0, 0, 30, 65_535]))
        with zipfile.ZipFile(path) as file:
            for name in set(file.namelist()):
                expected = json.loads(file.read(name))["attributes"]
                group = zarrow.open(path, name.removesuffix("zarr.json"))
                assert dict(group.attrs) == expected
                inside = f"{group.path}/" if group.path else ""
                below = [other.removeprefix(inside) for other in file.namelist() if other.startswith(inside)]
                children = {other.split("/")[0] for other in below if other.count("/") == 1}
                assert set(group) == children


DOCUMENT = b'{"zarr_format": 3, "node_type": "group"}'


def handmade(name=b"zarr.json", body=DOCUMENT, **changes):
    """Make an archive of one member, by hand, with changes to its directory entry."""
    entry = {"flags": 0, "method": 0, "crc": zlib.crc32(body), "stored": len(body), "nbytes": len(body)}
    entry |= {"disk": 0, "header": 0, "extra": b"", "count": 1, "disks": 0, "copies": 1}
    entry |= changes
    method, flags, extra = entry["method"], entry["flags"], entry["extra"]
    sizes = (zlib.crc32(body), len(body), len(body))
    first = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, flags, method, 0, 0, *sizes, len(name), 0)
    first += name + body
    sizes = (entry["crc"], entry["stored"], entry["nbytes"])
    lengths = (len(name), len(extra), 0)
    directory = struct.pack("<4sHHHHHHIII", b"PK\x01\x02", 20, 20, flags, method, 0, 0, *sizes)
    directory += struct.pack("<HHHHHII", *lengths, entry["disk"], 0, 0, entry["header"]) + name + extra
    directory *= entry["copies"]
    counts = (entry["disks"], entry["disks"], entry["count"], entry["count"])
    return (
        first + directory + struct.pack("<4sHHHHIIH", b"PK\x05\x06", *counts, len(directory), len(first), 0)
    )


def zip64(*numbers):
    """Return the extra field with 64-bit numbers."""
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


def test_handmade_archives_are_read(tmp_path):
    (tmp_path / "a.zip").write_bytes(handmade())
    assert list(zarrow.open(tmp_path / "a.zip")) == []


@pytest.mark.parametrize(
    ("archive", "kind", "told"),
    [
        (handmade(b"../secret"), "bad_key", "secret"),
        (handmade(b"/etc/passwd"), "bad_key", "passwd"),
        (handmade(b"a\\..\\b"), "bad_key", "backslash"),
        (handmade(b"a\0b"), "bad_key", "NUL"),
        (handmade(b"a//b"), "bad_key", "empty"),
        (handmade(b"\xff\xfe", flags=1 << 11), "corrupt", "not valid UTF-8"),
        (handmade(flags=1), "unsupported", "is encrypted"),
        (handmade(method=12), "unsupported", "bzip2"),
        (handmade(method=93), "unsupported", "zstd"),
        (handmade(method=77), "unsupported", "method 77"),
        (handmade(disk=3), "unsupported", "several files"),
        (handmade(disks=2), "unsupported", "several files"),
        (handmade(count=2), "corrupt", "disagree on the number of entries"),
        (handmade(count=2, copies=2), "corrupt", "overlap"),
        (handmade(header=5), "corrupt", "overlaps the directory|not at the offset in the directory"),
        (handmade(nbytes=5), "corrupt", "two different sizes"),
        (handmade(stored=1 << 31, nbytes=1 << 31), "corrupt", "overlaps the directory"),
        (handmade(stored=0xFFFFFFFF), "corrupt", "ZIP64 is missing"),
        (handmade(stored=0xFFFFFFFF, extra=zip64(1 << 63)), "corrupt", "overlaps the directory"),
        (handmade(header=0xFFFFFFFF, extra=zip64(2**64 - 1)), "corrupt", "overlaps|offset is too large"),
        (handmade(nbytes=0xFFFFFFFF, extra=zip64(1 << 63), method=8), "limit", "deflated entry"),
        (handmade(crc=1), "checksum", "mismatch"),
        (b"", "corrupt", "no end of central directory"),
        (b"PK\x03\x04" + bytes(500), "corrupt", "no end of central directory"),
    ],
)  # fmt: skip
def test_a_hostile_archive_is_an_error(tmp_path, archive, kind, told):
    path = tmp_path / "a.zip"
    path.write_bytes(archive)
    with pytest.raises(zarrow.ZarrowError, match=told) as raised:
        zarrow.open(path)
    assert raised.value.kind == kind and raised.value.store == str(path)


def test_a_bomb_is_an_error(tmp_path):
    """A chunk of 64 bytes, as a member that inflates to 64 MiB."""
    path = tmp_path / "bomb.zip"
    zarrow.create_array(tmp_path / "data", data=np.arange(8.0), compressors=None)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zarr.json", (tmp_path / "data" / "zarr.json").read_bytes())
        file.writestr("c/0", bytes(64 << 20))
    with pytest.raises(zarrow.ZarrowError, match="67108864") as raised:
        zarrow.open(path)[...]
    assert raised.value.kind == "wrong_size"


def test_damaged_archives_give_the_stored_elements_or_an_error(archive, tmp_path):
    whole = archive(method=zipfile.ZIP_DEFLATED).read_bytes()
    path = tmp_path / "damaged.zip"
    chance = random.Random(3)
    refused = 0
    places = [*range(len(whole) - 200, len(whole)), *(chance.randrange(len(whole)) for _ in range(300))]
    for at in places:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << chance.randrange(8)
        refused += _is_refused(path, damaged)
    for length in (chance.randrange(len(whole)) for _ in range(100)):
        assert _is_refused(path, whole[:length])
    assert refused > 200


def _is_refused(path, archive):
    path.write_bytes(archive)
    try:
        root = zarrow.open(path)
        found = root["plain"][...].numpy()
    except zarrow.ZarrowError:
        return True
    # If a name is damaged, its chunk is missing and reads as zeros.
    assert ((found == ELEMENTS) | (found == 0)).all()
    return False
