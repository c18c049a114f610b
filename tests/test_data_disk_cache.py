"""The loader's cache of decoded chunks in files."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from stores_of_others import run_in_child
from test_data_loader import aged
from zarrow import data

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning"),
]

ROWS, COLUMNS, CHUNK = 640, 1024, 16
CHUNKS = ROWS // CHUNK
CHUNK_NBYTES = CHUNK * COLUMNS * 2
VALUES = np.random.default_rng(1).integers(0, 1000, (ROWS, COLUMNS)).astype("u2")


def stored(folder: Path, **options: Any) -> zarrow.Array:
    array = zarrow.create_array(folder / "a", data=VALUES, chunks=(CHUNK, COLUMNS), **options)
    aged(folder)
    return array


def check(loader: data.Loader, expected: Any = VALUES) -> data.Stats:
    """Read an epoch, and return its counts."""
    seen = 0
    for batch, numbers in loader:
        np.testing.assert_array_equal(batch, expected[numbers])
        seen += len(numbers)
    assert seen == len(expected)
    return loader.stats()


def files_of_this_process(folder: Path) -> list[int]:
    """Return the sizes of nameless files in a folder."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            name = str(descriptor.readlink())
            if name.startswith(f"{folder}/") and name.endswith(" (deleted)"):
                found.append(descriptor.stat().st_size)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("layout", ["chunks", "shards", "column-major", "version 2"])
@pytest.mark.parametrize("memory", [0, 5 * CHUNK_NBYTES])
def test_later_epochs_decode_nothing(tmp_path: Path, memory: int, layout: str) -> None:
    options: dict[str, Any] = {
        "chunks": {},
        "shards": {"shards": (4 * CHUNK, COLUMNS)},
        "column-major": {"order": "F"},
        "version 2": {"zarr_format": 2},
    }[layout]
    plan = data.Plan(stored(tmp_path, **options), 32, order="shuffle")
    cache = tmp_path / "cache"
    cache.mkdir()
    loader = data.Loader(
        plan, cache_nbytes=memory, disk_cache_nbytes=2 * VALUES.nbytes, disk_cache_folder=cache, numbers=True
    )
    check(loader)
    for _ in range(2):
        stats = check(loader)
        assert stats.cache_misses == 0
        assert 0 < stats.disk_cache_hits <= stats.cache_hits
        # Five chunks in memory do not help if forty are read in turn.
        assert stats.disk_cache_hits == stats.cache_hits or memory
        assert "from its files" in str(stats)
    assert list(cache.iterdir()) == []
    (size,) = files_of_this_process(cache)
    assert CHUNK_NBYTES < size <= 2 * VALUES.nbytes
    del loader, plan
    assert files_of_this_process(cache) == []


def test_a_small_file_keeps_a_part(tmp_path: Path) -> None:
    limit = 5 * CHUNK_NBYTES + 100
    plan = data.Plan(stored(tmp_path), 32)
    loader = data.Loader(plan, disk_cache_nbytes=limit, disk_cache_folder=tmp_path, numbers=True)
    for _ in range(3):
        stats = check(loader)
        assert stats.cache_misses > CHUNKS - 6
    assert max(files_of_this_process(tmp_path)) <= limit


def test_changed_chunks_are_decoded_again(tmp_path: Path) -> None:
    array = stored(tmp_path)
    loader = data.Loader(data.Plan(array, 32), disk_cache_nbytes=1 << 30, numbers=True)
    check(loader)
    array[100:140] = 7
    expected = VALUES.copy()
    expected[100:140] = 7
    check(loader, expected)
    aged(tmp_path)
    check(loader, expected)
    assert check(loader, expected).cache_misses == 0


def test_new_versions_of_all_chunks_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    array, expected = stored(tmp_path), VALUES
    loader = data.Loader(data.Plan(array, 32), disk_cache_nbytes=VALUES.nbytes, numbers=True)
    for _ in range(3):
        check(loader, expected)
        assert check(loader, expected).cache_misses == 0
        expected = expected + 1
        array[...] = expected
        aged(tmp_path)


