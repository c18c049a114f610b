"""Hints for unknown names and operators of zarrow's objects: what to type instead.

1. `zarrow.hints.familiar_names` lists names of other libraries that have a counterpart here.
2. Decoded arrays have the methods of NumPy that compute. Other names of NumPy's arrays are found by asking
   NumPy, and names of PyTorch, pandas, polars, pyarrow and xarray by `zarrow.hints.names_of_others`. The
   message says how to convert, if the layout and the number of axes permit it.
3. An `Array` is in the store. For names that compute, the message says to read it first. A `Group` says which
   of its members has the name, or that its arrays have it.
4. For a name close to an existing one, the message suggests that one.
5. Names that begin with an underscore belong to protocols: they are not looked up.
6. Unknown keywords of compiled functions are refused here too (`refuse_keywords`).
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from zarrow import _zarrow
from zarrow.arrays.arithmetic import BINARY, METHODS, REDUCTIONS, UNARY
from zarrow.arrays.methods import add_method
from zarrow.errors import ZarrowError
from zarrow.groups.attributes import Attributes
from zarrow.hints.close_names import close_name
from zarrow.hints.reopening import with_places
from zarrow.tables.table import Table


def add_to_classes() -> None:
    """Give the classes their messages.

    The interpreter specializes calls of methods where `__getattr__` is a function of Python. Compiled into
    the class, it takes 40 ns of each attribute.
    """
    for owner, hint in (
        (_zarrow.DecodedArray, _of_decoded),
        (_zarrow.Array, _of_array),
        (_zarrow.Group, _of_group),
        (_zarrow.ArrowStream, _of_stream),
        (Table, _of_rows),
        (_zarrow.Categorical, _of_categorical),
        (Attributes, _of_attributes),
        (_zarrow.MemoryStore, _of_memory),
    ):
        add_method(owner, "__getattr__", _no_attribute(hint))
    for kind in (_zarrow.Array, _zarrow.Group, _zarrow.DecodedArray, Attributes):
        add_method(kind, "__setattr__", _set_attribute)
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


_CONSTRUCTORS: dict[type, str] = {
    _zarrow.Array: "zarrow.open(path) for a stored array, or zarrow.create_array(store, ...) for a new one",
    _zarrow.Group: "zarrow.open_group(store), or zarrow.create_group(store) for a new one",
    _zarrow.Tensor: "zarrow.asarray(x)",
    _zarrow.Variable: "zarrow.asarray(x)",
    _zarrow.MaskedTensor: "zarrow.asarray(x), of an array of numpy.ma or one with missing elements",
    _zarrow.MaskedVariable: 'zarrow.asarray(["a", None])',
}

# What to type for properties that other libraries let one set.
_SETTERS: dict[str, dict[type, str]] = {
    "shape": {_zarrow.Array: "array.resize(shape)", _zarrow.DecodedArray: "x.reshape(shape)"},
    "dtype": {
        _zarrow.Array: 'group["new"] = array[...].astype(dtype)',
        _zarrow.DecodedArray: "x.astype(dtype), or x.numpy().view(dtype)",
    },
    **{
        name: {_zarrow.Array: f"zarrow.copy(array, target), with {option}=..., which stores a new array"}
        for name, option in (
            ("chunks", "chunks"),
            ("shards", "shards"),
            ("compressor", "compressors"),
            ("compressors", "compressors"),
            ("filters", "filters"),
        )
    },
    **{
        name: {_zarrow.Array: f"zarrow.create_array(store, data=array[...], {option}=...)"}
        for name, option in (
            ("fill_value", "fill_value"),
            ("dims", "dimension_names"),
            ("dimension_names", "dimension_names"),
        )
    },
    "name": {
        _zarrow.Array: 'group["new"] = array, then del group["old"]',
        _zarrow.Group: 'group["new"] = group["old"], then del group["old"]',
    },
    "flat": {_zarrow.DecodedArray: "x[...] = value"},
    "data": {_zarrow.Array: "array[...] = values", _zarrow.DecodedArray: "x[...] = values"},
    "values": {_zarrow.Array: "array[...] = values", _zarrow.DecodedArray: "x[...] = values"},
}


def _set_attribute(self: Any, name: str, value: Any, /) -> None:
    """Set an attribute, or raise an AttributeError that says what to type."""
    try:
        object.__setattr__(self, name, value)
    except AttributeError as error:
        ways = [way for owner, way in _SETTERS.get(name, {}).items() if isinstance(self, owner)]
        if isinstance(self, Attributes):
            ways = [f'attrs["{name}"] = value']
        elif not ways and isinstance(self, _zarrow.Group):
            ways = [f'group["{name}"] = value, or group.attrs["{name}"] = value']
        elif not ways and isinstance(self, _zarrow.Array) and not hasattr(type(self), name):
            ways = [f'array.attrs["{name}"] = value']
        if not ways:
            raise
        raise AttributeError(f"{error}: type {ways[0]}", name=name) from None


def _refused_construction(text: str) -> Any:
    def create(cls: type, *_: Any, **__: Any) -> Any:
        raise TypeError(f"zarrow.{cls.__name__} is not called: type {text}")

    return create


def refuse_keywords(function: str, given: Mapping[str, Any]) -> NoReturn:
    """Refuse keywords that a compiled function does not have.

    Raises
    ------
    TypeError
        Always; the message says what to type for the first of them.
    """
    from zarrow.hints.familiar_options import CALLS, OPTIONS

    name, found = next(iter(given)), _zarrow
    for part in function.split("."):
        found = getattr(found, part)
    known = [one.name for one in _parameters(found) if one.kind is not one.VAR_KEYWORD]
    texts = {**OPTIONS, **CALLS.get(function, {})}
    hint = close_name(name, known) or (to_type(texts[name]) if name in texts else "")
    if not hint and known:
        hint = f"its parameters are {', '.join(parameter for parameter in known if parameter != 'self')}"
    raise TypeError(f"{function}() has no parameter {name!r}" + (f": {hint}" if hint else ""))


def to_type(text: str) -> str:
    """Return a text of the tables as part of a message."""
    return text.removeprefix("nothing: ") if text.startswith("nothing: ") else f"type {text}"


def _no_attribute(hint: Any) -> Any:
    def method(self: Any, name: str, /) -> Any:
        text = "" if name.startswith("_") else hint(self, name) or close_name(name, dir(type(self)))
        if isinstance(self, _zarrow.Array | _zarrow.Group):
            text = with_places(text, self)
        if name == "__array_interface__" and isinstance(self, _zarrow.Array):  # PIL shows this error
            text = "read the array first, as array[...]"
        plain = f"{type(self).__name__!r} object has no attribute {name!r}"
        # If given the object, Python would look for close names itself, and repeat ours.
        raise AttributeError(f"{plain}: {text}" if text else plain, name=name)

    method.__doc__ = "Raise an AttributeError that says what to type."
    return method


def _of_decoded(array: Any, name: str) -> str:
    if name in ("torch", "jax"):
        return f"{name} has no arrays of text: type .numpy() or .arrow()"
    text = _of_elements(array, name)
    return text if _is_for_type(array.dtype, text) else _by_pandas(array, name, "type x")


# Functions of numbers, which have none of text and structures, and some none of dates.
_OF_NUMBERS = (".torch()", ".jax()", "nan_to_num", "isnan", "nanmean", "numpy.real", "numpy.imag")


def _is_for_type(dtype: Any, text: str) -> bool:
    """Return whether what a hint says to type takes elements of the type."""
    if dtype.kind in "mM":
        return not any(way in text for way in _OF_NUMBERS[:3])
    if dtype.names is not None:
        return not any(way in text for way in (*_OF_NUMBERS, ".arrow()"))
    return dtype.kind not in "OSTU" or not any(way in text for way in _OF_NUMBERS)


def _by_pandas(array: Any, name: str, start: str) -> str:
    """Say how to reach a name of a Series of pandas, which has text and dates."""
    from zarrow.hints.names_of_others import PANDAS_SERIES

    if array.dtype.kind in "mM" and name in ("long", "int", "float", "double"):
        return f'{start}.astype("int64"), in units of {array.dtype.name.partition("[")[2][:-1]}'
    is_column = array.ndim == 1 and array.dtype.names is None and name not in _other_accessors(array)
    return f"{start}.arrow().to_pandas().{name}" if is_column and name in PANDAS_SERIES else ""


def _other_accessors(array: Any) -> set[str]:
    """Return the accessors of a Series for elements of other types."""
    own = {"m": "dt", "M": "dt", "T": "str", "U": "str", "O": "str"}.get(array.dtype.kind)
    return {"arr", "bin", "cat", "dt", "list", "sparse", "str", "struct"} - {own}


def _of_elements(array: Any, name: str) -> str:
    from zarrow.hints.familiar_names import ARRAY, DECODED, TEXT

    if name in TEXT and array.dtype.kind in "TU":
        return to_type(TEXT[name])
    if name in DECODED:
        return to_type(_for_layout(array, DECODED[name]).replace("{tensor}", "x"))
    if _is_in_place(name):
        return f"type x.torch().{name}, which shares the memory"
    way = _way_through_others(array, name)
    if not way and hasattr(_zarrow.Array, name):
        return f"type array.{name}, of the Array that was read"
    if not way and name in ARRAY and "{store}" not in ARRAY[name] and "{parent}" not in ARRAY[name]:
        text = to_type(ARRAY[name].replace("{array}", "array"))
        return f"{text}, of the Array that was read" if text.startswith("type ") else text
    return f"type {way}" if way else ""


def _is_in_place(name: str) -> bool:
    """Return whether a name is that of a method of PyTorch that changes its tensor, such as `abs_`."""
    from zarrow.hints.names_of_others import TORCH_TENSOR

    plain = name.removesuffix("_")
    return plain != name and (plain in TORCH_TENSOR or plain in METHODS or plain in BINARY)


def _for_layout(array: Any, text: str) -> str:
    """Return the part of a text that holds for the layout, and for the number of axes."""
    plain, _, of_masked = text.partition("; of a masked layout ")
    if of_masked:
        text = "x" + of_masked if of_masked.startswith(".") else of_masked
        text = text if isinstance(array, _zarrow.MaskedTensor | _zarrow.MaskedVariable) else plain
    way = ".arrow().to_pandas()"
    if array.ndim == 1 or way not in text:
        return text
    if array.ndim == 2:
        return text.replace("{tensor}" + way, "pandas.DataFrame({tensor}.numpy())").replace(".to_frame()", "")
    rest = [part for part in text.split(", or ") if way not in part]
    series = text.replace("{tensor}" + way, "xarray.DataArray({tensor}.numpy()).to_series()")
    return ", or ".join(rest) or series


def for_device_tensor(name: str) -> str:
    """Return what to type for a name that a tensor of a GPU does not have."""
    from zarrow.hints.familiar_names import DECODED, DEVICE

    np = _zarrow._import("numpy")
    torch = sys.modules.get("torch")
    if name in DEVICE:
        return to_type(DEVICE[name])
    if name in METHODS or hasattr(np.ndarray, name):
        return f"type x.torch().{name}, which shares the memory (or .cupy(), .jax()), or x.cpu().{name}"
    if name in DECODED or hasattr(getattr(torch, "Tensor", None), name):
        return f"type x.torch().{name}, which shares the memory"
    if close := close_name(name, dir(_zarrow.DeviceTensor)):
        return close
    return ".torch(), .cupy() and .jax() share its memory and compute, .cpu() is a copy on the CPU"


# Attributes of the CF conventions, which are attributes of netCDF variables in Python.
_CF_ATTRIBUTES = frozenset(("units", "long_name", "standard_name", "scale_factor", "add_offset"))


def _of_array(array: Any, name: str) -> str:
    from zarrow.hints.familiar_names import TEXT

    text = _of_stored(array, name)
    if _is_for_type(array.dtype, text):
        return text
    if name in TEXT and array.dtype.kind in "TU":
        return f"read the array first: {to_type(TEXT[name].replace('x.', 'array[...].'))}"
    if name in ("torch", "jax"):
        return f"{name} has no elements of {array.dtype}: type array[...].numpy() or array[...].arrow()"
    return _by_pandas(array, name, "read the array first: type array[...]")


def _of_stored(array: Any, name: str) -> str:
    from zarrow.hints.familiar_names import ARRAY, DECODED
    from zarrow.hints.names_of_others import XARRAY_ARRAY

    if name in _CF_ATTRIBUTES and name not in array.attrs:
        return f'this array has no attribute {name!r}: type array.attrs["{name}"] = value to store one'
    if name in ARRAY:
        return to_type(ARRAY[name].replace("{array}", "array"))
    if _is_in_place(name):
        return f"type array[...] = array[...].torch().{name}(...), which stores the result"
    if hasattr(_zarrow.Tensor, name) or name in METHODS:
        return f"read the array first, as array[...].{name}{_axes_by_name(array, name)}"
    if name in array.attrs:
        return f'type array.attrs["{name}"]'
    if array.dimension_names and name in XARRAY_ARRAY:
        return f"type xarray.DataArray(array[...].numpy()).{name}"
    if name in DECODED:
        text = _for_layout(array, DECODED[name]).replace("{tensor}", "array[...]")
        return to_type(text) if text.startswith("nothing: ") else f"read the array first: type {text}"
    if name.endswith("_async") and hasattr(array, name.removesuffix("_async")):
        return f"type await asyncio.to_thread(array.{name.removesuffix('_async')}, ...)"
    if close_name(name, dir(type(array))):
        return ""
    way = _way_through_others(array, name)
    way = way.replace("(x", "(array[...]") if "(x" in way else way.replace("x.", "array[...].", 1)
    return way and f"read the array first: type {way}"


def _axes_by_name(array: Any, name: str) -> str:
    """Say which axis a dimension is, for methods that xarray's users call with its name."""
    names = array.dimension_names if name in REDUCTIONS else None
    axes = [f'axis={axis} for "{label}"' for axis, label in enumerate(names or ()) if label]
    return f", with {', '.join(axes)}" if axes else ""


