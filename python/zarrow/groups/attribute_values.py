"""Lists and dicts among the values of attributes, which notice that they are changed and not stored.

1. A value is a copy of the stored attribute. Each container in it knows its top-level attribute.
2. A change marks the attribute as edited. Storing the container, by whichever way, takes the mark away.
3. When the last container of an edited attribute is dropped, or the program ends, a warning says that the
   edit is lost.
4. Copies (`copy`, `pickle`, slices) are plain lists and dicts.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from typing import Any

from zarrow.hints.calling_line import warn

_edited: weakref.WeakSet[Edits] = weakref.WeakSet()


class Edits:
    """Whether a value of an attribute was changed since it was read or stored."""

    __slots__ = ("__weakref__", "is_unstored", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.is_unstored = False

    def __del__(self) -> None:
        self.warn()

    def mark(self) -> None:
        """Note a change (step 2)."""
        if not self.is_unstored:
            self.is_unstored = True
            _edited.add(self)

    def warn(self) -> None:
        """Warn of a change that was not stored (step 3)."""
        if self.is_unstored:
            self.is_unstored = False
            warn(
                f"a change of attrs[{self.key!r}] is not stored, because the value is a copy: type value = "
                f"attrs[{self.key!r}], change value, and then attrs[{self.key!r}] = value; "
                "attrs.asdict() returns a copy to change"
            )


@atexit.register
def _warn_at_exit() -> None:
    for edits in list(_edited):
        edits.warn()


class AttributeList(list[Any]):
    """A list of an attribute."""

    __slots__ = ("edits",)
    edits: Edits

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        return list, (list(self),)


class AttributeDict(dict[str, Any]):
    """A dict of an attribute."""

    __slots__ = ("edits",)
    edits: Edits

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def _marking(change: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        self.edits.mark()
        return change(self, *arguments, **named)

    method.__name__ = method.__qualname__ = change.__name__
    method.__doc__ = change.__doc__
    return method


for _owner, _names in (
    (AttributeList, "append extend insert pop remove clear sort reverse"),
    (AttributeList, "__setitem__ __delitem__ __iadd__ __imul__"),
    (AttributeDict, "clear pop popitem setdefault update __setitem__ __delitem__ __ior__"),
):
    for _name in _names.split():
        setattr(_owner, _name, _marking(getattr(_owner, _name)))


def tracked(key: str, value: Any) -> Any:
    """Wrap a value of an attribute in containers that notice changes (step 1)."""
    return _tracked(value, Edits(key)) if isinstance(value, list | dict) else value


def _tracked(value: Any, edits: Edits) -> Any:
    container: AttributeList | AttributeDict
    if isinstance(value, list):
        container = AttributeList([_tracked(item, edits) for item in value])
    elif isinstance(value, dict):
        container = AttributeDict({name: _tracked(item, edits) for name, item in value.items()})
    else:
        return value
    container.edits = edits
    return container


def note_stored(value: Any) -> None:
    """Take the marks away from all containers in a value that is stored (step 2)."""
    if isinstance(value, AttributeList | AttributeDict):
        value.edits.is_unstored = False
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        note_stored(item)


def as_dict(attributes: Any) -> dict[str, Any]:
    """Return attributes as a new dict, empty for None.

    Raises
    ------
    TypeError
        The attributes are not a mapping.
    """
    if attributes is None:
        return {}
    try:
        return dict(attributes)
    except (TypeError, ValueError):
        kind = type(attributes).__name__
        raise TypeError(f'expected attributes as a dict, such as {{"units": "K"}}, got {kind}') from None
