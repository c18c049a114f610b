"""Mending stores: `zarrow.checks.repair`, and the command."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow.checks import repair, verify
from zarrow.errors import NotFoundError

pytestmark = pytest.mark.small_files

COMMAND = Path(sys.executable).with_name("zarrow")

VALUES = np.arange(1, 97.0).reshape(8, 12)

LAYOUTS: dict[str, dict[str, Any]] = {
    "default": {},
    "shards": {"shards": (4, 6)},
    "dots": {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}},
    "v2 keys": {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}},
    "version 2": {"zarr_format": 2},
}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100)


def chunk_files(folder: Path) -> list[Path]:
    """Return the files of chunks, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] not in ".z")


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plant(rng: random.Random, path: Path) -> None:
    """Change a bit of a file, or cut it."""
    bad = bytearray(path.read_bytes())
    if rng.randrange(3) == 0:
        del bad[rng.randrange(len(bad)) :]
    else:
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
    path.write_bytes(bad)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_planted_faults_are_mended(tmp_path: Path, layout: str) -> None:
    """With a copy all elements return; without one, only those of corrupt chunks are lost."""
    rng = random.Random(layout)
    for name in ("a.zarr", "copy.zarr"):
        options = {"chunks": (2, 3), "attributes": {"units": "K"}, **LAYOUTS[layout]}
        zarrow.create_array(tmp_path / name, "m/x", data=VALUES, **options)
    node = tmp_path / "a.zarr" / "m" / "x"
    document = ".zarray" if layout == "version 2" else "zarr.json"
    for number in range(40):
        kind = ("chunk", "chunk", "chunk", "missing", "document", "lost document", "foreign")[number % 7]
        files = chunk_files(node)
        path = rng.choice(files)
        good = path.read_bytes()
        if kind == "chunk":
            plant(rng, path)
        elif kind == "missing":
            path.unlink()
        elif kind == "document":
            (node / document).write_bytes((node / document).read_bytes()[: rng.randrange(40)])
        elif kind == "lost document":
            (node / document).unlink()
        else:
            (node / f"notes {number}").touch()
        before = verify(tmp_path / "a.zarr", deep=True)
        if kind == "chunk":
            alone = repair(tmp_path / "a.zarr")
            assert [each.chunk for each in alone.mended] == [each.chunk for each in before.corrupt]
            assert alone.is_sound
            left = zarrow.open(tmp_path / "a.zarr")["m/x"][...].numpy()
            expected = VALUES.copy()
            for each in before.corrupt:
                assert each.chunk is not None
                expected[
                    tuple(slice(at * by, (at + 1) * by) for at, by in zip(each.chunk, (2, 3), strict=True))
                ] = 0
            np.testing.assert_array_equal(left, expected)
            path.write_bytes(good)
            plant(rng, path)
        unchanged = str(verify(tmp_path / "a.zarr"))
        planned = repair(
            tmp_path / "a.zarr", tmp_path / "copy.zarr", missing=True, foreign=True, dry_run=True
        )
        assert str(verify(tmp_path / "a.zarr")) == unchanged
        done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr", missing=True, foreign=True)
        assert done.mended == planned.mended
        assert (done.left, done.foreign) == ([], [])
        found = verify(tmp_path / "a.zarr", deep=True)
        assert (found.corrupt, found.missing, found.foreign, found.arrays) == ([], 0, [], 1)
        array = zarrow.open(tmp_path / "a.zarr")["m/x"]
        np.testing.assert_array_equal(array[...], VALUES)
        assert dict(array.attrs) == {"units": "K"}


def test_sound_inner_chunks_keep_their_bytes(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(2, 3), shards=(8, 12))
    path = tmp_path / "a.zarr" / "c" / "0" / "0"
    shard = bytearray(path.read_bytes())
    shard[5] ^= 255
    path.write_bytes(shard)
    (each,) = repair(tmp_path / "a.zarr").mended
    assert (each.chunk, each.action) == ((0, 0), "dropped")
    expected = VALUES.copy()
    expected[:2, :3] = 0
    np.testing.assert_array_equal(array[...], expected)
    kept = path.read_bytes()
    frame = shard.index(b"\x28\xb5\x2f\xfd", 10)
    assert bytes(shard[frame : frame + 40]) in kept