def _of_group(group: Any, name: str) -> str:
    from zarrow.hints.familiar_names import GROUP
    from zarrow.hints.kinds_of_groups import for_name, is_for, kind_of

    kind = kind_of(group)
    if text := for_name(group, kind, name):
        return text
    text = GROUP.get(name, "").replace("{group}", "group")
    if text and is_for(kind, text):
        return to_type(text if kind else _of_some_columns(text))
    is_of_array = hasattr(_zarrow.Array, name)
    if name.endswith("_async") and not is_of_array and hasattr(group, name.removesuffix("_async")):
        return f"type await asyncio.to_thread(group.{name.removesuffix('_async')}, ...)"
    if close_name(name, dir(type(group))):
        return ""
    with contextlib.suppress(ZarrowError):  # the store may be gone
        if name in group:
            return f'type group["{name}"]'
        if name in group.attrs:
            return f'type group.attrs["{name}"]'
    return _way_to_members(kind, name)


def _of_some_columns(text: str) -> str:
    """Select columns in a hint for a group that is no table: its arrays differ in length."""
    import re

    return re.sub(r"group\.to_(arrow|pandas|polars)\(\)", r'group.to_\1(["name"])', text)


def _way_to_members(kind: str, name: str) -> str:
    """Say how to reach a name of tables, datasets or arrays from a group."""
    from zarrow.hints.familiar_names import ARRAY, DECODED
    from zarrow.hints.names_of_others import XARRAY_ARRAY

    if kind not in ("", "table", "grid"):
        return ""
    if hasattr(_zarrow.Array, name):
        return f'arrays have it, and groups do not: type group["name"].{name}'
    if kind != "grid" and (way := _way_to_a_table(name, "group.to_arrow()")):
        return f"type {way if kind else _of_some_columns(way)}"
    if name in XARRAY_ARRAY and kind != "table":
        way = "zarrow.xarray.open_zarr(path)" if kind else 'xarray.DataArray(group["name"][...].numpy())'
        return f"type {way}.{name}"
    if hasattr(_zarrow.Tensor, name):
        return f'a group is not one array: type group["name"][...].{name}'
    if name in ARRAY:
        return to_type(ARRAY[name].replace("{array}", 'group["name"]'))
    text = DECODED.get(name, "").partition("; of a masked layout ")[0]
    return to_type(text.replace("{tensor}", 'group["name"][...]')) if text else ""


