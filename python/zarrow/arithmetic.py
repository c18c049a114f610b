"""What decoded arrays do as values: operators, reductions and conversions, all of them NumPy's.

1. Every layout has a form in NumPy, which its method `numpy` gives: a view of a Tensor, `numpy.ma` over the
   memory of a MaskedTensor, a new array of strings.
2. An operator or a method is that of this form. Its result is NumPy's too: an array or a scalar.
3. An operator that works in place writes to the memory of a Tensor, and gives the Tensor. One element without
   axes is a value, as in NumPy: the operator gives a new one, and the memory stays as it is.
4. The classes get them when zarrow is imported; NumPy is not, before one of them is called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from zarrow import _zarrow

BINARY = (
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
)
UNARY = ("neg", "pos", "abs", "invert")
METHODS = (
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "astype",
    "clip",
    "cumprod",
    "cumsum",
    "dot",
    "flatten",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "ravel",
    "repeat",
    "round",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "tobytes",
    "var",
)


def numpy_form(value: Any) -> Any:
    """Give the NumPy form of a decoded array, and anything else as it is (step 1)."""
    return value.numpy() if isinstance(value, _zarrow.DecodedArray) else value  # type: ignore[attr-defined]


def add_to_classes() -> None:
    """Give the classes their operators and methods (step 4)."""
    for name in BINARY:
        apply = getattr(operator, f"__{name}__")
        _add(_zarrow.DecodedArray, f"__{name}__", _binary(apply))
        _add(_zarrow.DecodedArray, f"__r{name}__", _reflected(apply))
        _add(_zarrow.Tensor, f"__i{name}__", _in_place(getattr(operator, f"__i{name}__")))
    _add(_zarrow.DecodedArray, "__divmod__", _binary(divmod))
    _add(_zarrow.DecodedArray, "__rdivmod__", _reflected(divmod))
    for name in UNARY:
        _add(_zarrow.DecodedArray, f"__{name}__", _unary(getattr(operator, f"__{name}__")))
    for name in METHODS:
        _add(_zarrow.DecodedArray, name, _method(name))
    for name, function in (("__iter__", _iterate), ("__str__", _text), ("item", _item)):
        _add(_zarrow.DecodedArray, name, function)
    _add(_zarrow.Tensor, "__index__", _unary(operator.index))
    _add(_zarrow.Tensor, "__complex__", _unary(complex))
    _add(_zarrow.Tensor, "__setitem__", _set_item)
    for layout in (_zarrow.Variable, _zarrow.MaskedTensor, _zarrow.MaskedVariable):
        _add(layout, "__bool__", _unary(bool))
    for layout in (_zarrow.MaskedTensor, _zarrow.MaskedVariable):
        # NumPy's functions, and its operators with an array of NumPy on the left, keep the mask by this.
        _add(layout, "__array_ufunc__", _array_ufunc)
        _add(layout, "__float__", _unary(float))
        _add(layout, "__int__", _unary(int))
        _add(layout, "__format__", _format)


def _add(layout: type, name: str, function: Callable[..., Any]) -> None:
    function.__name__, function.__qualname__ = name, f"{layout.__name__}.{name}"
    setattr(layout, name, function)


def _binary(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any, /) -> Any:
        return apply(self.numpy(), numpy_form(other))

    method.__doc__ = (
        "As NumPy does it, element by element; gives a NumPy array, masked where elements are missing."
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
        apply(self.numpy(), numpy_form(other))
        return self

    method.__doc__ = "As NumPy does it, in the memory of this tensor; without axes it gives a new value."
    return method


def _unary(apply: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any, /) -> Any:
        return apply(self.numpy())

    method.__doc__ = "As NumPy does it."
    return method


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        values = getattr(self.numpy(), name)
        return values(*map(numpy_form, arguments), **options)

    method.__doc__ = (
        f"As `numpy.ndarray.{name}`, or as that of `numpy.ma` where elements may be missing.\n\n"
        "The result is NumPy's. It shares memory where NumPy's would."
    )
    return method


def _array_ufunc(self: Any, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
    """Give what a function of NumPy gives for `numpy.ma`."""
    inputs = tuple(map(numpy_form, inputs))
    # That of `numpy.ma`, where there is one, leaves out what is missing, such as a zero to divide by.
    of_masked = getattr(_zarrow._import("numpy").ma, ufunc.__name__, None)
    if how == "__call__" and of_masked is not None and not options:
        return of_masked(*inputs)
    return getattr(ufunc, how)(*inputs, **options)


def _format(self: Any, specification: str, /) -> str:
    """Format the one element, as in `f"{masked:.2f}"`; without a specification, all as `str` does."""
    return format(self.item(), specification) if specification else str(self)


def _iterate(self: Any) -> Iterator[Any]:
    """Give one item of the first axis after the other, as indexing with an integer does."""
    if self.ndim == 0:
        raise TypeError("an array of no axes has nothing to iterate over; .item() gives its element")
    return (self[position] for position in range(len(self)))


def _text(self: Any) -> str:
    """Give the values as text, as NumPy writes them; of one element without axes, the element's."""
    return str(self.item() if self.ndim == 0 else self.numpy())


def _item(self: Any) -> Any:
    """Give the one element as a Python object, None where it is missing.

    Raises
    ------
    ValueError
        There is not exactly one element.
    """
    if self.size != 1:
        raise ValueError(f"an array of {self.size} elements has no single item; .tolist() gives them all")
    elements = self.tolist()
    for _ in range(self.ndim):
        elements = elements[0]
    return elements


def _set_item(self: Any, index: Any, value: Any, /) -> None:
    """Write values to part of the memory, by any index of NumPy and with its casts."""
    from zarrow.indexing import numpy_index

    self.numpy()[numpy_index(index)] = numpy_form(value)