def test_whole_arrays_are_not_dropped_by_wrong_metadata(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(2, 3))
    document = tmp_path / "a.zarr" / "zarr.json"
    document.write_text(document.read_text(encoding="utf-8").replace("float64", "float32"), encoding="utf-8")
    before = {path: path.read_bytes() for path in chunk_files(tmp_path / "a.zarr")}
    (left,) = repair(tmp_path / "a.zarr").left
    assert "the metadata may be wrong" in left.reason
    assert before == {path: path.read_bytes() for path in chunk_files(tmp_path / "a.zarr")}
    assert repair(tmp_path / "a.zarr", drop_all=True).is_sound
    assert chunk_files(tmp_path / "a.zarr") == []


def test_sparse_shards_are_not_dropped_by_wrong_metadata(tmp_path: Path) -> None:
    """Missing inner chunks can be read with any codec, so they do not show that the metadata are right."""
    values = np.zeros((8, 12))
    values[0, 0] = values[4, 7] = 1
    array = zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 3), shards=(4, 6))
    document = tmp_path / "a.zarr" / "zarr.json"
    good = document.read_text(encoding="utf-8")
    wrong = json.loads(good)
    wrong["codecs"][0]["configuration"]["codecs"][-1] = {"name": "gzip", "configuration": {"level": 5}}
    document.write_text(json.dumps(wrong), encoding="utf-8")
    (left,) = repair(tmp_path / "a.zarr").left
    assert "the metadata may be wrong" in left.reason
    document.write_text(good, encoding="utf-8")
    np.testing.assert_array_equal(array[...], values)
    shard = tmp_path / "a.zarr" / "c" / "0" / "0"
    shard.write_bytes(b"?" + shard.read_bytes()[1:])
    assert [each.chunk for each in repair(tmp_path / "a.zarr").mended] == [(0, 0)]


def test_names_that_no_node_can_have_are_left(tmp_path: Path) -> None:
    for name in ("a.zarr", "copy.zarr"):
        zarrow.create_array(tmp_path / name, "x", data=VALUES)
    for name in ("a\\b", "__x", "x:y", "new\nline"):
        (tmp_path / "a.zarr" / "x" / name).mkdir()
    done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr", foreign=True)
    assert [(each.path, each.action) for each in done.left] == [("x/a\\b", "left")]
    assert sorted(each.path for each in done.mended) == ["x/__x", "x/new\nline", "x/x:y"]


def test_readable_attributes_of_version_2_stay(tmp_path: Path) -> None:
    for name, attributes in (("a.zarr", {"edited": 1}), ("copy.zarr", {"old": 1}), ("plain.zarr", {})):
        zarrow.create_array(tmp_path / name, "x", data=VALUES, zarr_format=2, attributes=attributes)
    for copy in ("copy.zarr", "plain.zarr"):
        (tmp_path / "a.zarr" / "x" / ".zarray").write_text("{", encoding="utf-8")
        assert repair(tmp_path / "a.zarr", tmp_path / copy).is_sound
        assert dict(zarrow.open(tmp_path / "a.zarr")["x"].attrs) == {"edited": 1}
    (tmp_path / "a.zarr" / "x" / ".zattrs").write_text("{", encoding="utf-8")
    assert repair(tmp_path / "a.zarr", tmp_path / "copy.zarr").is_sound
    assert dict(zarrow.open(tmp_path / "a.zarr")["x"].attrs) == {"old": 1}


@pytest.mark.parametrize("version", [2, 3])
def test_consolidated_copies_of_restored_nodes_are_renewed(tmp_path: Path, version: Any) -> None:
    for name, attributes in (("a.zarr", {}), ("copy.zarr", {"units": "K"})):
        root = zarrow.create_group(tmp_path / name, zarr_format=version)
        for path in ("m/x", "y"):
            root.create_array(path, data=VALUES, attributes=attributes)
    zarrow.consolidate_metadata(tmp_path / "a.zarr")
    document = "zarr.json" if version == 3 else ".zarray"
    (tmp_path / "a.zarr" / "m" / "x" / document).write_text("{", encoding="utf-8")
    assert repair(zarrow.open(tmp_path / "a.zarr", "m", mode="r+"), zarrow.open(tmp_path / "copy.zarr", "m"))
    assert dict(zarrow.open(tmp_path / "a.zarr")["m/x"].attrs) == {"units": "K"}
    for path in ("m/x", "y"):
        (tmp_path / "a.zarr" / path / document).write_text("{", encoding="utf-8")
    (tmp_path / "copy.zarr" / "y" / document).unlink()
    done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert "its consolidated metadata may be stale" in done.left[-1].reason


