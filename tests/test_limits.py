"""Limits set by a user, and the cache of decoded chunks."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrow


def written(folder: Path, **options: object) -> np.ndarray:
    """Write a square of numbers with zarr-python, and return it."""
    values = np.arange(64 * 64, dtype="int32").reshape(64, 64)
    array = zarr.create_array(folder, shape=values.shape, dtype=values.dtype, chunks=(16, 16), **options)  # type: ignore[arg-type]
    array[...] = values
    return values


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (zarrow.DecodeLimits(max_chunk_nbytes=16 * 16 * 4 - 1), zarrow.MetadataError),
        (zarrow.DecodeLimits(max_ndim=1), zarrow.MetadataError),
        (zarrow.DecodeLimits(max_metadata_nbytes=20), zarrow.MetadataError),
    ],
)
def test_metadata_beyond_a_limit_is_refused(tmp_path: Path, limits: zarrow.DecodeLimits, error: type) -> None:
    written(tmp_path / "a")
    with pytest.raises(error):
        zarrow.open(tmp_path / "a", limits=limits)


@pytest.mark.parametrize("version", [2, 3])
def test_large_attributes_are_refused_before_they_are_parsed(tmp_path: Path, version: int) -> None:
    zarrow.create_group(tmp_path / "a", zarr_format=version)
    attributes = json.dumps({"x": list(range(4_000_000))})
    if version == 2:
        (tmp_path / "a" / ".zattrs").write_text(attributes)
    else:
        # Consolidated metadata may be larger; the rest of the document may not.
        consolidated = '{"kind": "inline", "must_understand": false, "metadata": {}}'
        document = '{"zarr_format": 3, "node_type": "group", "attributes": %s, "consolidated_metadata": %s}'
        (tmp_path / "a" / "zarr.json").write_text(document % (attributes, consolidated))
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    with pytest.raises((zarrow.MetadataError, zarrow.LimitError)):
        zarrow.open(tmp_path / "a")
    # The document has 34 MB; parsed, it would take more than a gigabyte.
    assert memory("VmHWM") - before < 150_000_000
    assert len(
        zarrow.open(tmp_path / "a", limits=zarrow.DecodeLimits(max_metadata_nbytes=1 << 30)).attrs["x"]
    )


def memory(name: str) -> int:
    """Return the current or peak memory of this process, in bytes."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields[name].split()[0]) << 10


def test_nested_data_types_are_bounded(tmp_path: Path) -> None:
    structure = np.dtype([("a", "i1")])
    for _ in range(200):
        structure = np.dtype([("a", structure)])
    configuration: object = "int8"
    for _ in range(90):
        configuration = {"name": "optional", "configuration": configuration}
    for dtype in [
        "optional[" * 50_000,
        "optional[" * 50_000 + "int8" + "]" * 50_000,
        structure,
        configuration,
    ]:
        with pytest.raises((ValueError, TypeError, zarrow.ZarrowError)):
            zarrow.create_array(tmp_path / "a", shape=(2,), dtype=dtype)
    levels = 20
    array = zarrow.create_array(
        tmp_path / "b", shape=(2,), dtype="optional[" * levels + "int8" + "]" * levels
    )
    assert (array[:].mask == [True, True]).all()


def test_a_limit_that_is_just_met_does_no_harm(tmp_path: Path) -> None:
    values = written(tmp_path / "a")
    array = zarrow.open(tmp_path / "a", limits=zarrow.DecodeLimits(max_chunk_nbytes=16 * 16 * 4, max_ndim=2))
    assert np.array_equal(array[...], values)


def test_a_chunk_that_expands_too_much_is_refused(tmp_path: Path) -> None:
    array = zarr.create_array(
        tmp_path / "a", shape=(1 << 20,), dtype="uint8", chunks=(1 << 20,), fill_value=1
    )
    array[...] = 0
    with pytest.raises(zarrow.LimitError) as caught:
        zarrow.open(tmp_path / "a", limits=zarrow.DecodeLimits(max_ratio=100))[...]
    assert caught.value.chunk == (0,)
    assert not zarrow.open(tmp_path / "a")[...].numpy().any()


