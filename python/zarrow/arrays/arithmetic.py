"""Operators, reductions and conversions of decoded arrays, computed by NumPy.

1. Every layout has a form in NumPy, which its method `numpy` gives: a view of a Tensor, `numpy.ma` over the
   memory of a MaskedTensor, a new array of strings.
2. An operator or a method is that of this form. Its result is NumPy's too: an array or a scalar.
3. An operator that works in place writes to the memory of a Tensor, and gives the Tensor. One element without
   axes is a value, as in NumPy: the operator gives a new one, and the memory is unchanged.
4. The classes get them when zarrow is imported; NumPy is not imported before the first call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from zarrow import _zarrow
from zarrow.arrays import swaps
from zarrow.arrays.casting import dtype_of
from zarrow.arrays.indexing import numpy_index
from zarrow.arrays.methods import add_method, add_property
from zarrow.arrays.numpy_form import numpy_form
from zarrow.errors import ShapeError

BINARY = tuple("add sub mul matmul truediv floordiv mod pow lshift rshift and or xor".split())
UNARY = ("neg", "pos", "abs", "invert")
METHODS = tuple(
    """
    all any argmax argmin argsort astype choose clip compress conj conjugate cumprod cumsum diagonal dot
    flatten max mean min nonzero prod ravel repeat round searchsorted squeeze std sum swapaxes take
    tobytes tofile trace var
    """.split()
)
# Reductions: xarray takes the name of a dimension for them.
REDUCTIONS = frozenset("all any argmax argmin cumprod cumsum max mean min prod std sum var".split())
# Parameters of PyTorch, xarray and pandas, and their replacements.
_OTHER_OPTIONS = {
    "dim": "axis=",
    "keepdim": "keepdims=",
    "skipna": "numpy.nanmean(x), or numpy.nansum(x) and so on, which leave out NaN",
    "correction": "ddof=",
    "unbiased": "ddof=1 for unbiased=True, ddof=0 for False",
}
# Methods that write to the memory of a Tensor: strings and masks cannot be written to.
WRITING = ("fill", "partition", "put", "sort")
# Methods that a Tensor implements itself, and that give a Tensor.
RESHAPING = ("copy", "reshape", "transpose")
OF_MASKED = ("compressed", "count")
VIEWS = ("flags", "flat", "imag", "real")


def add_to_classes() -> None:
    """Give the classes their operators and methods (step 4)."""
    for name in BINARY:
        apply = getattr(operator, f"__{name}__")
        add_method(_zarrow.DecodedArray, f"__{name}__", _binary(apply))
        add_method(_zarrow.DecodedArray, f"__r{name}__", _reflected(apply))
        add_method(_zarrow.Tensor, f"__i{name}__", _in_place(getattr(operator, f"__i{name}__")))
    add_method(_zarrow.DecodedArray, "__divmod__", _binary(divmod))
    add_method(_zarrow.DecodedArray, "__rdivmod__", _reflected(divmod))
    for name in UNARY:
        add_method(_zarrow.DecodedArray, f"__{name}__", _unary(getattr(operator, f"__{name}__")))
    for name in METHODS:
        add_method(_zarrow.DecodedArray, name, _method(name) if name != "astype" else _astype)
    for name, function in (
        ("__iter__", _iterate),
        ("__reversed__", _reversed),
        ("__str__", _text),
        ("__hash__", _hash),
        ("__round__", _round),
        ("cpu", _cpu),
        ("item", _item),
    ):
        add_method(_zarrow.DecodedArray, name, function)
    for name in ("trunc", "floor", "ceil"):
        add_method(_zarrow.DecodedArray, f"__{name}__", _rounded(name))
    for name in WRITING:
        add_method(_zarrow.Tensor, name, _method(name))
    for name in VIEWS:
        add_property(_zarrow.DecodedArray, name, _view(name))
    add_method(_zarrow.Tensor, "__index__", _unary(operator.index))
    add_method(_zarrow.Tensor, "__complex__", _unary(complex))
    add_method(_zarrow.Tensor, "__setitem__", _set_item)
    add_method(_zarrow.Tensor, "__array_ufunc__", _tensor_ufunc)
    # A Tensor has its own of each.
    add_method(_zarrow.DecodedArray, "__bool__", _unary(bool))
    add_method(_zarrow.DecodedArray, "__setitem__", _refuse_set_item)
    add_method(_zarrow.DecodedArray, "__delitem__", _refuse_deletion)
    for name in RESHAPING:
        add_method(_zarrow.DecodedArray, name, _method(name))
    add_method(_zarrow.Tensor, "transpose", _transposed(_zarrow.Tensor.transpose))
    add_property(_zarrow.DecodedArray, "T", _view("T"))
    for name in OF_MASKED:
        add_method(_zarrow.MaskedTensor, name, _method(name))
    for layout in (_zarrow.MaskedTensor, _zarrow.MaskedVariable):
        # NumPy's functions, and its operators with an array of NumPy on the left, keep the mask by this.
        add_method(layout, "__array_ufunc__", _array_ufunc)
        add_method(layout, "__float__", _unary(float))
        add_method(layout, "__int__", _unary(int))
        add_method(layout, "__format__", _format)


def _binary(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any, /) -> Any:
        if type(other).__module__.partition(".")[0] == "torch":
            return NotImplemented  # PyTorch computes, with `.torch()` of this array
        return apply(self.numpy(), numpy_form(other))

    method.__doc__ = (
        "Compute like NumPy, element by element. Returns a NumPy array, masked if elements are missing."
    )
    return method


def _reflected(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any, /) -> Any:
        return apply(numpy_form(other), self.numpy())

    method.__doc__ = _binary(apply).__doc__
    return method


def _in_place(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any, /) -> Any:
        if self.ndim == 0:
            return apply(self.numpy()[()], numpy_form(other))
        swaps.forget()
        apply(self.numpy(), numpy_form(other))
        return self

    method.__doc__ = "Compute like NumPy, in the memory of this tensor. Without axes, returns a new value."
    return method


def _unary(apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any, /) -> Any:
        return apply(self.numpy())

    method.__doc__ = "Compute like NumPy."
    return method


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        values = getattr(self.numpy(), name)
        if name in REDUCTIONS:
            _refuse_axis_name(name, *arguments[:1], *map(options.get, ("axis", "dim")))
        if name == "flatten" and any(isinstance(axis, int) for axis in arguments):
            raise TypeError("flatten() takes no axis: type .reshape(len(x), -1) to keep the first one")
        for other, ours in _OTHER_OPTIONS.items():
            if other in options:
                raise TypeError(f"{name}() has no parameter {other!r}: type {ours}")
        if name in WRITING:
            swaps.forget()
        return values(*map(numpy_form, arguments), **options)

    method.__doc__ = (
        f"Work like `numpy.ndarray.{name}`, or like the `numpy.ma` method if elements may be missing.\n\n"
        "The result is a NumPy object, which shares memory if NumPy's method does."
    )
    return method


def _refuse_axis_name(method: str, *axes: Any) -> None:
    """Refuse the name of a dimension: only the Array that was read knows them."""
    for axis in axes:
        axis = axis[0] if isinstance(axis, tuple | list) and axis else axis
        if isinstance(axis, str):
            raise TypeError(
                f"{method}() takes the number of an axis, not {axis!r}: type "
                f'.{method}(axis=array.dimension_names.index("{axis}")), of the Array that was read, or '
                f'zarrow.xarray.open_zarr(path)["name"].{method}("{axis}")'
            )


# Types of pandas, which NumPy's arrays do not have.
_PANDAS_TYPES = frozenset(
    ("category", "string", "boolean", "Int8", "Int16", "Int32", "Int64", "Float64", "UInt8")
)


def _astype(self: Any, *arguments: Any, **options: Any) -> Any:
    """As `numpy.ndarray.astype`, also to a type of PyTorch.

    Text becomes `str` by `astype(str)`, and UTF-8 by `astype(bytes)`, at the width of its longest element.
    """
    dtype = arguments[0] if arguments else options.get("dtype")
    if type(dtype).__module__ == "torch":
        dtype = dtype_of(dtype)
        options.pop("dtype", None)
        arguments = (dtype, *arguments[1:])
    if isinstance(dtype, str) and dtype in _PANDAS_TYPES:
        raise TypeError(f"NumPy has no type {dtype!r}: type x.arrow().to_pandas().astype({dtype!r})")
    values = self.numpy()
    is_text = dtype is str or (isinstance(dtype, str) and dtype in ("U", "str"))
    np = _zarrow._import("numpy")
    is_masked = isinstance(self, _zarrow.MaskedVariable) and values.dtype == object
    if is_masked and np.dtype(dtype).kind in "USTV" and any(value is None for value in values.flat):
        # NumPy would convert None to the text "None".
        raise ValueError("some elements are missing: type x.filled(value).astype(dtype)")
    if dtype in (bytes, "S", "bytes") and values.dtype.kind == "T":
        return np.strings.encode(values)
    if is_text and values.dtype.kind == "T" and not np.ma.isMaskedArray(values):
        arguments = (f"U{max(1, int(np.strings.str_len(values).max(initial=0)))}", *arguments[1:])
        options.pop("dtype", None)
    return values.astype(*arguments, **options)


def _transposed(transpose: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *axes: Any) -> Any:
        try:
            return transpose(self, *axes)
        except ShapeError as error:
            if len(axes) == 2 and self.ndim > 2:  # PyTorch swaps two axes
                error.args = (f"{error}: type .swapaxes({axes[0]}, {axes[1]}) to swap two", *error.args[1:])
            raise

    return method


def _view(name: str) -> Callable[[Any], Any]:
    def values(self: Any) -> Any:
        return getattr(self.numpy(), name)

    return values


def _array_ufunc(self: Any, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
    """Return the result of a NumPy function for `numpy.ma`."""
    inputs = tuple(map(numpy_form, inputs))
    # The function of `numpy.ma`, if it exists, skips missing elements, such as a zero to divide by.
    of_masked = getattr(_zarrow._import("numpy").ma, ufunc.__name__, None)
    if how == "__call__" and of_masked is not None and not options:
        return of_masked(*inputs)
    return getattr(ufunc, how)(*inputs, **options)


def _format(self: Any, specification: str, /) -> str:
    """Format the only element, as in `f"{masked:.2f}"`; without a specification, same as `str`."""
    return format(self.item(), specification) if specification else str(self)


def _iterate(self: Any) -> Iterator[Any]:
    """Iterate over the items of the first axis, as indexing with an integer returns them."""
    if self.ndim == 0:
        raise TypeError("cannot iterate over a 0-d array: .item() returns its element")
    return (self[position] for position in range(len(self)))


def _reversed(self: Any) -> Iterator[Any]:
    """Iterate over the items of the first axis, from last to first."""
    return (self[position] for position in range(len(self) - 1, -1, -1))


def _cpu(self: Any) -> Any:
    """Return the array itself: its memory is that of the CPU."""
    return self


def _hash(self: Any) -> int:
    """Return the hash of a 0-d array's element, like that of a NumPy scalar.

    Raises
    ------
    TypeError
        The array has axes, and so no hash.
    """
    if self.ndim:
        raise TypeError(f"unhashable type: {type(self).__name__!r} with axes; look up .tobytes() instead")
    return hash(self.item())


def _round(self: Any, digits: int | None = None, /) -> Any:
    """Round a 0-d array to a Python number, and any other array by NumPy."""
    return round(self.item(), digits) if self.ndim == 0 else self.numpy().round(digits or 0)


def _rounded(name: str) -> Callable[[Any], Any]:
    def method(self: Any, /) -> Any:
        import math

        return getattr(math, name)(self.item())

    method.__doc__ = f"As `math.{name}` of the one element."
    return method


def _refuse_set_item(self: Any, index: Any, value: Any, /) -> None:
    """Refuse, with a TypeError that says what can be written to."""
    kind = type(self).__name__
    if kind == "MaskedTensor":
        way = (
            "the mask is shared and read-only: type .numpy().copy(), or .data[...] = value "
            "if no element is missing"
        )
    else:
        way = "text cannot change in place: type .numpy(), which is a copy"
    raise TypeError(f"{kind!r} object does not support item assignment: {way}")


def _refuse_deletion(self: Any, index: Any, /) -> None:
    """Refuse, with a ValueError that says what to type."""
    raise ValueError("elements of an array cannot be deleted: type array[index] with the indices to keep")


def _text(self: Any) -> str:
    """Return the values as text, as NumPy writes them; of one element without axes, the element's."""
    if self.ndim:
        return _zarrow._text(self)
    item = self.item()
    # The item of a time in nanoseconds is an integer.
    return str(self.numpy()[()]) if self.dtype.kind in "mM" and item is not None else str(item)


