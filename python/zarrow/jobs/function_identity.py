"""Identifies the function of a plan, so that a plan with another function has another ledger.

1. A function of Python is its name, its code, its defaults and the values of its closure. Line numbers do not
   count, nor does the module, which depends on how a program is started.
2. A partial function or a method is a function and the values bound to it.
3. Anything else is its name, such as a function of NumPy, or its type and its pickled state.
4. Sets have no order: their elements are sorted. Other values are compared in pickled form.

Global variables are left out.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any


def identity(function: Callable[..., Any]) -> str:
    """Return a fingerprint: it is equal only for functions that compute the same.

    Raises
    ------
    TypeError
        The function holds a value that cannot be pickled, such as an open file.
    """
    return _identity(function, ())


def _identity(function: Callable[..., Any], around: tuple[object, ...]) -> str:
    """Return the text of a function. `around` are the functions that hold it: itself in a recursion."""
    match function:
        case FunctionType():
            if any(function is each for each in around):
                return function.__qualname__
            code, around = function.__code__, (*around, function)
            held = [
                function.__defaults__,
                function.__kwdefaults__,
                *map(_content, function.__closure__ or ()),
            ]
            return f"{function.__qualname__}({_code(code)}, {_value(held, around)})"
        case functools.partial():
            held = [function.args, function.keywords]
            return f"partial({_identity(function.func, around)}, {_value(held, around)})"
        case MethodType():
            return f"method({_identity(function.__func__, around)}, {_value(function.__self__, around)})"
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module and name:
        return f"{module}.{name}"
    return f"{type(function).__qualname__}({_pickled(function)})"


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # A variable without a value yet.
        return None


def _code(code: CodeType) -> str:
    """Return the instructions of a function with the names and constants that they use."""
    constants = [_code(each) if isinstance(each, CodeType) else _value(each) for each in code.co_consts]
    used = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    text = repr((code.co_code, used, constants))
    return hashlib.sha256(text.encode()).hexdigest()


def _value(value: Any, around: tuple[object, ...] = ()) -> str:
    each_value = functools.partial(_value, around=around)
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes():
            return f"{type(value).__name__} {value!r}"
        case tuple() | list():
            return f"{type(value).__name__} [{', '.join(map(each_value, value))}]"
        case dict():
            return f"dict {each_value(list(value.items()))}"
        case set() | frozenset():
            return f"set {{{', '.join(sorted(map(each_value, value)))}}}"
        case FunctionType() | MethodType() | functools.partial():
            return _identity(value, around)
    return _pickled(value)


def _pickled(value: Any) -> str:
    try:
        state = pickle.dumps(value)
    except Exception as error:
        raise TypeError(
            f"the function of a plan holds a {type(value).__name__}, which cannot be pickled: {error}"
        ) from error
    return hashlib.sha256(state).hexdigest()