def test_a_file_whose_time_was_set_back_is_decoded_again(tmp_path: Path) -> None:
    rows = np.zeros((4, 4096), "u1") + np.arange(1, 5, dtype="u1")[:, None]
    array = zarrow.create_array(tmp_path / "a.zarr", data=rows, chunks=(1, 4096))
    aged(tmp_path)
    loader = data.Loader(data.Plan(array, 4, order="sequential"), cache_nbytes=1 << 20)
    for _ in range(2):
        assert next(iter(loader))[:, 0].tolist() == [1, 2, 3, 4]
    first, last = tmp_path / "a.zarr" / "c" / "0" / "0", tmp_path / "a.zarr" / "c" / "3" / "0"
    before = first.stat()
    with first.open("r+b") as file:
        assert file.write(last.read_bytes()) == before.st_size
    os.utime(first, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert next(iter(loader))[:, 0].tolist() == [4, 2, 3, 4]


def test_several_arrays_share_the_limit(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "g")
    group.create_array("x", data=VALUES, chunks=(CHUNK, COLUMNS))
    group.create_array("y", data=VALUES[:, :9], chunks=(ROWS, 9))
    aged(tmp_path)
    loader = data.Loader(
        data.Plan({"x": group["x"], "y": group["y"]}, 64),
        disk_cache_nbytes=2 * VALUES.nbytes,
        disk_cache_folder=tmp_path,
    )
    for _ in range(2):
        for batch in loader:
            np.testing.assert_array_equal(batch["x"][:, :9], batch["y"])
    assert loader.stats().cache_misses == 0
    assert sum(files_of_this_process(tmp_path)) <= 2 * VALUES.nbytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"disk_cache_nbytes": -1}, "disk_cache_nbytes must not be negative, found -1"),
        ({"disk_cache_folder": "x"}, "disk_cache_folder needs disk_cache_nbytes"),
        ({"disk_cache_nbytes": "1 GiB"}, "disk_cache_nbytes is a number of bytes, found str"),
    ],
)
def test_wrong_limits_are_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        data.Loader(data.Plan(stored(tmp_path), 32), **arguments)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(zarrow.errors.StoreError, match="No such file"):
        data.Loader(data.Plan(stored(tmp_path), 32), disk_cache_nbytes=1, disk_cache_folder=tmp_path / "none")


def test_a_full_disk_only_costs_time(tmp_path: Path) -> None:
    """A limit of the size of files stands for the end of the disk."""
    stored(tmp_path)
    program = f"""
        import resource, sys
        import numpy as np, zarrow
        from zarrow import data
        array = zarrow.open_array({str(tmp_path / "a")!r})
        loader = data.Loader(data.Plan(array, 32), disk_cache_nbytes=1 << 30, numbers=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({10 * CHUNK_NBYTES + 100},) * 2)
        values = np.asarray(array[...])
        for epoch in range(3):
            for batch, numbers in loader:
                assert (batch == values[numbers]).all()
        stats = loader.stats()
        print(stats.cache_hits, stats.cache_misses)
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    hits, misses = map(int, done.stdout.split())
    # A chunk may be read in two parts.
    assert 10 <= hits <= 20 and misses >= CHUNKS - 10


def test_forked_children_decode_for_themselves(tmp_path: Path) -> None:
    loader = data.Loader(
        data.Plan(stored(tmp_path), 32), disk_cache_nbytes=1 << 30, disk_cache_folder=tmp_path, numbers=True
    )
    check(loader)

    def in_child() -> None:
        for _ in range(2):
            stats = check(loader)
            assert stats.disk_cache_hits == 0

    for _ in range(3):
        assert run_in_child("fork", in_child) is None
        assert check(loader).cache_misses == 0