def _item(self: Any, *index: Any) -> Any:
    """Return the only element, or the one at a position, as a Python object; None if it is missing.

    Raises
    ------
    ValueError
        The tensor does not have exactly one element.
    """
    if index:
        position = index[0] if len(index) == 1 else index
        if not isinstance(position, tuple) and self.ndim != 1:
            position = _zarrow._import("numpy").unravel_index(position, self.shape)
        found = self[position]
        return found.item() if isinstance(found, _zarrow.DecodedArray) else found
    if self.size != 1:
        raise ValueError(
            f"item() needs an array of one element, but this one has {self.size}: type .item(0) for "
            "one, or .tolist() for all"
        )
    elements = self.tolist()
    for _ in range(self.ndim):
        elements = elements[0]
    return elements


def _set_item(self: Any, index: Any, value: Any, /) -> None:
    """Write values to part of the memory, with any NumPy index and NumPy's casts."""
    memory, index, values = self.numpy(), numpy_index(index), numpy_form(value)
    if isinstance(value, _zarrow.Tensor) and value is not self:
        values = _exchanged(memory, index, values, value._assignments)
    else:
        swaps.forget()
    memory[index] = values


def _exchanged(memory: Any, index: Any, values: Any, taken: int) -> Any:
    """Return the elements to write; the value may be a part of the same memory (`zarrow.arrays.swaps`)."""
    np = _zarrow._import("numpy")
    if isinstance(index, str | list) or not np.may_share_memory(memory, values):
        swaps.forget()
        return values
    items = index if isinstance(index, tuple) else (index,)
    # With "..." the result has axes, and is a view unless the index has arrays.
    target = memory[items if any(item is ... for item in items) else (*items, ...)]
    if not np.may_share_memory(memory, target):
        swaps.forget()
        return values
    return swaps.exchanged(_part(target), _part(values), taken, target.copy)


def _part(array: Any) -> swaps.Part:
    address = array.__array_interface__["data"][0]
    return swaps.Part(address, array.shape, array.strides, array.dtype, array)


def _tensor_ufunc(self: Any, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
    """Compute as NumPy does with the NumPy forms, also to a Tensor as `out=`.

    The result is NumPy's: its functions divide sums in place only if they are NumPy's arrays.
    """
    if "out" in options:
        options["out"] = tuple(map(numpy_form, options["out"]))
        swaps.forget()
    if "where" in options:
        options["where"] = numpy_form(options["where"])
    return getattr(ufunc, how)(*map(numpy_form, inputs), **options)
