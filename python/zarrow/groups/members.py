"""Methods of a Group, written in Python, that list and create members.

The stub `_group.pyi` documents each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Group, _import
from zarrow.api import creation, filled_arrays
from zarrow.api.array_options import says_options
from zarrow.api.consolidation import consolidate_group
from zarrow.arrays.methods import add_method, add_property
from zarrow.errors import NodeExistsError, NodeTypeError
from zarrow.groups import many_arrays, rows
from zarrow.groups.descent import nodes_below

if TYPE_CHECKING:
    from typing import Unpack

    from zarrow.api.array_options import LayoutOptions
    from zarrow.ome import Multiscales


def add_to_class() -> None:
    """Give the class Group these methods."""
    for function in (
        array_keys,
        array_values,
        create_dataset,
        empty,
        full,
        get_array,
        get_group,
        group_keys,
        group_values,
        members,
        nmembers,
        ones,
        require_array,
        require_dataset,
        require_groups,
        zeros,
    ):
        add_method(Group, function.__name__, function)
    add_method(Group, "create_group", says_options(Group.create_group))
    for node in (Array, Group):
        add_method(node, "__enter__", _enter)
        add_method(node, "__exit__", _exit)
    add_method(Group, "append", rows.append)
    add_method(Group, "consolidate_metadata", consolidate_group)
    add_method(Group, "create_array", creation.create_array_in)
    add_method(Group, "create_arrays", many_arrays.create_arrays)
    add_property(Group, "multiscales", _multiscales)


def _multiscales(self: Group) -> Multiscales:
    from zarrow.ome.reading import multiscales

    return multiscales(self)


def _enter(self: Array | Group) -> Array | Group:
    return self


def _exit(self: Array | Group, *_: object) -> None:
    pass


def members(self: Group, max_depth: int | None = 0) -> tuple[tuple[str, Array | Group], ...]:
    return tuple(nodes_below(self, max_depth))


def nmembers(self: Group, max_depth: int | None = 0) -> int:
    return len(members(self, max_depth))


def get_array(self: Group, path: str) -> Array:
    return _array(self, path, self[path])


def _array(group: Group, path: str, node: Array | Group) -> Array:
    if not isinstance(node, Array):
        text = f"{path!r} is a group, expected an array: type group[{path!r}]"
        raise NodeTypeError(text, store=group.store)
    return node


def get_group(self: Group, path: str) -> Group:
    found = self[path]
    if not isinstance(found, Group):
        text = f"{path!r} is an array, expected a group: type group[{path!r}]"
        raise NodeTypeError(text, store=self.store)
    return found


def get_arrays(group: Group, *paths: str) -> list[Array]:
    """Return several arrays, after one round of requests."""
    return [_array(group, path, node) for path, node in zip(paths, group._get_each(list(paths)), strict=True)]


def array_keys(self: Group) -> list[str]:
    return self._keys_of(True)


def array_values(self: Group) -> list[Array]:
    return [array for _, array in self.arrays()]


def group_keys(self: Group) -> list[str]:
    return self._keys_of(False)


def group_values(self: Group) -> list[Group]:
    return [group for _, group in self.groups()]


def require_groups(self: Group, *names: str) -> tuple[Group, ...]:
    return tuple(self.require_group(name) for name in names)


def require_array(
    self: Group,
    name: str,
    *,
    shape: int | Sequence[int],
    dtype: Any = None,
    exact: bool = False,
    fill_value: Any = None,
    **options: Unpack[LayoutOptions],
) -> Array:
    dtype = "f8" if dtype is None else dtype
    member = self.get(name)
    if member is None:
        with contextlib.suppress(NodeExistsError):  # another has created it since
            return creation.create_array_in(
                self, name, shape=shape, dtype=dtype, fill_value=fill_value, **options
            )
    found = member if isinstance(member, Array) else get_array(self, name)
    if found.shape != tuple(creation.extents(shape)):
        raise TypeError(
            f"{name!r} has shape {found.shape}, expected {shape}: open it as group[{name!r}], or erase it"
        )
    if not _fits(found, dtype, exact):
        raise TypeError(
            f"{name!r} has dtype {found.dtype}, expected {dtype}: open it as group[{name!r}], or erase it"
        )
    return found


def _fits(array: Array, dtype: Any, exact: bool) -> bool:
    """Return whether the array has the type, or one that NumPy casts to it without loss."""
    np = _import("numpy")
    try:
        requested = np.dtypes.StringDType() if dtype in (str, "string") else np.dtype(dtype)
    except TypeError:  # a name of Zarr's, of which NumPy knows nothing
        return bool(array.data_type == dtype)
    return bool(array.dtype == requested if exact else np.can_cast(array.dtype, requested))


def create_dataset(
    self: Group, name: str, shape: Any = None, dtype: Any = None, data: Any = None, **options: Any
) -> Array:
    if data is None and dtype is None:
        dtype = "f8"
    options = _with_separator(self, options)
    return creation.create_array_in(self, name, shape=shape, dtype=dtype, data=data, **options)


def require_dataset(
    self: Group,
    name: str,
    shape: int | Sequence[int],
    dtype: Any = None,
    *,
    exact: bool = False,
    **options: Any,
) -> Array:
    options = _with_separator(self, options)
    return require_array(self, name, shape=shape, dtype=dtype, exact=exact, **options)


def _with_separator(group: Group, options: dict[str, Any]) -> dict[str, Any]:
    """Rename the option `dimension_separator` of zarr-python 2 to its current name."""
    rest = dict(options)
    separator = rest.pop("dimension_separator", None)
    if separator is None:
        return rest
    name = "v2" if group.zarr_format == 2 else "default"
    return {"chunk_key_encoding": {"name": name, "separator": separator}, **rest}


def empty(
    self: Group,
    name: str,
    shape: int | Sequence[int],
    *,
    dtype: Any = "f8",
    **options: Unpack[LayoutOptions],
) -> Array:
    return full(self, name, shape, None, dtype=dtype, **options)


def zeros(
    self: Group,
    name: str,
    shape: int | Sequence[int],
    *,
    dtype: Any = "f8",
    **options: Unpack[LayoutOptions],
) -> Array:
    return full(self, name, shape, filled_arrays.zero_of(dtype), dtype=dtype, **options)


def ones(
    self: Group,
    name: str,
    shape: int | Sequence[int],
    *,
    dtype: Any = "f8",
    **options: Unpack[LayoutOptions],
) -> Array:
    return full(self, name, shape, 1, dtype=dtype, **options)


def full(
    self: Group,
    name: str,
    shape: int | Sequence[int],
    fill_value: Any,
    *,
    dtype: Any = "f8",
    **options: Unpack[LayoutOptions],
) -> Array:
    return creation.create_array_in(self, name, shape=shape, dtype=dtype, fill_value=fill_value, **options)
