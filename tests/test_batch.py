"""`read_many`: one batch of many selections fetches and decodes every chunk once."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

import handwritten
import zarrow
from canary import Canary, layouts
from oracle.selections import random_one

SHAPE = (60, 50, 40)
VALUES = np.random.default_rng(3).integers(0, 2**16, SHAPE, dtype=np.uint16)
STORES = {
    "raw": {"compressors": None, "chunks": (16, 16, 16)},
    "zstd": {"compressors": ZstdCodec(), "chunks": (16, 16, 16)},
    "blosc": {"compressors": BloscCodec(), "chunks": (60, 5, 40)},
    "sharded": {"compressors": ZstdCodec(), "chunks": (8, 8, 8), "shards": (32, 32, 32)},
    "one shard": {"compressors": None, "chunks": (10, 10, 10), "shards": SHAPE},
}


@pytest.fixture(scope="module", params=STORES)
def array(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("batch")
    zarr.create_array(folder, shape=SHAPE, dtype="u2", fill_value=9, **STORES[request.param])[:] = VALUES
    return zarrow.open(folder)


def crops(count, extents, seed=0):
    rng = random.Random(seed)
    for _ in range(count):
        corner = [rng.randint(0, length - extent) for length, extent in zip(SHAPE, extents, strict=True)]
        yield tuple(slice(at, at + extent) for at, extent in zip(corner, extents, strict=True))


def test_overlapping_crops(array):
    chosen = list(crops(40, (17, 20, 9)))
    batch = zarrow.read_many([(array, crop) for crop in chosen])
    assert isinstance(batch, zarrow.Tensor) and batch.shape == (40, 17, 20, 9) and not batch.readonly
    np.testing.assert_array_equal(batch.numpy(), np.stack([VALUES[crop] for crop in chosen]))


def test_shuffled_rows(array):
    rows = random.Random(1).choices(range(-60, 60), k=200)
    batch = zarrow.read_many([(array, row) for row in rows])
    np.testing.assert_array_equal(batch.numpy(), VALUES[rows])


def test_any_selections(array):
    rng = random.Random(2)
    for _ in range(20):
        chosen = [random_one(rng, SHAPE) for _ in range(rng.randint(1, 9))]
        ragged = zarrow.read_many([(array, selection) for selection in chosen])
        for tensor, selection in zip(ragged, chosen, strict=True):
            expected = VALUES[(*selection, ...)] if ... not in selection else VALUES[selection]
            np.testing.assert_array_equal(np.asarray(tensor), expected)


def test_into_memory_of_the_callers(array):
    chosen = list(crops(5, (17, 20, 9), seed=5))
    expected = np.stack([VALUES[crop] for crop in chosen])
    for layout in list(layouts(4).values())[::3]:
        canary = Canary(expected.shape, np.uint16, **layout)
        assert zarrow.read_many([(array, crop) for crop in chosen], out=canary.out) is canary.out
        np.testing.assert_array_equal(canary.out, expected)
        assert canary.is_intact()


def test_single_elements(array):
    points = [(5, 6, 7), (59, 49, 39), (-60, 0, 1)]
    batch = zarrow.read_many([(array, point) for point in points])
    assert batch.tolist() == [VALUES[point] for point in points]


def test_no_items(array):
    assert zarrow.read_many([]) == []
    out = object()
    assert zarrow.read_many([], out=out) is out
    assert zarrow.read_many([(array, np.s_[3:3])]).shape == (1, 0, 50, 40)
    assert [empty.shape for empty in zarrow.read_many([(array, np.s_[3:3]), (array, 0)])] == [
        (0, 50, 40),
        (50, 40),
    ]


def bytes_read(work):
    """Return the number of bytes that the process read from files, and the result."""

    def total():
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["rchar"])

    total()
    before = total()
    result = work()
    read = total() - before
    start = total()
    return result, read - (total() - start)


@pytest.mark.parametrize("store", ["zstd", "blosc", "sharded"])
def test_each_chunk_is_fetched_once(store, tmp_path):
    """Read one by one, the crops fetch shared chunks repeatedly."""
    zarr.create_array(tmp_path, shape=SHAPE, dtype="u2", **STORES[store])[:] = VALUES
    array = zarrow.open(tmp_path)
    chunks = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "zarr.json"]
    stored = sum(path.stat().st_size for path in chunks)
    items = [(array, np.s_[offset : offset + 50, offset : offset + 40, :]) for offset in range(10)]
    zarrow.read_many(items)
    batch, together = bytes_read(lambda: zarrow.read_many(items))
    _, apart = bytes_read(lambda: [array[selection] for _, selection in items])
    np.testing.assert_array_equal(batch.numpy(), np.stack([VALUES[selection] for _, selection in items]))
    # A read also requests a byte behind each chunk, and may read the index of a shard ahead of its chunks.
    assert 0.9 * stored < together <= 1.01 * stored + 8192, (together, stored)
    assert apart > 5 * together


def test_one_chunk_for_many_items(tmp_path):
    values = np.arange(1 << 20) % 251
    zarr.create_array(tmp_path, shape=(1 << 20,), chunks=(1 << 20,), dtype="u1", compressors=ZstdCodec())[
        :
    ] = values
    array, positions = zarrow.open(tmp_path), range(0, 1 << 20, 1 << 8)
    batch, read = bytes_read(lambda: zarrow.read_many([(array, position) for position in positions]))
    assert batch.tolist() == values[list(positions)].tolist()
    assert read <= (tmp_path / "c/0").stat().st_size + 4096


def test_several_arrays(tmp_path):
    group = zarr.open_group(tmp_path, mode="w")
    for number in range(4):
        group.create_array(str(number), shape=(20, 30), chunks=(7, 7), dtype="i4")[:] = (
            number * 1000 + np.tile(np.arange(30), (20, 1))
        )
    other = group.create_array("other", shape=(20, 30), chunks=(7, 7), dtype="f8", fill_value=0.5)
    arrays = [zarrow.open(tmp_path, str(number)) for number in range(4)]
    order = [3, 0, 0, 2, 1, 3]
    batch = zarrow.read_many([(arrays[number], np.s_[number : number + 3, ::-2]) for number in order])
    assert batch.shape == (6, 3, 15) and batch.dtype == np.int32
    assert batch.numpy()[:, 0, -1].tolist() == [number * 1000 + 1 for number in order]
    mixed = zarrow.read_many([(arrays[1], 0), (zarrow.open(tmp_path, "other"), 0)])
    assert [tensor.dtype for tensor in mixed] == [np.int32, np.float64]
    assert mixed[0].tolist() == list(range(1000, 1030)) and mixed[1].tolist() == [0.5] * 30
    assert other.fill_value == 0.5


def test_items_of_different_fill_values(tmp_path):
    group = zarr.open_group(tmp_path, mode="w")
    for fill in (1, 2):
        group.create_array(f"number {fill}", shape=(4,), chunks=(2,), dtype="i4", fill_value=fill)
        group.create_array(f"string {fill}", shape=(2,), chunks=(2,), dtype=str, fill_value=str(fill))
    items = {
        kind: [(zarrow.open(tmp_path, f"{kind} {fill}"), ...) for fill in (1, 2)]
        for kind in ("number", "string")
    }
    assert zarrow.read_many(items["number"]).tolist() == [[1] * 4, [2] * 4]
    assert [strings.tolist() for strings in zarrow.read_many(items["string"])] == [["1"] * 2, ["2"] * 2]


def test_strings(tmp_path):
    words = np.array([f"{number}" * (number % 7) for number in range(100)], dtype=object).reshape(10, 10)
    zarr.create_array(tmp_path, shape=(10, 10), chunks=(3, 4), dtype=str)[:] = words
    array = zarrow.open(tmp_path)
    rows = [3, -1, 3, 0]
    batch = zarrow.read_many([(array, (row, slice(None, None, -2))) for row in rows])
    assert isinstance(batch, zarrow.Variable) and batch.shape == (4, 5)
    assert batch.tolist() == words[rows][:, ::-2].tolist()
    ragged = zarrow.read_many([(array, 0), (array, np.s_[:2, :2])])
    assert [part.tolist() for part in ragged] == [words[0].tolist(), words[:2, :2].tolist()]


def test_masked(tmp_path):
    missing = np.array([False, True, False, False, True])
    handwritten.masked_tensor(tmp_path / "numbers", np.arange(5, dtype="i2"), missing)
    handwritten.masked_variable(tmp_path / "names", ["a", None, "c", "", None])
    numbers, names = zarrow.open(tmp_path / "numbers"), zarrow.open(tmp_path / "names")
    batch = zarrow.read_many([(numbers, np.s_[:3]), (numbers, np.s_[4:1:-1])])
    assert isinstance(batch, zarrow.MaskedTensor)
    assert batch.tolist() == [[0, None, 2], [None, 3, 2]]
    batch = zarrow.read_many([(names, np.s_[:3]), (names, np.s_[2:])])
    assert isinstance(batch, zarrow.MaskedVariable)
    assert batch.tolist() == [["a", None, "c"], ["c", "", None]]
    ragged = zarrow.read_many([(names, np.s_[1:3]), (numbers, np.s_[1:3])])
    assert [part.tolist() for part in ragged] == [[None, "c"], [None, 2]]


def test_the_first_error_stops_all(array, tmp_path):
    zarr.create_array(tmp_path, shape=(8, 8), chunks=(4, 4), dtype="u2", compressors=None)[:] = 1
    (tmp_path / "c/1/1").write_bytes(b"short")
    broken = zarrow.open(tmp_path)
    canary = Canary((3, 4), np.uint16)
    items = [(broken, np.s_[0, 4:]), (array, np.s_[0, 0, :4]), (broken, np.s_[4, 4:])]
    for out in (None, canary.out):
        with pytest.raises(zarrow.CodecError) as raised:
            zarrow.read_many(items, out=out)
        assert raised.value.chunk == (1, 1)
    assert canary.is_intact()
    assert zarrow.read_many(items[:2]).tolist() == [[1] * 4, VALUES[0, 0, :4].tolist()]


def test_invalid_batches_are_refused(array, tmp_path):
    zarr.create_array(tmp_path, shape=SHAPE, chunks=SHAPE, dtype="i2")
    other = zarrow.open(tmp_path)
    row = np.zeros((2, 50, 40), np.uint16)
    for items, out, error in [
        ([(array, 0), (array, 60)], None, IndexError),
        ([(array, 0), (array, [1, 60])], None, IndexError),
        ([(array, 0), (array, np.s_[0:1])], row, IndexError),
        ([(array, 0), (other, 0)], row, NotImplementedError),
        ([(array, 0)], row, ValueError),
        ([(array, 0)] * 3, row, ValueError),
        ([(array, 0)] * 2, row[0], ValueError),
        ([(array, 0)] * 2, row.astype("i2"), TypeError),
        ([1, array], None, TypeError),
        ([(1, 0)], None, TypeError),
        (5, None, TypeError),
    ]:
        with pytest.raises(error):
            zarrow.read_many(items, out=out)
    assert not row.any()
