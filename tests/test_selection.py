"""Any selection of any array equals NumPy's selection: new memory, the caller's memory, maps and batches."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, TransposeCodec, ZstdCodec

import zarrow
from canary import Canary
from oracle.selections import Selection, any_of

pytestmark = pytest.mark.small_files

DTYPES = ["bool", "i1", "u2", "i4", "f8", "c16", "M8[s]", "f2"]
SHAPES = [
    (),
    (1,),
    (7,),
    (64,),
    (0, 5),
    (5, 7),
    (1, 33),
    (16, 16),
    (4, 5, 6),
    (3, 1, 8),
    (2, 3, 4, 5),
    (2, 1, 3, 2, 3),
]
COUNT = 120


def values_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return distinct numbers, if the type has enough of them."""
    return (np.arange(np.prod(shape, dtype=int)) * 37 % 251).astype(dtype).reshape(shape)


def write(folder: Path, rng: random.Random, number: int) -> tuple[zarrow.Array, np.ndarray]:
    """Write an array with random chunks, order and codecs; some chunks are missing."""
    shape, dtype = SHAPES[number % len(SHAPES)], rng.choice(DTYPES)
    chunks = tuple(rng.randint(1, extent + 2) for extent in shape)
    order = rng.sample(range(len(shape)), len(shape))
    arguments: dict[str, object] = {
        "filters": [TransposeCodec(order=order)] if shape and rng.random() < 0.4 else None,
        "serializer": BytesCodec(endian=rng.choice(["little", "big"])),
        "compressors": rng.choice([None, ZstdCodec(), BloscCodec(), Crc32cCodec()]),
    }
    if shape and rng.random() < 0.4:
        arguments["shards"] = tuple(chunk * rng.randint(1, 4) for chunk in chunks)
    fill = np.array(rng.choice([0, 1])).astype(dtype)[()]
    array = zarr.create_array(folder, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, **arguments)
    values = values_of(shape, dtype)
    array[...] = values
    outer = arguments.get("shards", chunks)
    for place in itertools.product(
        *(range(-(-extent // part)) for extent, part in zip(shape, outer, strict=True))
    ):
        chunk = folder.joinpath("c", *map(str, place))
        if chunk.exists() and rng.random() < 0.15:
            chunk.unlink()
            parts = (slice(at * part, (at + 1) * part) for at, part in zip(place, outer, strict=True))
            values[tuple(parts)] = fill
    return zarrow.open(folder), values


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("selection"), random.Random(20)
    return [write(folder / str(number), rng, number) for number in range(COUNT)]


def selected(values: np.ndarray, selection: Selection) -> np.ndarray:
    return values[selection if ... in selection else (*selection, ...)]


def layout_of(ndim: int) -> st.SearchStrategy[dict[str, Any]]:
    """Draw the memory layout of the elements, as arguments of `Canary`."""
    return st.fixed_dictionaries(
        {
            "order": st.permutations(range(ndim)),
            "steps": st.tuples(*[st.integers(-3, 3).filter(bool)] * ndim),
        }
    )


MANY = settings(
    max_examples=1500,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@MANY
@given(st.integers(0, COUNT - 1), st.data())
def test_one(arrays, number, data):
    array, values = arrays[number]
    selection = data.draw(any_of(values.shape))
    expected = selected(values, selection)
    for tensor in (array[selection], array.read(selection, mmap=True)):
        assert tensor.shape == expected.shape
        assert tensor.numpy().tobytes() == expected.tobytes()
    canary = Canary(expected.shape, expected.dtype, **data.draw(layout_of(expected.ndim)))
    array.read(selection, out=canary.out)
    assert canary.out.tobytes() == expected.tobytes() and canary.is_intact()


@settings(MANY, max_examples=600)
@given(st.integers(0, COUNT - 1), st.data())
def test_batches(arrays, number, data):
    array, values = arrays[number]
    selections = data.draw(st.lists(any_of(values.shape), min_size=1, max_size=4))
    expected = [selected(values, selection) for selection in selections]
    batch = zarrow.read_many([(array, selection) for selection in selections])
    tensors = batch if isinstance(batch, list) else [batch[item] for item in range(len(expected))]
    for tensor, part in zip(tensors, expected, strict=True):
        assert tensor.shape == part.shape and tensor.numpy().tobytes() == part.tobytes()


@settings(MANY, max_examples=400)
@given(st.integers(0, COUNT - 1), st.data())
def test_a_view_of_the_result_is_a_selection_of_a_selection(arrays, number, data):
    array, values = arrays[number]
    first = data.draw(any_of(values.shape))
    expected = selected(values, first)
    second = data.draw(any_of(expected.shape))
    view = array[first][second]
    assert view.numpy().tobytes() == selected(expected, second).tobytes()
