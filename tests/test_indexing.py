"""Lists, masks, points and blocks: read and written as in NumPy and zarr-python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, BytesCodec, TransposeCodec, ZstdCodec

import handwritten
import zarrow
from canary import Canary
from oracle.index_arrays import orthogonal, orthogonal_indices, vectorized_indices
from zarrow import errors

pytestmark = pytest.mark.small_files

DTYPES = ["bool", "i1", "u2", "f4", "c16", "M8[s]", str]
SHAPES = [(13,), (0,), (7, 9), (5, 1, 8), (4, 6, 5), (6, 0, 3), (2, 3, 4, 3)]
COUNT = 42

MANY = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def values_of(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Return distinct numbers, if the type has enough of them."""
    numbers = np.arange(np.prod(shape, dtype=int)) * 37 % 251
    text = np.strings.multiply("é", numbers % 5) if numbers.size else numbers.astype("U1")
    kind = np.dtypes.StringDType() if dtype is str else dtype
    flat = np.strings.add(numbers.astype("U3"), text).astype(kind) if dtype is str else numbers.astype(kind)
    return flat.reshape(shape)


def write(folder, rng: random.Random, number: int):
    """Write an array with random chunks and codecs; its first elements are missing."""
    shape, dtype = SHAPES[number % len(SHAPES)], DTYPES[number // len(SHAPES) % len(DTYPES)]
    chunks = tuple(rng.randint(1, extent + 1) for extent in shape)
    order = rng.sample(range(len(shape)), len(shape))
    options: dict[str, Any] = {"compressors": rng.choice([None, ZstdCodec()])}
    if dtype is not str:
        options["filters"] = [TransposeCodec(order=order)] if rng.random() < 0.4 else None
        options["serializer"] = BytesCodec(endian=rng.choice(["little", "big"]))
        options["compressors"] = rng.choice([None, ZstdCodec(), BloscCodec()])
    if rng.random() < 0.4:
        options["shards"] = tuple(chunk * rng.randint(1, 3) for chunk in chunks)
    array = zarr.create_array(folder, shape=shape, chunks=chunks, dtype=dtype, **options)
    values = values_of(shape, dtype)
    corner = tuple(slice(0, part) for part in options.get("shards", chunks))
    values[corner] = np.zeros((), values.dtype)[()] if dtype is not str else ""
    array[...] = values
    return zarrow.open(folder), array, values


class Arrays(list[Any]):
    """Return a one-word description for a failing test."""

    def __repr__(self) -> str:
        return "arrays"


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("indexing"), random.Random(8)
    return Arrays(write(folder / str(number), rng, number) for number in range(COUNT))


def equal(one: Any, other: Any) -> bool:
    """Return whether two NumPy arrays are equal, including NaT."""
    return one.shape == other.shape and bool(np.all((one == other) | (one != one)))


def same(decoded: Any, expected: np.ndarray[Any, Any]) -> bool:
    expected = np.asarray(expected)
    if isinstance(decoded, zarrow.Tensor):
        return decoded.shape == expected.shape and decoded.numpy().tobytes() == expected.tobytes()
    return decoded.shape == expected.shape and bool(np.all(decoded.numpy() == expected))


@settings(MANY, max_examples=600)
@given(st.integers(0, COUNT - 1), st.data())
def test_orthogonal(arrays, number, data):
    array, _, values = arrays[number]
    index = data.draw(orthogonal_indices(values.shape))
    expected = values[orthogonal(values, index)]
    assert same(array.oindex[index], expected)
    if sum(isinstance(item, list | tuple | np.ndarray) for item in index) == 1:
        assert same(array[index], expected)
    if isinstance(array[...], zarrow.Tensor):
        canary = Canary(expected.shape, expected.dtype, steps=[-2] * expected.ndim)
        array.oindex.read(index, out=canary.out)
        assert canary.out.tobytes() == expected.tobytes() and canary.is_intact()


@settings(MANY, max_examples=600)
@given(st.integers(0, COUNT - 1), st.data())
def test_vectorized(arrays, number, data):
    array, _, values = arrays[number]
    index = data.draw(vectorized_indices(values.shape))
    try:
        expected = values[(*index, ...)]
    except IndexError:
        # Shapes that cannot be broadcast.
        with pytest.raises(errors.IndexingError):
            array.vindex[index]
        return
    assert same(array.vindex[index], expected)
    if all(not isinstance(item, slice) for item in index):
        assert same(array[index], expected)
    if isinstance(array[...], zarrow.Tensor):
        order = tuple(reversed(range(expected.ndim)))
        canary = Canary(expected.shape, expected.dtype, order=order, steps=[3] * expected.ndim)
        array.vindex.read(index, out=canary.out)
        assert canary.out.tobytes() == expected.tobytes() and canary.is_intact()


@settings(MANY, max_examples=200)
@given(st.integers(0, COUNT - 1), st.integers(0, 2**32 - 1))
def test_masks_of_the_whole_array(arrays, number, seed):
    array, other, values = arrays[number]
    mask = np.random.default_rng(seed).random(values.shape) < seed % 7 / 6
    for decoded in (array[mask], array.vindex[mask]):
        assert same(decoded, values[mask])
    assert equal(other[mask], values[mask])


@settings(MANY, max_examples=200)
@given(st.integers(0, COUNT - 1), st.data())
def test_blocks(arrays, number, data):
    array, other, values = arrays[number]
    assume(values.size)
    grid = [
        -(-extent // part) for extent, part in zip(array.shape, array.shards or array.chunks, strict=True)
    ]
    one = [st.integers(-count, count - 1) for count in grid]
    some = [st.builds(slice, st.integers(0, count - 1), st.none() | st.integers(1, count)) for count in grid]
    index = data.draw(st.tuples(*(a | b for a, b in zip(one, some, strict=True))))
    assert same(array.blocks[index], other.blocks[index])


@settings(MANY, max_examples=200)
@given(st.integers(0, COUNT - 1), st.data())
def test_batches(arrays, number, data):
    array, _, values = arrays[number]
    points, combined = (
        data.draw(vectorized_indices(values.shape)),
        data.draw(orthogonal_indices(values.shape)),
    )
    try:
        expected = [values[(*points, ...)], values[orthogonal(values, combined)], values[..., :1]]
    except IndexError:
        assume(False)
    items = [(array.vindex, points), (array.oindex, combined), (array, np.s_[..., :1])]
    batch = zarrow.read_many(items)
    for decoded, part in zip(batch, expected, strict=True):
        assert same(decoded, part)


@settings(MANY, max_examples=250)
@given(st.integers(0, COUNT - 1), st.data())
def test_written_elements_equal_numpys(arrays, tmp_path_factory, number, data):
    folder = tmp_path_factory.mktemp("written")
    array, _, values = write(folder, random.Random(data.draw(st.integers(0, 99))), number)
    for _ in range(2):
        if data.draw(st.booleans()):
            index = data.draw(orthogonal_indices(values.shape))
            target, places = array.oindex, orthogonal(values, index)
        else:
            index = data.draw(vectorized_indices(values.shape))
            target, places = array.vindex, (*index, ...)
        try:
            shape = values[places].shape
        except IndexError:
            continue
        # Repeated positions: the last one wins.
        new = (
            values_of(shape, str if values.dtype.kind == "T" else values.dtype)[..., ::-1]
            if shape
            else values_of((1,), values.dtype if values.dtype.kind != "T" else str)[0]
        )
        values[places] = new
        target[index] = new
    assert same(array[...], values)
    assert equal(zarr.open_array(folder)[...], values)


@pytest.mark.parametrize("kind", ["masked_tensor", "masked_variable"])
def test_elements_that_may_be_missing(tmp_path, kind):
    missing = np.array([False, True, False, False, True, False])
    if kind == "masked_tensor":
        handwritten.masked_tensor(tmp_path / "a", np.arange(6, dtype="f4"), missing)
    else:
        handwritten.masked_variable(tmp_path / "a", ["a", None, "", "d", None, "fé"])
    array = zarrow.open(tmp_path / "a")
    expected = array[...].numpy() if kind == "masked_variable" else array[...].numpy().tolist()
    for index in ([4, 0, 4, 1], [False, True, True, False, False, True], np.array([[5, -2], [0, 0]])):
        decoded = array[index]
        places = np.arange(6)[np.asarray(index)]
        assert decoded.shape == places.shape
        found = decoded.numpy().tolist()
        assert found == np.array(expected, object)[places].tolist()
    assert array.oindex[[1, 4]].mask.numpy().all()


def test_results_of_zarr_python(tmp_path):
    other = zarr.create_array(tmp_path / "a", shape=(6, 7, 8), chunks=(2, 3, 5), dtype="i4")
    other[...] = np.arange(336).reshape(6, 7, 8)
    array = zarrow.open(tmp_path / "a")
    mask = np.arange(336).reshape(6, 7, 8) % 3 == 0
    for index in [
        ([1, 0],),
        ([5, 1, 1], slice(1, 6, 2)),
        (1, slice(None), [1, 2]),
        (slice(None), 2, [7, 0]),
        ([True] * 3 + [False] * 3,),
        ([0, 5], [1, 1], [2, 7]),
        (np.array([[0], [5]]), [1, 2], 3),
        mask,
    ]:
        assert np.array_equal(array[index], other[index]), index
    for index in [([1, 0], slice(None), [0, 7]), (2, [3, 1], [True] * 8), ([0, 0], -1)]:
        assert np.array_equal(array.oindex[index], other.oindex[index]), index
    assert np.array_equal(array.vindex[[0, 1], [2, 3], [4, 5]], other.vindex[[0, 1], [2, 3], [4, 5]])


REFUSED = [
    ([1], slice(None), [1]),
    ([1], [1], slice(None)),
    ([True, False], [1], 0),
    np.zeros((2, 2), bool),
    np.zeros(4, bool),
    [0.5],
    ["a"],
    "field",
    True,
    np.True_,
    (0, (slice(1), 2)),
    (0, (..., 2)),
    np.array(1.0),
    None,
    ([0], None),
    [6],
    [-7],
    [2**63],
    np.array([2**64 - 1], "u8"),
    [[1, 2], [3]],
    {"a": 1},
]


@pytest.mark.parametrize("index", REFUSED, ids=repr)
def test_invalid_indices_are_refused(tmp_path, index):
    zarr.create_array(tmp_path / "a", shape=(6, 7, 8), chunks=(2, 3, 5), dtype="i4")
    array = zarrow.open(tmp_path / "a")
    with pytest.raises(errors.IndexingError):
        array[index]
    with pytest.raises(errors.IndexingError):
        array[index] = 1


def test_each_kind_refuses_the_others(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(6, 7), chunks=(2, 3), dtype="i4")
    array = zarrow.open(tmp_path / "a")
    for indexer, index in [
        (array.oindex, [[1, 2], [3, 4]]),
        (array.oindex, np.ones((6, 7), bool)),
        (array.vindex, ([1, 2], [1, 2, 3])),
        (array.vindex, np.ones((7, 6), bool)),
        (array.blocks, [0]),
        (array.blocks, slice(None, None, 2)),
        (array.blocks, 3),
    ]:
        with pytest.raises(errors.IndexingError):
            indexer[index]


def test_properties_of_an_indexer(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(6, 7), chunks=(2, 3), dtype="i4")
    array = zarrow.open(tmp_path / "a")
    assert array.vindex.array is array and repr(array.blocks).startswith("<blocks of /")
    assert array.oindex.read().shape == (6, 7)
    array.oindex.write(([1, 1], [0]), [[5], [6]], write_empty_chunks=True)
    assert array[1, 0].item() == 6
