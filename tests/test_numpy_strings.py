"""Strings of NumPy's `StringDType` are imported by NumPy's C functions like Python strings."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import zarrow

PLAIN = np.dtypes.StringDType()
MISSING = np.dtypes.StringDType(na_object=None)


def random_text(generator: random.Random) -> str:
    """Empty, short enough to be packed, longer, with one byte per character and with several."""
    length = generator.choice([0, 1, 7, 15, 16, 17, 40, 255, 256, 1000])
    return "".join(generator.choice("aZ é\N{SNOWMAN}\N{GRINNING FACE}\0") for _ in range(length))


def texts(count: int, missing: bool, seed: int) -> list[str | None]:
    generator = random.Random(seed)
    return [None if missing and generator.random() < 0.2 else random_text(generator) for _ in range(count)]


def by_objects(array: Any) -> Any:
    """Return the same elements as Python objects, which take another path."""
    return zarrow.asarray(array.astype(object))


def assert_as_by_objects(array: Any) -> None:
    taken, expected = zarrow.asarray(array), by_objects(array)
    assert type(taken) is type(expected) and taken.shape == expected.shape
    assert taken.tolist() == expected.tolist()
    assert taken.data.tolist() == expected.data.tolist()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_elements_are_the_same(missing: bool, seed: int) -> None:
    array = np.array(texts(60, missing, seed), MISSING if missing else PLAIN)
    for shaped in (
        array,
        array[::-1],
        array[3::7],
        array[:0],
        array.reshape(3, 4, 5),
        array.reshape(3, 4, 5).transpose(2, 0, 1),
        array.reshape(3, 4, 5)[::2, ::-1, 1::2],
        np.broadcast_to(array[:5], (3, 5)),
        array[0:1].reshape(()),
        array.reshape(60, 1, 1),
    ):
        assert_as_by_objects(shaped)
    array.flags.writeable = False
    assert_as_by_objects(array)


def test_missing_values_of_numpy_strings() -> None:
    named = np.array(["a", "b"], np.dtypes.StringDType(na_object="nothing"))
    named[1] = "nothing"
    assert zarrow.asarray(named).tolist() == ["a", "nothing"]
    of_nan = np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan))
    assert zarrow.asarray(of_nan).tolist() == ["a", None]
    with pytest.raises(TypeError):
        zarrow.asarray(named, dtype="bytes")


def test_elements_are_copied() -> None:
    array = np.array(["short", "x" * 1000], PLAIN)
    taken = zarrow.asarray(array)
    array[:] = ["other", "y" * 1000]
    assert taken.tolist() == ["short", "x" * 1000]


def test_strings_are_written_and_read(tmp_path: Any) -> None:
    values = texts(500, True, 9)
    zarrow.save(tmp_path, names=np.array(values, MISSING), missing="optional")
    assert zarrow.open(tmp_path)["names"][...].tolist() == values
