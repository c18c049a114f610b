"""Hints for parameters and names of other libraries' data sets, given to the classes of `zarrow.data`."""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypeVar

from zarrow._zarrow import Array, Group
from zarrow.hints.close_names import close_name
from zarrow.hints.unknown_names import to_type

_Class = TypeVar("_Class", bound=type)


def says_parameters(made: _Class) -> _Class:
    """Make a class say what to type for unknown parameters, and for nodes in place of a plan."""
    plain = vars(made)["__init__"]

    @functools.wraps(plain)
    def checked(self: Any, *given: Any, **options: Any) -> None:
        try:
            plain(self, *given, **options)
        except (TypeError, AttributeError):
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
    from zarrow.hints.familiar_options import LOADING

    parameters = [
        parameter
        for owner in made.__mro__
        if owner.__module__.startswith("zarrow.") and "__init__" in vars(owner)
        for parameter in inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
        if parameter.kind < parameter.VAR_KEYWORD and parameter.name != "self"
    ]
    known = list(dict.fromkeys(parameter.name for parameter in parameters))
    for name in options:
        if name not in known:
            hint = to_type(LOADING[name]) if name in LOADING else close_name(name, known)
            if made.__name__.endswith("Loader"):
                own = ".".join((*made.__module__.split(".")[:2], made.__name__))
                hint = hint.replace("zarrow.data.Loader(plan", f"{own}(plan")
            hint = hint or f"its parameters are {', '.join(known)}"
            raise TypeError(f"{made.__name__}() has no parameter {name!r}: {hint}") from None
    first = given[0] if given else options.get(known[0])
    if known[0] == "sources" and (
        isinstance(first, list | tuple) or any(isinstance(node, Array) for node in given[1:2])
    ):
        raise TypeError(
            'several arrays are sources by name: type zarrow.data.Plan({"x": array, "y": other})'
        ) from None
    if known[0] == "plan" and isinstance(first, Array | Group | str):
        node = "zarrow.open(path)" if isinstance(first, str) else type(first).__name__.lower()
        raise TypeError(
            f"plan must be a zarrow.data.Plan, found {type(first).__name__}: type zarrow.data.Plan({node})"
        ) from None