def _of_stream(stream: Any, name: str) -> str:
    from zarrow.hints.familiar_kinds import ROWS
    from zarrow.hints.familiar_names import STREAM

    if name in STREAM:
        return to_type(STREAM[name].replace("{rows}", "rows"))
    if way := _way_to_a_table(name, "rows"):
        return f"type {way}"
    if name in ROWS:
        return to_type(ROWS[name].replace("{table}", "group[:]"))
    return f"type group.{name}, of the group that was read" if hasattr(_zarrow.Group, name) else ""


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


def _of_rows(table: Any, name: str) -> str:
    from zarrow.hints.familiar_kinds import ROWS

    if name in ROWS:
        return to_type(ROWS[name].replace("{table}", "table"))
    if close_name(name, dir(type(table))):
        return ""
    if name in table.column_names:
        return f'type table["{name}"]'
    if hasattr(_zarrow.Group, name):
        return f"type table.group.{name}"
    way = _way_to_a_table(name, "table.to_arrow()")
    return way and f"type {way}"


def _of_memory(store: Any, name: str) -> str:
    from zarrow.hints.familiar_names import MEMORY

    return to_type(MEMORY[name]) if name in MEMORY else ""


def _of_categorical(categorical: Any, name: str) -> str:
    from zarrow.hints.familiar_names import CATEGORICAL

    if name in CATEGORICAL:
        return to_type(CATEGORICAL[name])
    np, pandas = _zarrow._import("numpy"), sys.modules.get("pandas")
    is_by_order = categorical.ordered and name in ("argmax", "argmin", "argsort", "max", "min", "sort")
    if is_by_order:  # NumPy knows no order but that of the values
        return f"type pandas.Series(x.arrow().to_pandas()).{name.removeprefix('arg')}()"
    if hasattr(np.ndarray, name):
        return f"type x.numpy().{name}"
    series = getattr(pandas, "Series", None)
    for owner, way in ((getattr(series, "cat", None), ".cat"), (series, "")):
        if hasattr(owner, name):
            return f"type pandas.Series(x.arrow().to_pandas()){way}.{name}"
    return ""


