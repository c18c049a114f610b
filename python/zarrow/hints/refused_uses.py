"""Messages of uses that the classes refuse: construction, operators, numbers and items."""

from __future__ import annotations

import operator
from typing import Any

from zarrow import _zarrow
from zarrow.arrays.arithmetic import BINARY, UNARY
from zarrow.arrays.methods import add_method

_CONSTRUCTORS: dict[type, str] = {
    _zarrow.Array: "zarrow.open(path) for a stored array, or zarrow.create_array(store, ...) for a new one",
    _zarrow.Group: "zarrow.open_group(store), or zarrow.create_group(store) for a new one",
    _zarrow.Tensor: "zarrow.asarray(x)",
    _zarrow.Variable: "zarrow.asarray(x)",
    _zarrow.MaskedTensor: "zarrow.asarray(x), of an array of numpy.ma or one with missing elements",
    _zarrow.MaskedVariable: 'zarrow.asarray(["a", None])',
}


def refuse_uses() -> None:
    """Give the classes methods that raise a TypeError, with what to type."""
    add_method(_zarrow.ArrowStream, "__getitem__", _no_item)
    add_method(_zarrow.MemoryStore, "__getitem__", _no_key)
    for made, text in _CONSTRUCTORS.items():
        setattr(made, "__new__", staticmethod(_refused_construction(text)))  # noqa: B010
    for name in BINARY:
        setattr(_zarrow._Unread, f"__{name}__", _refused_operator(name))
        setattr(_zarrow._Unread, f"__r{name}__", _refused_operator(name))
    for name in UNARY:
        setattr(_zarrow._Unread, f"__{name}__", _refused_operator(name))
    for name in ("float", "int"):
        setattr(_zarrow._Unread, f"__{name}__", _refused_number(name))


def _refused_construction(text: str) -> Any:
    def create(cls: type, *_: Any, **__: Any) -> Any:
        raise TypeError(f"zarrow.{cls.__name__} is not called: type {text}")

    return create


def _refused_operator(name: str) -> Any:
    symbol = getattr(operator, f"__{name}__").__name__

    def method(self: Any, *_: Any) -> Any:
        raise TypeError(
            f"an Array is in the store and does not compute ({symbol}): read it first, as array[...]"
        )

    method.__name__ = f"__{name}__"
    method.__doc__ = "Refuse, with a TypeError that says to read the array first."
    return method


def _refused_number(name: str) -> Any:
    def method(self: Any) -> Any:
        raise TypeError(
            f"an Array is in the store and is not a number: read it first, as {name}(array[index])"
        )

    method.__name__ = f"__{name}__"
    method.__doc__ = "Refuse, with a TypeError that says to read the array first."
    return method


def _no_item(self: Any, key: Any, /) -> Any:
    """Refuse a key with a TypeError that says how to select rows and columns."""
    from zarrow.hints.kinds_of_groups import spelled

    names = key if isinstance(key, list | tuple) else [key]
    way = 'group[0:5] for rows, or group["name"] for a column'
    if self.column_names is None:
        way = f"array[{spelled(key)}], or array[{spelled(key)}].arrow()"
    elif isinstance(key, slice) or all(isinstance(name, str) for name in names):
        way = f"group[{spelled(key)}]"
    raise TypeError(f"{type(self).__name__!r} object is a stream, and selects nothing: type {way}")


def _no_key(self: Any, key: Any, /) -> Any:
    """Refuse a key with a TypeError that says how to read a value or a node."""
    raise TypeError(
        f"a MemoryStore is not a mapping: type store.to_dict()[{key!r}] for bytes, or "
        "zarrow.open(store)[path] for an array"
    )
