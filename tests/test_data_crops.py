"""Crops: their places, rows beside them, and their splits."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import zarrow
from test_data_plan import ORDERS, array, elements_of
from zarrow import data


@pytest.mark.parametrize("seed", range(30))
def test_random_crops_are_inside_and_follow_chunks(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(8, 40) for _ in range(rng.randint(1, 3)))
    chunks = tuple(rng.randint(3, extent) for extent in shape)
    crop = tuple(rng.randint(1, extent // 2) for extent in shape)
    within = tuple(slice(0, rng.randint(extent // 2, extent)) for extent in shape)
    source = data.Crops(array(shape, chunks), crop, 200, within=within)
    corners = source._at(np.arange(200), (seed, 0))
    last = [part.stop - extent for part, extent in zip(within, crop, strict=True)]
    assert (corners >= 0).all() and (corners <= last).all()
    cells = [tuple(cell) for cell in (corners // np.array(chunks)).tolist()]
    assert cells == sorted(cells)
    assert np.array_equal(source._at(np.array([7, 3]), (seed, 0)), corners[[7, 3]])
    assert max(last) < 3 or not np.array_equal(source._at(np.arange(200), (seed, 1)), corners)


def test_random_crops_are_uniform() -> None:
    source = data.Crops(array((13, 9), (5, 4)), (3, 2), 8800)
    corners = source._at(np.arange(8800), (0, 0))
    counts = np.zeros((11, 8))
    np.add.at(counts, tuple(corners.T), 1)
    # 100 on average; the largest chi-squared of 87 degrees of freedom in 10,000 draws is 145.
    assert ((counts - 100) ** 2 / 100).sum() < 145


def test_given_corners_keep_their_numbers() -> None:
    volume = array((20, 20), (5, 5))
    corners = np.random.default_rng(0).integers(0, 17, (50, 2))
    plan = data.Plan(
        {"a": data.Crops(volume, (4, 3), corners=corners), "b": data.Crops(volume, (1, 1), corners=corners)},
        5,
    )
    assert sorted(plan.numbers().tolist()) == list(range(50))
    places = np.arange(50)
    a, b = np.empty((50, 4, 3), "i4"), np.empty((50, 1, 1), "i4")
    plan.sources["a"]._read(places, a, (0, 0))
    plan.sources["b"]._read(places, b, (0, 0))
    at = corners[plan.numbers_at(places)]
    assert b[:, 0, 0].tolist() == a[:, 0, 0].tolist() == (at[:, 0] * 20 + at[:, 1]).tolist()
    odd = plan.where(np.arange(50) % 2 == 1)
    assert sorted(odd.numbers().tolist()) == list(range(1, 50, 2))
    with pytest.raises(ValueError, match="crop 1 at"):
        data.Crops(volume, (4, 3), corners=[(0, 0), (17, 0)])
    with pytest.raises(ValueError, match="same shape, count"):
        data.Plan({"a": data.Crops(volume, (4, 3), 5), "b": data.Crops(volume, (4, 3), 6)})


@pytest.mark.parametrize("seed", range(20))
def test_crops_at_corners_have_a_row_each(seed: int) -> None:
    """Numbers and text; in every order, split, shared among ranks, and chosen by number."""
    random = np.random.default_rng(seed)
    image, count = array((30, 25), (7, 8)), int(random.integers(1, 60))
    crop = random.integers(1, 12, 2)
    corners = np.stack([random.integers(0, 31 - crop[0], count), random.integers(0, 26 - crop[1], count)], 1)
    rows = array((count, int(random.integers(1, 300))), (int(random.integers(1, 9)), 50))
    text = zarrow.create_array(zarrow.MemoryStore(), data=[f"t{at}" for at in range(count)], chunks=4)
    sources: Any = {"rows": rows, "crop": data.Crops(image, crop.tolist(), corners=corners), "text": text}
    options: Any = {
        "order": ORDERS[seed % 3],
        "last": "pad",
        "window_nbytes": 1 << int(random.integers(4, 16)),
    }
    plan = data.Plan(sources, int(random.integers(1, 20)), **options)
    chosen = plan.where(random.random(count) < 0.7) if count > 8 else plan
    found: list[int] = []
    pixels, elements = image[...].numpy(), rows[...].numpy()
    for rank in range(min(2, len(chosen))):
        loader = data.Loader(chosen, rank=rank, world=min(2, len(chosen)), numbers=True)
        for batch, numbers in loader:
            for at, number in enumerate(numbers.tolist()):
                row, column = corners[number]
                assert np.array_equal(
                    batch["crop"][at], pixels[row : row + crop[0], column : column + crop[1]]
                )
                assert np.array_equal(batch["rows"][at], elements[number])
                assert batch["text"][at] == f"t{number}"
            found += numbers.tolist()
    assert set(found) == set(chosen.numbers().tolist())
    assert data.RandomAccess(plan)[count - 1]["text"] == f"t{count - 1}"


def test_rows_beside_crops_have_one_for_each() -> None:
    image, labels = array((20, 20), (5, 5)), array((3,), (2,))
    with pytest.raises(ValueError, match=r"'y' is not of crops: .* at given corners"):
        data.Plan({"x": data.Crops(image, (2, 2), 3), "y": labels})
    with pytest.raises(ValueError, match="'y' has 3 rows, but there are 2 corners"):
        data.Plan({"x": data.Crops(image, (2, 2), corners=[(0, 0), (1, 1)]), "y": labels})


@pytest.mark.parametrize("seed", range(10))
def test_parts_of_crops_at_corners_share_no_element(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape, crop = (40, 30), (5, 7)
    image = array(shape, (8, 8))
    corners = random.integers(0, np.array(shape) - crop + 1, (60, 2))
    near = np.minimum(corners, np.array(shape) - (6, 6))
    one: Any = data.Crops(image, crop, corners=corners)
    two: Any = {"a": data.Crops(image, (2, 2), corners=corners), "b": data.Crops(image, (6, 6), corners=near)}
    for sources in (one, two):
        plan = data.Plan(sources, 8)
        for parts in (plan.split(0.4, 0.6), plan.split_at(corners[:, 0], 12, 25)):
            found = [elements_of(part) for part in parts]
            for first, second in itertools.combinations(found, 2):
                assert not first & second
        # With a gap, no others are left out.
        assert sum(map(len, plan.split(0.5, 0.5, gap=0))) == 60
    apart = np.stack(np.meshgrid(np.arange(0, 36, 5), np.arange(0, 24, 7), indexing="ij"), -1).reshape(-1, 2)
    assert sum(map(len, data.Plan(data.Crops(image, crop, corners=apart), 8).split(0.5, 0.5))) == len(apart)