def _of_attributes(attributes: Any, name: str) -> str:
    if name in attributes:
        return f'type attrs["{name}"]'
    if name in ("create", "modify"):
        return 'type attrs["name"] = value'
    if name in ("copy", "dict", "to_dict"):
        return "type attrs.asdict()"
    if name in ("delete", "remove"):
        return 'type del attrs["name"]'
    if name == "has_key":
        return 'type "name" in attrs'
    if name == "append":
        return 'type attrs["name"] = [*attrs["name"], value]'
    if name == "refresh":
        return "nothing is cached: leave .refresh() out"
    return close_name(name, dir(type(attributes))) or f'type attrs["{name}"] = value to store one'


def _way_through_others(array: Any, name: str) -> str:
    """Say how to reach a name of NumPy, or of an imported library (step 2)."""
    from zarrow.hints import names_of_others as others

    np = _zarrow._import("numpy")
    is_text = array.dtype == np.dtypes.StringDType() or array.dtype == object
    is_masked = isinstance(array, _zarrow.MaskedTensor | _zarrow.MaskedVariable)
    if hasattr(np.ndarray, name) or (is_masked and hasattr(np.ma.MaskedArray, name)):
        return f"x.numpy().{name}"
    if is_text and hasattr(np.strings, name):
        return f"numpy.strings.{name}(x.numpy(){_rest(getattr(np.strings, name))})"
    if _takes_an_array(getattr(np, name, None)):
        return f"numpy.{name}(x{_rest(getattr(np, name))})"
    values = "x.filled(value)" if is_masked else "x"
    ways = []
    if not is_text:
        ways.append(("torch", others.TORCH_TENSOR, f"{values}.torch()"))
    if array.ndim == 1:
        other = _other_accessors(array)
        ways.append(("pandas", others.PANDAS_SERIES - other, "x.arrow().to_pandas()"))
        ways.append(("polars", others.POLARS_SERIES - other, "x.polars()"))
    if array.ndim == 2:
        ways.append(("pandas", others.PANDAS_FRAME, "pandas.DataFrame(x.numpy())"))
    ways.append(("xarray", others.XARRAY_ARRAY, "xarray.DataArray(x.numpy())"))
    return _first_way(name, ways)