def test_chunks_outside_a_wrong_shape_are_not_erased(tmp_path: Path) -> None:
    for name, options in LAYOUTS.items():
        array = zarrow.create_array(tmp_path / name, data=VALUES, chunks=(2, 3), **options)
        document = tmp_path / name / (".zarray" if array.zarr_format == 2 else "zarr.json")
        good = document.read_text(encoding="utf-8")
        document.write_text(good.replace("12", "6", 1), encoding="utf-8")
        assert zarrow.open_array(tmp_path / name).shape == (8, 6)
        done = repair(tmp_path / name, foreign=True)
        assert (done.mended, bool(done.left)) == ([], True)
        document.write_text(good, encoding="utf-8")
        np.testing.assert_array_equal(zarrow.open_array(tmp_path / name)[...], VALUES)


def test_chunks_that_only_cannot_be_read_here_are_left(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(2, 3))
    path = tmp_path / "a.zarr" / "c" / "0" / "0"
    good = path.read_bytes()
    path.unlink()
    path.mkdir()
    (left,) = repair(tmp_path / "a.zarr").left
    assert (left.chunk, left.action) == ((0, 0), "left")
    path.rmdir()
    path.write_bytes(good)
    np.testing.assert_array_equal(array[...], VALUES)


def test_copies_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", "x", data=VALUES, chunks=(2, 3))
    path = tmp_path / "a.zarr" / "x" / "c" / "0" / "0"
    path.write_bytes(b"?")
    for copy, reason in (
        (VALUES[:4], "has shape (4, 12)"),
        (VALUES.astype("f4"), "type float32"),
        (None, "no such array"),
    ):
        zarrow.create_group(tmp_path / "copy.zarr", overwrite=True)
        if copy is not None:
            zarrow.create_array(tmp_path / "copy.zarr", "x", data=copy)
        (left,) = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr").left
        assert reason in left.reason
        assert path.read_bytes() == b"?"
    (tmp_path / "copy.zarr" / "x").mkdir()
    zarrow.create_array(tmp_path / "copy.zarr", "x", data=VALUES, chunks=(8, 12), overwrite=True)
    (tmp_path / "copy.zarr" / "x" / "c" / "0" / "0").write_bytes(b"?")
    (left,) = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr").left
    assert "the copy cannot be read there" in left.reason


def test_documents_of_other_layouts_are_not_restored(tmp_path: Path) -> None:
    options: dict[str, Any] = {"compressors": None, "chunks": (2, 3)}
    zarrow.create_array(tmp_path / "a.zarr", "x", data=VALUES.astype(">f8"), **options)
    zarrow.create_array(tmp_path / "copy.zarr", "x", data=VALUES.astype("<f8"), serializer="bytes", **options)
    document = tmp_path / "a.zarr" / "x" / "zarr.json"
    text = document.read_text(encoding="utf-8")
    same_order = '"endian": "little"' in text
    document.write_text("{", encoding="utf-8")
    done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert done.is_sound == same_order
    if not same_order:
        assert "its chunks differ from the copy's" in done.left[0].reason
        assert document.read_text(encoding="utf-8") == "{"


def test_a_lost_group_and_everything_below_it_are_mended(tmp_path: Path) -> None:
    for name in ("a.zarr", "copy.zarr"):
        root = zarrow.create_group(tmp_path / name)
        root.create_group("m", attributes={"title": "rain"}).create_array("x", data=VALUES, chunks=(2, 3))
        zarrow.consolidate_metadata(tmp_path / name)
    (tmp_path / "a.zarr" / "m" / "zarr.json").unlink()
    (tmp_path / "a.zarr" / "m" / "x" / "c" / "1" / "1").write_bytes(b"?")
    done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert [(each.path, each.action) for each in done.mended] == [("m", "restored"), ("m/x", "refilled")]
    root = zarrow.open_group(tmp_path / "a.zarr")
    assert dict(root["m"].attrs) == {"title": "rain"}
    np.testing.assert_array_equal(root["m/x"][...], VALUES)
    (tmp_path / "a.zarr" / "m" / "zarr.json").unlink()
    left, outdated = repair(tmp_path / "a.zarr", foreign=True).left
    assert "may have chunks or nodes" in left.reason
    assert outdated.reason.startswith("mend the other faults first: consolidated metadata")
    assert (tmp_path / "a.zarr" / "m" / "x" / "zarr.json").exists()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("lost", [False, True], ids=["broken", "lost"])
