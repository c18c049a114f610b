"""A run of elements of a Blosc chunk, decompressed up to the run's end, equals the same part of the chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow

SIZE = 5_000


def stored(folder: Path, dtype: str, size: int = SIZE, **options: Any) -> tuple[Any, Any]:
    """Store numbers that compress partly, in one chunk."""
    values = (np.arange(size) // 3 + np.random.default_rng(size).integers(0, 3, size)).astype(dtype)
    codec = {"name": "blosc", "configuration": {"clevel": 5, "blocksize": 0, **options}}
    array = zarrow.create_array(folder, data=values, chunks=(size,), compressors=[codec], overwrite=True)
    return zarrow.open(folder) if array is None else array, values


@pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zlib", "zstd"])
def test_runs_are_parts_of_the_chunk(tmp_path: Path, cname: str, shuffle: str) -> None:
    for dtype in ("u1", "u2", "f4", "i8", "c16"):
        for blocksize in (0, 1 << 12):
            for size in (SIZE, 4_099):
                itemsize = np.dtype(dtype).itemsize
                array, values = stored(
                    tmp_path / "a",
                    dtype,
                    size,
                    cname=cname,
                    shuffle=shuffle,
                    typesize=itemsize,
                    blocksize=blocksize,
                )
                for start, stop in ((0, 1), (0, 700), (699, 1_500), (1, size - 1), (size - 7, size)):
                    assert np.array_equal(array[start:stop], values[start:stop]), (dtype, start, stop)


def test_damage_before_the_end_of_a_run_is_an_error(tmp_path: Path) -> None:
    array, values = stored(tmp_path / "a", "f4", cname="lz4", shuffle="shuffle", typesize=4)
    chunk = next(path for path in (tmp_path / "a").rglob("*") if path.name == "0")
    whole = chunk.read_bytes()
    found = set()
    for at in range(16, len(whole), len(whole) // 40):
        chunk.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        try:
            found.add(np.array_equal(zarrow.open(tmp_path / "a")[:4_999], values[:4_999]))
        except zarrow.CodecError:
            found.add("an error")
    assert "an error" in found
    chunk.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(zarrow.CodecError):
        array[10:20]