def _way_to_a_table(name: str, rows: str) -> str:
    """Say how to reach a method of a table of another library."""
    from zarrow.hints import names_of_others as others

    owner = rows.removesuffix(".to_arrow()")
    pandas = f"{rows}.arrow().to_pandas()" if owner == rows else f"{owner}.to_pandas()"
    return _first_way(
        name,
        [
            ("pandas", others.PANDAS_FRAME, pandas),
            ("polars", others.POLARS_FRAME, f"{rows}.polars()"),
            ("pyarrow", others.ARROW_TABLE, f"{rows}.arrow()"),
        ],
    )


def _first_way(name: str, ways: list[tuple[str, frozenset[str], str]]) -> str:
    """Choose a library that has the name, one that is imported before others."""
    found = [(module not in sys.modules, way) for module, names, way in ways if name in names]
    return f"{min(found, key=operator.itemgetter(0))[1]}.{name}" if found else ""


# First parameters of functions that create arrays from other values, or take no array.
_NO_ARRAY = {
    *("shape", "file", "fname", "filename", "object", "start", "N", "n", "dtype", "M", "buffer"),
    *("condition", "condlist"),
}


def _takes_an_array(function: Any) -> bool:
    """Return whether a function of NumPy computes with an array."""
    if isinstance(function, type) or not callable(function):
        return False
    first = next(iter(_parameters(function)), None)
    return first is not None and first.name not in _NO_ARRAY and first.kind is not first.VAR_POSITIONAL


def _rest(function: Any) -> str:
    """Return ", ..." if a function needs more arguments than the array."""
    needed = [given for given in _parameters(function) if given.default is given.empty and given.kind < 2]
    return ", ..." if len(needed) > 1 else ""


def _parameters(function: Any) -> list[Any]:
    import inspect

    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        kind = inspect.Parameter.POSITIONAL_ONLY
        return [inspect.Parameter(f"x{at}", kind) for at in range(getattr(function, "nin", 0))]


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