def test_strings_beyond_a_limit_are_refused(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "a", shape=(100,), dtype="string", chunks=(100,))
    array[...] = np.array(["x" * 1000] * 100, dtype=np.dtypes.StringDType())
    with pytest.raises(zarrow.LimitError):
        zarrow.open(tmp_path / "a", limits=zarrow.DecodeLimits(max_variable_nbytes=50_000))[...]


def written_at(folder: Path, seconds: float) -> None:
    """Set the time of all files into the past, and wait: the cache skips files that were just changed."""
    for path in folder.rglob("*"):
        os.utime(path, (seconds, seconds))
    time.sleep(0.05)


def bytes_read() -> int:
    """Return the number of bytes that this process has read from files."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


@pytest.mark.parametrize("shards", [None, (32, 32)])
def test_the_cache_decodes_a_chunk_once_and_sees_a_rewrite(
    tmp_path: Path, shards: tuple[int, int] | None
) -> None:
    values = written(tmp_path / "a", shards=shards)
    written_at(tmp_path / "a", time.time() - 60)
    array = zarrow.open(tmp_path / "a", cache_bytes=1 << 20)
    assert np.array_equal(array[3:40, 5:50], values[3:40, 5:50])
    before = bytes_read()
    for _ in range(20):
        assert np.array_equal(array[7:39, 6:49:3], values[7:39, 6:49:3])
    assert bytes_read() - before < 10_000, "the chunks came from the cache"

    written(tmp_path / "b", shards=shards)
    zarr.open_array(tmp_path / "b")[...] = -values
    for chunk in sorted((tmp_path / "b" / "c").rglob("*")):
        if chunk.is_file():
            place = tmp_path / "a" / chunk.relative_to(tmp_path / "b")
            shutil.copy(chunk, place.with_name("new"))
            place.with_name("new").replace(place)
    assert np.array_equal(array[3:40, 5:50], -values[3:40, 5:50])


@pytest.mark.parametrize("shards", [None, (32, 32)])
def test_the_cache_keeps_nothing_of_a_file_that_was_written_just_now(
    tmp_path: Path, shards: tuple[int, int] | None
) -> None:
    """The next file may have the same inode and, because clocks of file systems tick, the same time."""
    values = written(tmp_path / "a", shards=shards, compressors=None)
    array = zarrow.open(tmp_path / "a", cache_bytes=1 << 20)
    soon = time.time() + 60
    written_at(tmp_path / "a", soon)
    assert np.array_equal(array[...], values)
    written(tmp_path / "b", shards=shards, compressors=None)
    zarr.open_array(tmp_path / "b")[...] = -values
    for chunk in (tmp_path / "b" / "c").rglob("*"):
        if chunk.is_file():
            (tmp_path / "a" / chunk.relative_to(tmp_path / "b")).write_bytes(chunk.read_bytes())
    written_at(tmp_path / "a", soon)
    assert np.array_equal(array[...], -values)


def test_strings_of_a_shape_beyond_all_memory_are_refused_at_once() -> None:
    names = zarrow.empty((2**47,), dtype="string", chunks=2, store=zarrow.MemoryStore())
    with pytest.raises(zarrow.OutOfMemoryError):
        names[...]


def test_more_strings_than_a_read_takes_are_not_written(tmp_path: Path) -> None:
    """Before allocating: each element has a length of four bytes, also empty ones."""
    with pytest.raises(zarrow.LimitError, match="max_variable_nbytes"):
        zarrow.create_array(tmp_path / "many", data=["a", "b"], chunks=2**31)
    with pytest.raises(zarrow.NotFoundError):
        zarrow.open(tmp_path / "many")
    zarrow.create_array(tmp_path / "long", shape=2, dtype=str, chunks=2)
    narrow = zarrow.open(tmp_path / "long", mode="r+", limits=zarrow.DecodeLimits(max_variable_nbytes=100))
    with pytest.raises(zarrow.LimitError, match="the size of a chunk of strings"):
        narrow[...] = ["a" * 60, "b" * 60]
    narrow[...] = ["a" * 40, "b" * 40]
    assert narrow[0].tolist() == "a" * 40
