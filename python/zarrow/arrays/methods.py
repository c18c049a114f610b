"""Methods and properties of the compiled classes that are written in Python.

The stubs document them like the compiled methods: `_help` gives a docstring to methods without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zarrow._zarrow import _help


def add_method(owner: type, name: str, function: Callable[..., Any]) -> None:
    """Add a method of this name to a class."""
    function.__name__, function.__qualname__ = name, f"{owner.__name__}.{name}"
    function.__doc__ = _help(function.__qualname__) or function.__doc__
    setattr(owner, name, function)


def add_property(owner: type, name: str, get: Callable[[Any], Any]) -> None:
    """Give a class a property of this name that cannot be set."""
    get.__name__, get.__qualname__ = name, f"{owner.__name__}.{name}"
    setattr(owner, name, property(get, doc=_help(f"{owner.__name__}.{name}")))
