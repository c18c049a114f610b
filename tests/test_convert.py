"""Converting stores from version 2 to version 3 in place: `zarrow.checks.convert`, and the command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.metadata.migrate_v3 import migrate_v2_to_v3

import zarrow
from zarrow.checks import convert, diff, verify

COMMAND = Path(sys.executable).with_name("zarrow")

NUMBERS = np.arange(24).reshape(4, 6)

ARRAYS: dict[str, dict[str, Any]] = {
    "numbers": {"dtype": "<f8"},
    "big": {"dtype": ">i4"},
    "columns": {"dtype": "i2", "order": "F"},
    "nan": {"dtype": "f4", "fill_value": np.nan},
    "boolean": {"dtype": "?", "fill_value": True},
    "complex": {"dtype": "c16", "fill_value": 1 + 2j},
    "bytes": {"dtype": "S5", "fill_value": b"ab"},
    "words": {"dtype": "U5", "fill_value": "x"},
    "times": {"dtype": "M8[ns]"},
    "durations": {"dtype": "m8[s]"},
    "records": {"dtype": [("a", "i4"), ("b", "f8")]},
    "slashes": {"dtype": "i4", "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "blosc": {"dtype": "i4", "compressors": numcodecs.Blosc()},
    "zlib": {"dtype": "i4", "compressors": numcodecs.Zlib()},
    "gzip": {"dtype": "i4", "compressors": numcodecs.GZip()},
    "zstd": {"dtype": "i4", "compressors": numcodecs.Zstd(level=7, checksum=True)},
    "lz4": {"dtype": "i4", "compressors": numcodecs.LZ4()},
    "bz2": {"dtype": "i4", "compressors": numcodecs.BZ2()},
    "lzma": {"dtype": "i4", "compressors": numcodecs.LZMA()},
    "raw": {"dtype": "i4", "compressors": None},
    "delta": {"dtype": "i4", "filters": [numcodecs.Delta(dtype="i4")]},
    "delta of columns": {"dtype": "i4", "order": "F", "filters": [numcodecs.Delta(dtype="i4")]},
    "scaled": {
        "dtype": "f4",
        "filters": [numcodecs.FixedScaleOffset(offset=1, scale=10, dtype="f4", astype="i2")],
    },
    "packed": {"dtype": "?", "filters": [numcodecs.PackBits()]},
    "shortened": {"dtype": "f8", "filters": [numcodecs.AsType("f4", "f8")]},
    # zarr-python does not migrate these.
    "text": {"dtype": str},
    "undefined": {"dtype": "f4", "fill_value": None},
    "shuffled": {"dtype": "i4", "filters": [numcodecs.Shuffle(4)]},
}

REFUSED_BY_ZARR_PYTHON = ("text", "undefined", "shuffled")


def chunk_files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return contents and inodes of all files but documents."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "zarr.json" and path.name[0] != "."
    }


def documents(folder: Path, *names: str) -> list[Path]:
    """Return the documents of these names."""
    return sorted(path for path in folder.rglob("*") if path.name in names)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.filterwarnings("ignore:Missing 'endian':UserWarning")
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_those_of_zarr_migrate(tmp_path: Path, name: str) -> None:
    """The converted array has the metadata of `zarr migrate v3`, and zarr-python reads equal elements."""
    options = ARRAYS[name]
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(4, 6), chunks=(2, 4), zarr_format=2, attributes={"units": "K"}, **options
    )
    dtype = array.dtype
    values = NUMBERS.astype("i8").astype(dtype) if dtype.names is None else np.ones((4, 6), dtype)
    array[:, :4] = values[:, :4]
    before = array[...]
    stored = chunk_files(tmp_path / "a.zarr")
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "migrated.zarr")
    done = convert(tmp_path / "a.zarr", remove_v2=True)
    assert (done.written, done.refused) == ([""], {})
    assert chunk_files(tmp_path / "a.zarr") == stored
    assert documents(tmp_path / "a.zarr", ".zarray", ".zattrs", ".zgroup") == []
    ours = zarr.open_array(tmp_path / "a.zarr", mode="r")
    assert ours.metadata.zarr_format == 3
    if name != "undefined":
        np.testing.assert_array_equal(ours[...], before)
    else:
        np.testing.assert_array_equal(ours[:, :4], before[:, :4])
    assert list(diff(tmp_path / "a.zarr", tmp_path / "migrated.zarr")) == []
    if name not in REFUSED_BY_ZARR_PYTHON:
        migrate_v2_to_v3(input_store=zarr.storage.LocalStore(tmp_path / "migrated.zarr"))
        for document in documents(tmp_path / "migrated.zarr", ".zarray", ".zattrs"):
            document.unlink()
        migrated = zarr.open_array(tmp_path / "migrated.zarr", mode="r")
        np.testing.assert_array_equal(np.array(ours.fill_value, dtype), np.array(migrated.fill_value, dtype))
        mine, theirs = ({**each.metadata.to_dict(), "fill_value": None} for each in (ours, migrated))
        for codec in theirs["codecs"]:
            if codec["name"] == "zstd":
                # The metadata of numcodecs lack this parameter; zarrow writes checksums then.
                codec["configuration"]["checksum"] = True
        assert mine == theirs


def hierarchy(folder: Path, *, consolidated: bool) -> None:
    """Create groups and arrays of version 2."""
    root = zarrow.create_group(folder, zarr_format=2, attributes={"title": "rain"})
    root.create_group("model", attributes={"level": 1}).create_array("x", data=NUMBERS, chunks=2)
    root.create_array("model/deep/y", data=NUMBERS.astype("f4"), chunks=3)
    root.create_array("z", data=np.float64(1))
    if consolidated:
        zarrow.consolidate_metadata(folder)


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.parametrize("consolidated", [False, True])
def test_after_a_kill_at_any_point_it_opens_and_goes_on(tmp_path: Path, consolidated: bool) -> None:
    """At each point the store opens as one version with all elements, here and in zarr-python."""
    original = tmp_path / "original.zarr"
    hierarchy(original, consolidated=consolidated)
    point = 0
    while True:
        folder = tmp_path / f"{point}.zarr"
        shutil.copytree(original, folder)
        stored = chunk_files(folder)

        def stop(done: int, _: int, point: int = point) -> None:
            if done > point:
                raise KeyboardInterrupt

        try:
            convert(folder, remove_v2=True, progress=stop)
            is_whole = True
        except KeyboardInterrupt:
            is_whole = False
        assert list(diff(folder, original)) == []
        opened = zarr.open_group(folder, mode="r")
        names = sorted(name for name, _ in opened.members(max_depth=None))
        assert names == ["model", "model/deep", "model/deep/y", "model/x", "z"]
        np.testing.assert_array_equal(opened["model/x"][...], NUMBERS)
        assert opened["model"].attrs["level"] == 1
        done = convert(folder, remove_v2=True)
        assert done.is_complete
        assert documents(folder, ".zarray", ".zgroup", ".zattrs", ".zmetadata") == []
        assert len(documents(folder, "zarr.json")) == 6
        assert chunk_files(folder) == stored
        assert list(diff(folder, original)) == []
        assert verify(folder).foreign == []
        assert zarrow.open_group(folder)._is_consolidated() == consolidated
        assert str(convert(folder, remove_v2=True)).startswith("0 nodes converted, 6 were already")
        if is_whole:
            break
        point += 1
    assert point > 10


def test_what_cannot_be_converted_changes_nothing(tmp_path: Path) -> None:
    hierarchy(tmp_path / "a.zarr", consolidated=False)
    document = tmp_path / "a.zarr" / "model" / "x" / ".zarray"
    text = document.read_text(encoding="utf-8")
    document.write_text(
        text.replace('"compressor": {', '"compressor": {"id": "own", "was": 1}, "x": {'), "utf-8"
    )
    done = convert(tmp_path / "a.zarr")
    assert list(done.refused) == ["model/x"]
    assert "own" in done.refused["model/x"]
    assert documents(tmp_path / "a.zarr", "zarr.json") == []
    document.write_text(text, encoding="utf-8")
    stale = {"zarr_format": 3, "node_type": "group", "attributes": {"newer": True}}
    path = tmp_path / "a.zarr" / "model" / "zarr.json"
    path.write_text(json.dumps(stale), encoding="utf-8")
    done = convert(tmp_path / "a.zarr")
    assert "remove the stale one" in done.refused["model"]
    assert json.loads(path.read_text(encoding="utf-8")) == stale
    path.unlink()
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr" / "old")
    zarrow.create_group(tmp_path / "b.zarr")
    assert "old" in convert(tmp_path / "b.zarr").refused
    assert convert(tmp_path / "b.zarr" / "old", remove_v2=True).is_complete
    assert str(convert(tmp_path / "b.zarr")).startswith("0 nodes converted, 7 were already")
    below = convert(tmp_path / "a.zarr" / "model", remove_v2=True)
    assert "has version 2 and would lose it" in below.refused[""]
    assert documents(tmp_path / "a.zarr", "zarr.json") == []


def test_nodes_of_version_3_stay(tmp_path: Path) -> None:
    hierarchy(tmp_path / "a.zarr", consolidated=True)
    other = zarrow.create_array(tmp_path / "other.zarr", data=[1, 2])
    shutil.copytree(tmp_path / "other.zarr", tmp_path / "a.zarr" / "model" / "new")
    done = convert(tmp_path / "a.zarr", remove_v2=True)
    assert (len(done.written), done.unchanged, done.refused) == (6, ["model/new"], {})
    root = zarrow.open_group(tmp_path / "a.zarr")
    assert root._is_consolidated()
    assert list(diff(root["model/new"], other)) == []


def test_stores_of_xarray_keep_names_and_missing_elements(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset({"rain": (("day", "x"), [[1.0, np.nan], [3.0, 4.0]]), "n": ("x", [1, 2])})
    data["n"].encoding["_FillValue"] = 2
    data["day"] = ("day", np.array(["2020-01-01", "2020-01-02"], "M8[ns]"))
    data.to_zarr(tmp_path / "a.zarr", zarr_format=2, consolidated=True)
    before = xarray.open_zarr(tmp_path / "a.zarr").load()
    assert convert(tmp_path / "a.zarr", remove_v2=True).is_complete
    after = xarray.open_zarr(tmp_path / "a.zarr").load()
    xarray.testing.assert_identical(before, after)


def test_the_command_reports_by_status_and_json(tmp_path: Path) -> None:
    hierarchy(tmp_path / "a.zarr", consolidated=True)

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, "convert", *map(str, arguments)], capture_output=True, text=True, timeout=100
        )

    planned = command(tmp_path / "a.zarr", "--dry-run", "--json")
    assert json.loads(planned.stdout)["written"] == [
        "z",
        "model/x",
        "model/deep/y",
        "model/deep",
        "model",
        "",
    ]
    assert documents(tmp_path / "a.zarr", "zarr.json") == []
    ended = command(tmp_path / "a.zarr")
    assert (ended.returncode, ended.stdout) == (
        0,
        "6 nodes converted, 0 were already version 3, 0 keys of version 2 removed\n",
    )
    (tmp_path / "a.zarr" / "z" / "zarr.json").write_text("{", encoding="utf-8")
    assert command(tmp_path / "a.zarr", "--remove-v2").returncode == 1


@pytest.mark.parametrize("is_url", [False, True])
def test_links_out_of_a_store_are_refused(tmp_path: Path, is_url: bool) -> None:
    for name in ("other.zarr", "a.zarr"):
        zarrow.create_array(tmp_path / name, "x", data=[1, 2], zarr_format=2)
    (tmp_path / "a.zarr" / "linked").symlink_to("../other.zarr")
    (tmp_path / "a.zarr" / "own").symlink_to("x")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store = (tmp_path / "a.zarr").as_uri() if is_url else tmp_path / "a.zarr"
    refused = convert(store, remove_v2=True).refused
    assert list(refused) == ["linked", "linked/x"]
    assert str(tmp_path / "other.zarr") in refused["linked"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (tmp_path / "a.zarr" / "linked").unlink()
    (tmp_path / "link").symlink_to("a.zarr")
    # The argument itself may be a link.
    assert convert(tmp_path / "link", remove_v2=True).is_complete
    assert zarrow.open(tmp_path / "a.zarr")["own"].zarr_format == 3
