"""Runs the test suites of other libraries with arrays that export a Tensor's memory.

1. A suite is imported again under another name, with replacements for some of its imports.
2. Its NumPy has `Ours` in place of `ndarray`: an array with the `__dlpack__` of a Tensor over the same
   memory.
3. Its PyArrow has wrapped constructors: a `Lender` behaves like the array, except for its
   `__dlpack__`.
"""

from __future__ import annotations

import builtins
import importlib.util
import types
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import zarrow


class Ours(np.ndarray):
    """An array that exports through a Tensor over its memory."""

    def __dlpack__(self, **arguments: Any) -> Any:
        return zarrow.from_numpy(self).__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return zarrow.from_numpy(self).__dlpack_device__()


class Stand(types.ModuleType):
    """A module that replaces some attributes of another one."""

    def __init__(self, other: Any, **own: Any) -> None:
        super().__init__(getattr(other, "__name__", ""))
        self.other = other
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.other, name)


def made_ours(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of NumPy return `Ours`."""
    return lambda *arguments, **keywords: function(*arguments, **keywords).view(Ours)


NUMPY = Stand(
    np, ndarray=Ours, **{name: made_ours(getattr(np, name)) for name in ("arange", "array", "zeros")}
)
NUMPY.asarray = NUMPY.array


class Lender:
    """A pyarrow object that exports through a Tensor over its memory, and is otherwise unchanged."""

    def __init__(self, real: Any) -> None:
        self.real = real

    @property
    def __class__(self) -> type:
        return type(self.real)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.real, name)
        return wrapped(value) if callable(value) else value

    def __getitem__(self, index: int) -> Lender:
        return Lender(self.real[index])

    def __dlpack__(self, **arguments: Any) -> Any:
        return zarrow.asarray(self.real).__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return zarrow.asarray(self.real).__dlpack_device__()


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of pyarrow take and return lenders."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        result = function(*map(bare, arguments), **{name: bare(value) for name, value in keywords.items()})
        return Lender(result) if isinstance(result, pa.Array | pa.Tensor) else result

    return call


def bare(value: Any) -> Any:
    """Return the object inside a lender."""
    return value.real if type(value) is Lender else value


class Makers(type):
    """Makes the class methods of a pyarrow class return lenders."""

    def __getattr__(cls, name: str) -> Any:
        value = getattr(cls.other, name)
        return value if name == "from_dlpack" else wrapped(value)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.other)


def makers(name: str) -> Makers:
    return Makers(name, (), {"other": getattr(pa, name)})


PYARROW = Stand(
    pa,
    array=wrapped(pa.array),
    **{
        name: makers(name)
        for name in ("Array", "Tensor", "ExtensionArray", "FixedSizeListArray", "FixedShapeTensorArray")
    },
)
# pytest needs lists for parameters, and NumPy gives a generator; pyarrow marks tests that need NumPy, and
# warns about capsules without a version.
PYTEST = Stand(
    pytest,
    mark=Stand(
        pytest.mark,
        numpy=None,
        parametrize=lambda names, values: pytest.mark.parametrize(names, list(values)),
    ),
    warns=lambda *_, **__: nullcontext(),
    importorskip=lambda name, **how: STANDS.get(name) or pytest.importorskip(name, **how),
)
STANDS = {"numpy": NUMPY, "pyarrow": PYARROW, "pytest": PYTEST}


def load(name: str, stands: tuple[str, ...]) -> types.ModuleType:
    """Import the named module again, with these modules replaced."""
    spec = importlib.util.find_spec(name)
    assert spec and spec.loader
    suite = importlib.util.module_from_spec(spec)

    def import_(name: str, globals_: Any = None, locals_: Any = None, names: Any = (), level: int = 0) -> Any:
        return (
            STANDS[name]
            if name in stands and not names
            else __import__(name, globals_, locals_, names, level)
        )

    vars(suite)["__builtins__"] = {**vars(builtins), "__import__": import_}
    spec.loader.exec_module(suite)
    return suite
