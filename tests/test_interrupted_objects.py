"""Ctrl-C, and every other non-`Exception`, propagates unchanged from a method of a user's object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zarrow


class Stop(BaseException):
    """The exception of a debugger or a test runner."""


class Raising:
    """An object with protocol methods that all raise."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def stop(self, *arguments: Any, **named: Any) -> Any:
        raise self.error

    __index__ = __int__ = __float__ = __len__ = __getitem__ = __iter__ = __fspath__ = stop


class Index(Raising):
    """As an index: NumPy never asks for its length."""

    __len__ = __getitem__ = __iter__ = None  # type: ignore[assignment]
    __index__ = Raising.stop


class Array(Raising):
    __len__ = __getitem__ = __iter__ = None  # type: ignore[assignment]
    __array__ = Raising.stop


class Lender(Array):
    __array__ = None  # type: ignore[assignment]
    __dlpack__ = __dlpack_device__ = Raising.stop


class Arrow(Array):
    __array__ = None  # type: ignore[assignment]
    __arrow_c_array__ = Raising.stop


@pytest.fixture
def array():
    return zarrow.create_array(zarrow.MemoryStore(), shape=(4, 4), chunks=(2, 2), dtype="i4")


CALLS: dict[str, tuple[type[Raising], Callable[[Any, Any], Any]]] = {
    "item": (Index, lambda array, one: array[one]),
    "items": (Index, lambda array, one: array[0, one]),
    "start": (Index, lambda array, one: array[one:2]),
    "step": (Index, lambda array, one: array[0:2:one]),
    "written": (Index, lambda array, one: array.__setitem__(one, 1)),
    "oindex": (Index, lambda array, one: array.oindex[one]),
    "vindex": (Index, lambda array, one: array.vindex[one, [0]]),
    "blocks": (Index, lambda array, one: array.blocks[one]),
    "index array": (Array, lambda array, one: array[one]),
    "chunk": (Index, lambda array, one: array.retrieve_chunk(one)),
    "chunks": (Index, lambda array, one: array.retrieve_chunk([0, one])),
    "resize": (Index, lambda array, one: array.resize(one)),
    "resize to shape": (Index, lambda array, one: array.resize((one, 4))),
    "resize to iterable": (Raising, lambda array, one: array.resize(one)),
    "view": (Index, lambda array, one: array[...][one]),
    "axes": (Index, lambda array, one: array[...].transpose([one, 0])),
    "axis": (Index, lambda array, one: array[...].transpose(one, 0)),
    "shape": (Index, lambda array, one: array[...].reshape(one, 4)),
    "value": (Array, lambda array, one: array.__setitem__(..., one)),
    "value by DLPack": (Lender, lambda array, one: array.__setitem__(..., one)),
    "value by Arrow": (Arrow, lambda array, one: array.__setitem__(..., one)),
    "appended": (Array, lambda array, one: array.append(one)),
    "asarray": (Array, lambda array, one: zarrow.asarray(one)),
    "asarray by DLPack": (Lender, lambda array, one: zarrow.asarray(one)),
    "asarray by Arrow": (Arrow, lambda array, one: zarrow.asarray(one)),
    "from_dlpack": (Lender, lambda array, one: zarrow.from_dlpack(one)),
    "from_arrow": (Arrow, lambda array, one: zarrow.from_arrow(one)),
    "out": (Lender, lambda array, one: array.read(out=one)),
    "created shape": (
        Index,
        lambda array, one: zarrow.create_array(zarrow.MemoryStore(), shape=one, dtype="i4"),
    ),
    "created chunks": (
        Index,
        lambda array, one: zarrow.create_array(zarrow.MemoryStore(), shape=(4,), chunks=(one,), dtype="i4"),
    ),
    "created data": (Array, lambda array, one: zarrow.create_array(zarrow.MemoryStore(), data=one)),
    "path": (Raising, lambda array, one: zarrow.open(one)),
    "structure": (
        Array,
        lambda array, one: zarrow.create_array(
            zarrow.MemoryStore(), shape=2, dtype=[("a", "i4")]
        ).__setitem__(0, one),
    ),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Stop, MemoryError])
@pytest.mark.parametrize("name", CALLS)
def test_errors_are_raised_unchanged(array, name, error):
    kind, call = CALLS[name]
    with pytest.raises(error):
        call(array, kind(error))
    np.testing.assert_array_equal(array[...].numpy(), np.zeros((4, 4), "i4"))
