"""Hints for unknown names of zarrow's objects: what to type instead.

1. `zarrow.hints.familiar_names` lists names of other libraries that have a counterpart here.
2. Decoded arrays have the methods of NumPy that compute. Other names of NumPy's arrays are found by asking
   NumPy, and names of PyTorch, pandas, polars, pyarrow and xarray by `zarrow.hints.names_of_others`. The
   message says how to convert, if the layout and the number of axes permit it.
3. An `Array` is in the store. For names that compute, the message says to read it first. A `Group` says which
   of its members has the name, or that its arrays have it.
4. For a name close to an existing one, the message suggests that one.
5. Names that begin with an underscore belong to protocols: they are not looked up.

Each kind of object has a module of hints, which is imported with the first unknown name.
"""

from __future__ import annotations

from typing import Any

from zarrow import _zarrow
from zarrow.arrays.methods import add_method
from zarrow.groups.attributes import Attributes
from zarrow.hints.assigned_attributes import set_attribute
from zarrow.hints.close_names import close_name, to_type
from zarrow.hints.refused_uses import refuse_uses
from zarrow.hints.reopening import with_places
from zarrow.tables.table import Table


def add_to_classes() -> None:
    """Give the classes their messages.

    The interpreter specializes calls of methods where `__getattr__` is a function of Python. Compiled into
    the class, it takes 40 ns of each attribute.
    """
    for kind in (
        _zarrow.DecodedArray,
        _zarrow.Array,
        _zarrow.Group,
        _zarrow.ArrowStream,
        Table,
        _zarrow.Categorical,
        Attributes,
        _zarrow.MemoryStore,
    ):
        add_method(kind, "__getattr__", _no_attribute)
    for kind in (_zarrow.Array, _zarrow.Group, _zarrow.DecodedArray, Attributes):
        add_method(kind, "__setattr__", set_attribute)
    refuse_uses()


def _no_attribute(self: Any, name: str, /) -> Any:
    """Raise an AttributeError that says what to type."""
    text = "" if name.startswith("_") else _hint(self, name) or close_name(name, dir(type(self)))
    if isinstance(self, _zarrow.Array | _zarrow.Group):
        text = with_places(text, self)
    if name == "__array_interface__" and isinstance(self, _zarrow.Array):  # PIL shows this error
        text = "read the array first, as array[...]"
    plain = f"{type(self).__name__!r} object has no attribute {name!r}"
    # If given the object, Python would look for close names itself, and repeat ours.
    raise AttributeError(f"{plain}: {text}" if text else plain, name=name)


def _hint(owner: Any, name: str) -> str:
    from zarrow.hints import (
        names_on_decoded_arrays,
        names_on_groups,
        names_on_stored_arrays,
        names_on_tables,
    )

    match owner:
        case _zarrow.Categorical():
            return names_on_tables.of_categorical(owner, name)
        case _zarrow.DecodedArray():
            return names_on_decoded_arrays.of_decoded(owner, name)
        case _zarrow.Array():
            return names_on_stored_arrays.of_array(owner, name)
        case _zarrow.Group():
            return names_on_groups.of_group(owner, name)
        case Attributes():
            return names_on_groups.of_attributes(owner, name)
        case Table():
            return names_on_tables.of_rows(owner, name)
        case _zarrow.MemoryStore():
            from zarrow.hints.familiar_names import MEMORY

            return to_type(MEMORY[name]) if name in MEMORY else ""
        case _:
            # A stream, or filtered rows, which have its names.
            return names_on_tables.of_stream(owner, name)
