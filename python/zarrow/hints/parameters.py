"""Hints for parameters and names of other libraries' data sets, given to the classes of `zarrow.data`."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from zarrow import _zarrow
from zarrow._zarrow import Array, Group
from zarrow.hints.close_names import close_name, to_type

_Class = TypeVar("_Class", bound=type)

# Parameters of other libraries with the same values as parameters here.
_RANKS = {"num_replicas": "world", "num_shards": "world", "world_size": "world", "shard_id": "rank"}

# Values of options that may be arrays, or names of them.
_NAMED = (str, list, tuple, os.PathLike, Array, Group)


def says_parameters(made: _Class) -> _Class:
    """Make a class say what to type for unknown parameters, and for nodes in place of a plan."""
    plain = vars(made)["__init__"]

    @functools.wraps(plain)
    def checked(self: Any, *given: Any, **options: Any) -> None:
        try:
            plain(self, *given, **options)
        except Exception:
            _check(type(self), given, options)
            raise

    setattr(made, "__init__", checked)  # noqa: B010
    if not hasattr(made, "__getattr__"):
        setattr(made, "__getattr__", _missing)  # noqa: B010
    if not hasattr(made, "__getitem__"):
        setattr(made, "__getitem__", _subscripted)  # noqa: B010
    return made


def _subscripted(self: Any, index: Any, /) -> Any:
    """Refuse an index; Python also calls this to iterate over a plan.

    Raises
    ------
    TypeError
        Always; the message says how to get batches and samples.
    """
    plan = _plan_of(self)
    raise TypeError(
        f"{type(self).__name__!r} object has no elements: type zarrow.data.Loader({plan}) for batches, or "
        f"zarrow.data.RandomAccess({plan})[{index!r}] for a sample"
    )


def _plan_of(self: Any) -> str:
    is_plan = hasattr(type(self), "where")
    return "loader.plan" if "plan" in vars(self) else "plan" if is_plan else "zarrow.data.Plan(source)"


def _missing(self: Any, name: str, /) -> Any:
    """Raise an AttributeError that says what to type."""
    from zarrow.hints.familiar_loading import NAMES

    plain = f"{type(self).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(plain, name=name)
    text = close_name(name, dir(type(self)))
    if name in NAMES:
        text = to_type(NAMES[name].replace("{plan}", _plan_of(self)))
    raise AttributeError(f"{plain}: {text}" if text else plain, name=name)


def _check(made: type, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse a call that `made` does not take.

    Raises
    ------
    TypeError
        The message says what to type.
    """
    known, is_own = _known(made), made.__module__.startswith("zarrow.")
    first = given[0] if given else options.get(known[0])
    plan = _zarrow._import("zarrow.data").Plan
    if isinstance(first, plan):
        known = [name for name in known if name not in _known(plan)[1:]]
    unknown = {name: value for name, value in options.items() if name not in known}
    if unknown:
        hints = {repr(name): _of_parameter(made, known, name, value) for name, value in unknown.items()}
        others = {
            name: value
            for name, value in unknown.items()
            if not hints[repr(name)] and isinstance(value, _NAMED)
        }
        if others and (text := _of_values(_own_name(made), first, others)):
            rest = {name: hint for name, hint in hints.items() if name[1:-1] not in others}
            hints = {", ".join(map(repr, others)): text, **rest}
        listed = f"its parameters are {', '.join(known)}"
        parts = [f"{name}: {hint or close_name(name[1:-1], known) or listed}" for name, hint in hints.items()]
        raise TypeError(f"{made.__name__}() has no parameter {'; no '.join(parts)}") from None
    if is_own and known[0] in ("plan", "sources") and (hint := _of_positions(given[1:], known)):
        raise TypeError(f"{made.__name__}() takes no such argument by position: {hint}") from None


def _known(made: type) -> list[str]:
    """Return the names of all parameters, `**options` included."""
    parameters = [
        parameter
        for owner in made.__mro__[:-1]
        if "__init__" in vars(owner)
        for parameter in list(inspect.signature(owner.__init__).parameters.values())[1:]  # type: ignore[misc]
    ]
    names = [parameter.name for parameter in parameters if parameter.kind < parameter.VAR_KEYWORD]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names += _zarrow._import("zarrow.data.loader_options").LoaderOptions.__annotations__
    return list(dict.fromkeys(names))


def _of_parameter(made: type, known: list[str], name: str, value: Any) -> str:
    """Return what to type for a parameter of another class or library; empty if it is unknown."""
    from zarrow.hints.familiar_options import LOADING

    text = LOADING.get(name, f"{name}={value!r}")
    if name in _RANKS and isinstance(value, int):
        text = f"{_RANKS[name]}={value}"
    if name in LOADING and (value is None or value is False):
        text = 'order="sequential"' if name == "shuffle" and value is False else "nothing: leave it out"
    parameter = text.partition("=")[0]
    if name in LOADING and parameter in known:
        return to_type(text)
    torch = sys.modules.get("torch.utils.data")
    if torch and issubclass(made, torch.Dataset) and name in inspect.signature(torch.DataLoader).parameters:
        size = "batch_size=None, " if "batch_size" in known else ""
        return f"type torch.utils.data.DataLoader(dataset, {size}{name}={value!r})"
    data = _zarrow._import("zarrow.data")
    for other, subject in ((data.Plan, "array"), (data.Loader, "plan")):
        if parameter in _known(other)[1:]:
            call = text.partition(", which")[0].partition(", or ")[0]
            return f"type zarrow.data.{other.__name__}({subject}, {call})"
    return to_type(text) if name in LOADING else ""


def _own_name(made: type) -> str:
    return ".".join((*made.__module__.split(".")[:2], made.__name__))


def _of_values(made: str, first: Any, unknown: dict[str, Any]) -> str:
    """Return what to type for options with arrays, or names of arrays, as values; else empty."""
    values = list(unknown.values())
    is_one, is_text = len(values) == 1, all(isinstance(value, str) for value in values)
    if all(isinstance(value, Array) for value in values) and (first is not None or not is_one):
        named = ", ".join(f'"{name}": array' for name in unknown)
        return f"type {made}({{{named}}})"
    if first is None and is_text and not is_one:
        return f"type {made}(path, fields={unknown})"
    if first is None and isinstance(values[0], str | os.PathLike | Array | Group):
        return f"type {made}({_shown(values[0])})"
    if isinstance(values[0], list | tuple) and all(isinstance(name, str) for name in values[0]):
        return f"type fields={list(values[0])} for tuples, or a dict of names for dicts"
    return f"type fields={unknown}" if is_text and all(_has(first, value) for value in values) else ""


def _has(source: Any, name: str) -> bool:
    """Return whether a source, or the path of one, has a member."""
    try:
        return name in (source if isinstance(source, Group | Mapping) else _zarrow.open(source, mode="r"))
    except Exception:  # a hint must not hide the error itself
        return False


def _of_positions(others: tuple[Any, ...], known: list[str]) -> str:
    """Return what to type for arguments behind the first one; empty if they may be right."""
    for value in others:
        if isinstance(value, Array | Group):
            return "type [array, other] for several arrays"
        if isinstance(value, str | list | tuple | Mapping):
            return f"type fields={list(value) if isinstance(value, tuple) else value!r}"
        if callable(value):
            return "type transform=function"
        if isinstance(value, int) and known[0] == "plan":
            return f"type batch_size={value}"
    return ""


def _shown(source: Any) -> str:
    return type(source).__name__.lower() if isinstance(source, Array | Group) else repr(str(source))
