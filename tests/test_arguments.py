"""Wrong arguments of every public function: messages in our words, and hints for unknown keywords."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow

# Words of PyO3 and of Rust.
FOREIGN = re.compile(
    r"cannot be interpreted as|is not an instance of|can't convert|can't extract|cannot be converted to"
    r"|out of range integral|must be real number|object is not iterable|failed to extract|\bVec<|\bOption<"
    r"|\busize\b|\bu64\b|\bi64\b"
)
WRONG = (
    None,
    5,
    -1,
    2**70,
    1.5,
    "text",
    b"bytes",
    True,
    [1],
    ["a"],
    (1, 2),
    {"a": 1},
    object(),
    slice(0, 1),
    abs,
)
# What a parameter gets while another one is wrong.
RIGHT = {
    "array": [1.0],
    "attributes": {},
    "data": [1.0],
    "dtype": "f4",
    "fill_value": 0,
    "function": abs,
    "indices": (0, 0),
    "items": [],
    "mask": np.ones((2, 3), bool),
    "new_attributes": {},
    "other": [1],
    "selection": ...,
    "shape": (2,),
    "value": 0,
    "x": [1],
}
# They wait for other programs, or act on the whole process.
SKIPPED = ("open_async", "read_many_async", "release_memory", "set_missing", "set_num_threads")
# Functions with NumPy's message for a value that does not fit.
OF_NUMPY = ("masked.filled",)


def made(owner: str) -> Any:
    """Return a new object, which no call has changed before."""
    root = zarrow.create_group(zarrow.MemoryStore())
    if owner in ("array", "oindex", "attributes"):
        array = root.create_array("a", data=np.arange(6, dtype="f4").reshape(2, 3))
        return {"array": array, "oindex": array.oindex, "attributes": array.attrs}[owner]
    if owner == "group":
        root.create_array("a", data=np.arange(6, dtype="f4").reshape(2, 3))
        root["table"] = {"b": [1, 2]}
        return root
    if owner == "rows":
        root["table"] = {"b": [1, 2]}
        return root["table"].to_arrow()
    return {
        "zarrow": lambda: zarrow,
        "tensor": lambda: zarrow.asarray(np.arange(6, dtype="f4").reshape(2, 3)),
        "text": lambda: zarrow.asarray(["a", "b"]),
        "masked": lambda: zarrow.asarray(np.ma.array([1, 2], mask=[0, 1])),
        "masked text": lambda: zarrow.asarray(["a", None]),
    }[owner]()


def functions(owner: Any) -> list[str]:
    """List the public functions; of arrays those that zarrow documents, and not NumPy's."""
    if owner is zarrow:
        names = [name for name in zarrow.__all__ if not isinstance(getattr(zarrow, name), type)]
        return [name for name in names if callable(getattr(zarrow, name)) and name not in SKIPPED]
    names = [name for name in dir(type(owner)) if not name.startswith("_")]
    names = [name for name in names if callable(getattr(type(owner), name))]
    if isinstance(owner, zarrow.DecodedArray):
        own = (
            "arrow",
            "copy",
            "equals",
            "filled",
            "item",
            "numpy",
            "polars",
            "reshape",
            "tolist",
            "transpose",
        )
        return [name for name in names if name in own]
    return names


def calls(function: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield arguments with one wrong value each."""
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    for wrong in parameters:
        for value in WRONG:
            given: list[Any] = []
            named: dict[str, Any] = {}
            for parameter in parameters:
                if parameter is not wrong and parameter.default is not parameter.empty:
                    continue
                right = zarrow.MemoryStore() if parameter.name == "store" else RIGHT.get(parameter.name, "x")
                argument = value if parameter is wrong else right
                if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
                    named[parameter.name] = argument
                else:
                    given.append(argument)
            yield given, named


@pytest.fixture(autouse=True)
def default_memory_cache() -> Iterator[None]:
    """Restore the cache of freed memory: for `set_memory_cache`, 5 is a number of bytes."""
    yield
    zarrow.set_memory_cache(512 << 20)


OWNERS = (
    "zarrow",
    "group",
    "array",
    "oindex",
    "tensor",
    "text",
    "masked",
    "masked text",
    "rows",
    "attributes",
)


@pytest.mark.parametrize("owner", OWNERS)
def test_wrong_arguments_are_refused_in_our_words(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in functions(made(owner)):
            if f"{owner}.{name}" in OF_NUMPY:
                continue
            for given, named in calls(getattr(made(owner), name)):
                try:
                    getattr(made(owner), name)(*given, **named)
                except Exception as error:
                    if FOREIGN.search(str(error)):
                        said.append(f"{name}{given}{named}: {error}")
    assert said == []


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("array.read(masked=True)", 'type mask="cf"'),
        ("array.read(start=0)", "array.read(slice(0, 5))"),
        ("array.read(0, 1)", "array.read((0, slice(1, 3)))"),
        ("array.read(ordr='F')", "did you mean order?"),
        ("array.write(0, 1, castng='unsafe')", "did you mean casting?"),
        ("array.append([[1, 2, 3]], dim='y')", "type axis=..."),
        ("array.resize((2, 3), refcheck=False)", "leave it out"),
        ("array.to_arrow(batch_size=1)", "type batch_rows=..."),
        ("group.to_arrow(names=['a'])", 'type columns=["name"]'),
        ("group.tree(expand=True)", "type level=..."),
        ("group.create_group('x', exist_ok=True)", "type overwrite=True"),
        ("oindex.read(index=0)", "array.read(slice(0, 5))"),
        ("tensor.arrow(type='x')", "its parameters are layout, bools, strings, dimension_names"),
        ("zarrow.asarray([1], order='F')", "numpy.asarray(x, order=...)"),
        ("zarrow.read_many([], axis=1)", "stacked along a new first axis"),
    ],
)
def test_an_unknown_keyword_says_what_to_type(code: str, hint: str) -> None:
    owner = code.partition(".")[0]
    with pytest.raises(TypeError) as raised:
        eval(code, {owner: made(owner)})
    assert hint in str(raised.value)


def test_a_shape_may_be_several_arguments() -> None:
    array = made("array")
    array.resize(5, 3)
    assert array.shape == (5, 3)
    array.resize(shape=(4, 3))
    assert array.shape == (4, 3)
    with pytest.raises(TypeError, match="expected a tuple of ints, or one int, as shape"):
        array.resize("text")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: zarrow.MemoryStore(3), "expected a dict of bytes by key"),
        (lambda: zarrow.MemoryStore({1: b""}), "expected keys of type str"),
        (lambda: zarrow.MemoryStore({"a": 1.5}), "expected bytes as values"),
        (lambda: zarrow.DecodeLimits(max_ndim="x"), "max_ndim is 'x', expected an integer"),
        (
            lambda: zarrow.create_array(zarrow.MemoryStore(), shape=(2,), dtype="i4", dimension_names=3),
            "dimension_names is 3, expected a list",
        ),
    ],
)
def test_wrong_arguments_of_classes_are_refused_in_our_words(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()