@pytest.mark.parametrize("is_array", [False, True], ids=["group", "array"])
def test_the_node_of_a_store_is_restored(tmp_path: Path, version: Any, lost: bool, is_array: bool) -> None:
    for name in ("a.zarr", "copy.zarr"):
        if is_array:
            zarrow.create_array(tmp_path / name, data=VALUES, chunks=(2, 3), zarr_format=version)
        else:
            root = zarrow.create_group(tmp_path / name, attributes={"title": "rain"}, zarr_format=version)
            root.create_array("x", data=VALUES, chunks=(2, 3))
    names = {2: ".zarray" if is_array else ".zgroup", 3: "zarr.json"}
    document = tmp_path / "a.zarr" / names[version]
    sound = document.read_bytes()
    if lost:
        document.unlink()
        with pytest.raises(NotFoundError):
            repair(tmp_path / "a.zarr")
    else:
        document.write_text("{")
        (found,) = verify(tmp_path / "a.zarr").corrupt
        assert (found.path, found.chunk, found.kind) == ("", None, "metadata")
        (left,) = repair(tmp_path / "a.zarr").left
        assert left.path == "" and left.reason.startswith("give a copy to restore it")
    broken = snapshot(tmp_path / "a.zarr")
    planned = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr", dry_run=True)
    assert snapshot(tmp_path / "a.zarr") == broken
    done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert [(each.path, each.action) for each in done.mended] == [("", "restored")]
    assert planned.mended == done.mended and done.is_sound
    assert document.read_bytes() == sound
    assert verify(tmp_path / "a.zarr", deep=True).is_sound


