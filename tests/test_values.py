"""Decoded arrays as values: operators, indices, iteration and text, compared with NumPy."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import zarrow

STRING = np.dtypes.StringDType()
TEXTS = ["Oslo", "", "né", "Quito", "日本", "x" * 40]


def tensor(shape: tuple[int, ...] = (4, 6), dtype: str = "i4") -> tuple[zarrow.Tensor, np.ndarray[Any, Any]]:
    values = np.arange(1, 1 + np.prod(shape)).astype(dtype).reshape(shape)
    result = zarrow.asarray(values.copy())
    assert isinstance(result, zarrow.Tensor)
    return result, values


def masked() -> tuple[zarrow.MaskedTensor, np.ma.MaskedArray[Any, Any]]:
    values = np.ma.MaskedArray(np.arange(12.0).reshape(3, 4), np.arange(12).reshape(3, 4) % 5 == 0)
    result = zarrow.asarray(values.copy())
    assert isinstance(result, zarrow.MaskedTensor)
    return result, values


def strings(missing: bool = False) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return text of two axes, and the same as objects."""
    values = np.array([None if missing and at % 4 == 1 else text for at, text in enumerate(TEXTS)], object)
    options: dict[str, Any] = {"dtype": "optional[string]"} if missing else {"dtype": "string"}
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(2, 3), **options)
    array[...] = values.reshape(2, 3)
    return array[...], values.reshape(2, 3)


BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, divmod,
]  # fmt: skip
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("apply", [*BINARY, *BITS], ids=lambda apply: apply.__name__)
def test_operators_are_those_of_numpy_from_both_sides(apply):
    ours, theirs = tensor()
    for other in (3, np.full((6,), 2), theirs + 1):
        for found, expected in (
            (apply(ours, other), apply(theirs, other)),
            (apply(other, ours), apply(other, theirs)),
        ):
            np.testing.assert_array_equal(found, expected)
            assert type(found) is type(expected)
    np.testing.assert_array_equal(apply(ours, ours), apply(theirs, theirs))


@pytest.mark.parametrize("apply", BINARY[:5], ids=lambda apply: apply.__name__)
def test_masked_operators_keep_the_mask_from_both_sides(apply):
    ours, theirs = masked()
    for other in (2.0, np.full((4,), 3.0)):
        for found, expected in (
            (apply(ours, other), apply(theirs, other)),
            (apply(other, ours), apply(other, theirs)),
        ):
            assert isinstance(found, np.ma.MaskedArray)
            np.testing.assert_array_equal(found.mask, np.ma.getmaskarray(expected))
            np.testing.assert_array_equal(found.filled(-1), expected.filled(-1))


def test_unary_operators_and_reductions():
    ours, theirs = tensor(dtype="f8")
    for apply in (operator.neg, operator.pos, abs):
        np.testing.assert_array_equal(apply(ours), apply(theirs))
    for name in ("sum", "mean", "min", "max", "std", "var", "prod", "argmax", "argmin"):
        assert getattr(ours, name)() == getattr(theirs, name)()
        np.testing.assert_array_equal(getattr(ours, name)(axis=0), getattr(theirs, name)(axis=0))
        assert getattr(np, name)(ours) == getattr(theirs, name)()
    assert ours.any() and ours.all(where=ours > 0)
    assert ours.astype("i2").dtype == np.int16
    np.testing.assert_array_equal(ours.clip(2, 5).round(1), theirs.clip(2, 5))
    partly, wanted = masked()
    assert partly.sum() == wanted.sum() and partly.mean() == wanted.mean()
    np.testing.assert_array_equal(operator.invert(tensor()[0]), ~tensor()[1])


def test_in_place_operators_write_to_the_tensor():
    ours, theirs = tensor()
    before, array = ours, ours.numpy()
    ours += 1
    ours *= ours
    assert ours is before
    np.testing.assert_array_equal(array, (theirs + 1) ** 2)
    with pytest.raises(TypeError, match="same_kind"):
        ours += 0.5


def test_one_element_without_axes_is_a_value():
    ours, _ = tensor((3,))
    total = ours[0]
    for item in ours[1:]:
        total += item
    assert total == 6 and ours.tolist() == [1, 2, 3]


def test_truth_and_functions_of_numpy_keep_the_mask():
    for values in (np.ma.array([0.0], mask=[False]), np.ma.array([1.0], mask=[True]), np.ma.array([2.0])):
        assert bool(zarrow.asarray(values)) == bool(values)
    for layout in (masked()[0], strings()[0], strings(missing=True)[0], tensor()[0]):
        with pytest.raises(ValueError):
            bool(layout)
    assert not strings()[0][:1, 1:2] and strings()[0][:1, :1]
    ours, theirs = masked()
    for apply in (np.exp, np.isnan, lambda values: np.add(values, 1), lambda values: np.add(1, values)):
        found, expected = apply(ours), apply(theirs)
        assert isinstance(found, np.ma.MaskedArray) and found.tolist() == expected.tolist()
    assert float(ours[0, 1]) == 1.0 and int(ours[0, 2]) == 2 and f"{ours[0, 3]:.2f}" == "3.00"


