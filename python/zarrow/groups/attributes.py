"""Attributes of arrays and groups: a mapping that stores each change.

>>> import zarrow
>>> temperature = zarrow.open("data.zarr")["temperature"]
>>> temperature.attrs["units"] = "K"
>>> temperature.attrs
{'units': 'K'}
>>> zarrow.open("data.zarr")["temperature"].attrs.pop("units")
'K'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Protocol, Self

from zarrow.groups.attribute_values import as_dict, tracked

__all__ = ["Attributes"]


class _Node(Protocol):
    def _attributes(self) -> dict[str, Any]: ...
    def _change_attributes(self, how: str, attributes: dict[str, Any]) -> None: ...


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group, by name: `attrs` of both.

    Reading returns the attributes that the Array or Group object knows: the stored ones when it was opened,
    and its own changes since. Every change is stored at once, without rewriting other attributes, so that
    writers of different attributes do not undo each other. A stored list or dict is a copy: to change it,
    take the value, change it and store it again. A change of the copy that is not stored gives a warning.

    Values are of the types of Python's `json`: None, bool, int of any size, float, str, lists and dicts
    of these with text as keys. Scalars and arrays of NumPy's are stored as the numbers or lists they are.
    NaN and infinities are stored as Python and zarr-python do, as `NaN` and `Infinity`, which strict readers
    of JSON refuse: for those store the text "NaN".

    Raises
    ------
    ReadOnlyError
        The store can only be read (a `PermissionError`).
    TypeError, ValueError
        `json` cannot encode the value. Nothing was changed then.
    NotFoundError
        The array or group has been erased (a `FileNotFoundError`).

    Warns
    -----
    ZarrowWarning
        A list or dict of a value was changed, and not stored again.

    Examples
    --------
    >>> import zarrow
    >>> attributes = zarrow.open("data.zarr").attrs
    >>> attributes.update(title="rain", years=[2001, 2002])
    >>> dict(attributes)
    {'title': 'rain', 'years': [2001, 2002]}
    >>> attributes == {"title": "rain", "years": [2001, 2002]}
    True
    """

    __slots__ = ("_node",)

    def __init__(self, node: _Node) -> None:
        self._node = node

    def __getitem__(self, key: str) -> Any:
        return tracked(key, self._node._attributes()[key])

    # `Mapping` takes every KeyError in these two for a missing key, also `NotFoundError` of an erased node.
    def __contains__(self, key: object) -> bool:
        return key in self._node._attributes()

    def get(self, key: str, default: Any = None) -> Any:
        """Return an attribute, or the default if it does not exist."""
        found = self._node._attributes()
        return tracked(key, found[key]) if key in found else default

    def __setitem__(self, key: str, value: Any) -> None:
        self._node._change_attributes("update", {key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._node._change_attributes("remove", {key: None})

    def __iter__(self) -> Iterator[str]:
        return iter(self._node._attributes())

    def __len__(self) -> int:
        return len(self._node._attributes())

    def __repr__(self) -> str:
        """Show the attributes as a dict does."""
        return repr(self.asdict())

    def pop(self, key: str, *default: Any) -> Any:
        """Remove an attribute and return its value; return the default if it does not exist."""
        found = self._node._attributes()
        if key not in found and default:
            return default[0]
        del self[key]
        return found[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an attribute; store the default first if it does not exist."""
        if key not in self:
            self[key] = default
        return self[key]

    def asdict(self) -> dict[str, Any]:
        """Return the attributes as a new dict."""
        return self._node._attributes()

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replace all attributes with these."""
        self._node._change_attributes("replace", as_dict(attributes))

    def update(self, *attributes: Any, **named: Any) -> None:
        """Store these attributes, all in one step; the others stay."""
        if len(attributes) > 1:
            raise TypeError(f"expected one dict of attributes, got {len(attributes)} arguments")
        given = as_dict(attributes[0]) if attributes else {}
        self._node._change_attributes("update", {**given, **named})

    def __ior__(self, other: Mapping[str, Any]) -> Self:
        """Store these attributes, as `update` does."""
        self.update(other)
        return self

    def clear(self) -> None:
        """Remove all attributes in one step."""
        self._node._change_attributes("replace", {})