def test_no_store_becomes_a_copy(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "copy.zarr", VALUES)
    for name in ("none.zarr", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(NotFoundError):
            repair(tmp_path / name, tmp_path / "copy.zarr")
    assert not any((tmp_path / "empty").iterdir()) and not (tmp_path / "none.zarr").exists()
    other = zarrow.create_array(tmp_path / "a.zarr", data=VALUES + 1)
    (tmp_path / "a.zarr" / "zarr.json").unlink()
    (left,) = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr").left
    assert "its chunks differ from the copy's" in left.reason and other.shape == VALUES.shape


CODECS: dict[str, dict[str, Any]] = {
    "gzip": {"compressors": [{"name": "gzip", "configuration": {"level": 1}}]},
    "raw": {"compressors": None},
    "zstd": {},
    "checksums": {"compressors": [{"name": "crc32c"}]},
    "shards": {"shards": (4, 6)},
}


@pytest.mark.parametrize("lost", [False, True], ids=["broken", "lost"])
@pytest.mark.parametrize("of_copy", CODECS)
@pytest.mark.parametrize("own", CODECS)
def test_sound_chunks_are_not_read_through_the_document_of_other_codecs(
    tmp_path: Path, own: str, of_copy: str, lost: bool
) -> None:
    for path, values, codecs in ("a.zarr", VALUES, own), ("b.zarr", VALUES * 0 + 7, of_copy):
        for name in ("", "x"):
            zarrow.create_array(tmp_path / path / "g" / name, data=values, chunks=(2, 3), **CODECS[codecs])
    document = tmp_path / "a.zarr" / "g" / "zarr.json"
    sound = document.read_bytes()
    document.write_text("{")
    if lost:
        document.unlink()
    before = snapshot(tmp_path / "a.zarr" / "g")
    done = repair(tmp_path / "a.zarr" / "g", tmp_path / "b.zarr" / "g")
    assert not done.mended and len(done.left) == 1, done
    assert snapshot(tmp_path / "a.zarr" / "g") == before
    document.write_bytes(sound)
    np.testing.assert_array_equal(zarrow.load(tmp_path / "a.zarr" / "g"), VALUES)


def test_other_folders_do_not_become_copies(tmp_path: Path) -> None:
    zarrow.create_group(tmp_path / "empty.zarr", attributes={"title": "backup"})
    zarrow.create_group(tmp_path / "copy.zarr").create_array("x", data=VALUES)
    zarrow.create_array(tmp_path / "zeros.zarr", data=VALUES * 0)
    home = tmp_path / "home"
    (home / "letters").mkdir(parents=True)
    (home / "notes.txt").write_text("hi")
    for copy in ("empty.zarr", "copy.zarr", "zeros.zarr"):
        assert len(repair(home, tmp_path / copy).left) == 1
        assert sorted(snapshot(home)) == ["notes.txt"]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("path", ["", "m"])
def test_a_group_is_not_restored_above_members_of_another_version(
    tmp_path: Path, path: str, version: Any
) -> None:
    for name, zarr_format in ("a.zarr", version), ("copy.zarr", 5 - version):
        root = zarrow.create_group(tmp_path / name, zarr_format=zarr_format)
        group = root.create_group(path) if path else root
        group.create_array("x", data=VALUES)
    document = tmp_path / "a.zarr" / path / {2: ".zgroup", 3: "zarr.json"}[version]
    document.unlink()
    before = snapshot(tmp_path / "a.zarr")
    done = repair(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert not done.mended and len(done.left) == 1
    assert snapshot(tmp_path / "a.zarr") == before


def test_deeply_nested_attributes_are_replaced(tmp_path: Path) -> None:
    for name in ("a.zarr", "copy.zarr"):
        zarrow.create_group(tmp_path / name, zarr_format=2, attributes={"title": "rain"})
    (tmp_path / "a.zarr" / ".zattrs").write_bytes(b"[" * 1_000_000)
    assert repair(tmp_path / "a.zarr", tmp_path / "copy.zarr").is_sound
    assert dict(zarrow.open_group(tmp_path / "a.zarr").attrs) == {"title": "rain"}


def test_outdated_copies_beside_other_faults_are_named(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "a.zarr")
    group.create_array("x", data=VALUES)
    zarrow.consolidate_metadata(tmp_path / "a.zarr")
    root = tmp_path / "a.zarr" / "zarr.json"
    root.write_text(root.read_text().replace('"float64"', '"int64"'))
    (chunk,) = chunk_files(tmp_path / "a.zarr")
    chunk.write_bytes(b"?")
    left = {each.path: each.reason for each in repair(tmp_path / "a.zarr").left}
    assert "the metadata may be wrong" in left["x"]
    assert left[""].startswith("mend the other faults first: consolidated metadata of 'x' differ")
    done = repair(tmp_path / "a.zarr", drop_all=True)
    assert done.is_sound and [each.action for each in done.mended] == ["dropped", "consolidated"]


@pytest.mark.parametrize(
    "values",
    [
        np.ma.masked_array([1, 2, 3, 4], [False, True, False, False]),
        np.array(["a", "bb", "c", "d"], "T"),
        np.array(["2020", "NaT", "2021", "2022"], "M8[s]"),
        np.array([(1, 2.0)] * 4, "i4, f8"),
    ],
    ids=["optional", "text", "times", "structured"],
)
@pytest.mark.parametrize("version", [2, 3])
def test_every_type_is_dropped_and_refilled(tmp_path: Path, values: Any, version: Any) -> None:
    if (version == 2 and np.ma.isMaskedArray(values)) or (version == 3 and values.dtype.names):
        return
    for name in ("a.zarr", "copy.zarr"):
        zarrow.create_array(tmp_path / name, data=values, chunks=1, zarr_format=version)
    empty = zarrow.empty_like(zarrow.open_array(tmp_path / "a.zarr"))[:1].tolist()
    first = sorted(chunk_files(tmp_path / "a.zarr"))[0]
    first.write_bytes(b"?")
    assert repair(tmp_path / "a.zarr").mended[0].action == "dropped"
    assert zarrow.load(tmp_path / "a.zarr")[:1].tolist() == empty
    first.write_bytes(b"?")
    assert repair(tmp_path / "a.zarr", tmp_path / "copy.zarr").mended[0].action == "refilled"
    assert zarrow.load(tmp_path / "a.zarr").tolist() == zarrow.load(tmp_path / "copy.zarr").tolist()


def test_the_command_reports_by_status_and_json(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", "x", data=VALUES, chunks=(2, 3))
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "copy.zarr")
    assert json.loads(command("repair", tmp_path / "a.zarr", "--json").stdout)["mended"] == []
    path = tmp_path / "a.zarr" / "x" / "c" / "0" / "1"
    path.write_bytes(b"?")
    planned = command("repair", tmp_path / "a.zarr", "--dry-run")
    assert (planned.returncode, planned.stdout.splitlines()[0]) == (
        0, "1 faults would be mended, 0 left, 0 foreign keys",
    )  # fmt: skip
    assert path.read_bytes() == b"?"
    ended = command("repair", tmp_path / "a.zarr", "x", "--from", tmp_path / "copy.zarr", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["mended"][0]["action"] == "refilled"
    path.unlink()
    assert command("repair", tmp_path / "a.zarr", "--missing").returncode == 2
    os.truncate(tmp_path / "a.zarr" / "x" / "zarr.json", 5)
    ended = command("repair", tmp_path / "a.zarr")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "give a copy to restore it" in ended.stdout