def test_items_are_set_as_numpy_sets_them():
    ours, theirs = tensor()
    for index, value in [
        (0, 7), ((slice(None), 1), [1, 2, 3, 4]), ([0, 2], 9), ((theirs > 10), -1), (..., np.arange(6)),
    ]:  # fmt: skip
        ours[index] = value
        theirs[index] = value
        np.testing.assert_array_equal(ours, theirs)
    ours[ours > 3] = tensor((1,))[0]
    theirs[theirs > 3] = 1
    np.testing.assert_array_equal(ours, theirs)
    readonly = zarrow.asarray(np.broadcast_to(np.float64(1), (2, 2)))
    with pytest.raises(ValueError, match="read-only"):
        readonly[0] = 1
    for layout in (strings()[0], strings(missing=True)[0], masked()[0]):
        with pytest.raises(TypeError, match="does not support item assignment"):
            layout[0] = 1
    for layout in (ours, strings()[0], strings(missing=True)[0], masked()[0]):
        with pytest.raises(ValueError, match="cannot be deleted"):
            del layout[0]


INDICES: list[Any] = [
    0, -1, ..., slice(None), slice(0, 1), slice(None, None, -1), (0, slice(None)), (slice(None), 1), (1, 2),
    (0, ...), (None, 0), [1, 0], [[0, 1], [1, 0]], (slice(None), [2, 0]), ([0, 1], [2, 1]),
    np.array([True, False]),
    (slice(None), np.array([True, False, True])), (..., 0), [], (np.int64(1), np.array(0)),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("missing", [False, True])
def test_strings_are_indexed_as_numpy_indexes_objects(index, missing):
    ours, theirs = strings(missing)
    found, expected = ours[index], theirs[index]
    if not isinstance(expected, np.ndarray):
        assert found == expected
        return
    assert type(found) is type(ours)
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_tensors_and_masked_tensors_are_indexed_as_numpy_indexes(index):
    (ours, theirs), (partly, wanted) = tensor((2, 3)), masked()
    found, expected = ours[index], theirs[index]
    assert isinstance(found, zarrow.Tensor)
    np.testing.assert_array_equal(found, expected)
    partly, wanted = partly[:2, :3], wanted[:2, :3]
    found, expected = partly[index], wanted[index]
    assert isinstance(found, zarrow.MaskedTensor)
    assert found.tolist() == expected.tolist()


def test_a_run_of_strings_shares_its_memory_and_a_list_does_not():
    ours, _ = strings()
    start = ours.offsets[3].item()
    assert ours[1].data.numpy().ctypes.data == ours.data.numpy().ctypes.data + start
    assert ours[[1, 0]].data.numpy().ctypes.data != ours.data.numpy().ctypes.data


def test_basic_parts_of_masked_tensors_share_their_values():
    ours, _ = masked()
    part = ours[1:, ::2]
    part.data[0, 0] = 77
    assert ours.data[1, 0].item() == 77


@pytest.mark.parametrize("index", [5, (0, 0, 0), [0, 9], (0, [7])], ids=repr)
def test_indices_out_of_range_are_indexing_errors(index):
    for layout in (tensor()[0], masked()[0], strings()[0], strings(missing=True)[0]):
        with pytest.raises(zarrow.IndexingError) as caught:
            layout[index]
        assert isinstance(caught.value, IndexError)


def test_all_layouts_iterate():
    assert [int(item) for item in tensor((3,))[0]] == [1, 2, 3]
    assert [row.tolist() for row in tensor((2, 2))[0]] == [[1, 2], [3, 4]]
    ours, theirs = masked()
    assert [row.tolist() for row in ours] == theirs.tolist()
    assert [row.tolist() for row in strings()[0]] == strings()[1].tolist()
    assert [row.tolist() for row in strings(missing=True)[0]] == strings(missing=True)[1].tolist()
    with pytest.raises(TypeError, match=r"\.item\(\)"):
        iter(tensor(())[0])


def test_text_is_that_of_the_values():
    assert [str(item) for item in tensor((3,))[0]] == ["1", "2", "3"]
    assert str(tensor((3,))[0]) == "[1 2 3]"
    names = zarrow.create_array(zarrow.MemoryStore(), data=np.array(TEXTS, STRING))
    assert str(names[0]) == "Oslo" and names[0].item() == "Oslo"
    assert str(masked()[0][0, 0]) == "None" and masked()[0][0, 0].item() is None
    assert f"{tensor((1,))[0].item():.1f}" == "1.0"
    with pytest.raises(ValueError, match="tolist"):
        strings()[0].item()


def test_integers_of_no_axes_are_indices():
    ours, _ = tensor(())
    assert [10, 20][ours] == 20 and range(5)[ours] == 1
    assert complex(ours) == 1
    for other in (tensor((2,))[0], tensor((), "f8")[0]):
        with pytest.raises(TypeError):
            operator.index(other)


def test_every_layout_pickles_and_copies_after_indexing():
    for layout in (tensor()[0], masked()[0], strings()[0], strings(missing=True)[0]):
        part = layout[[1, 0]]
        assert pickle.loads(pickle.dumps(part)).equals(part)
        assert copy.deepcopy(part).equals(part)
