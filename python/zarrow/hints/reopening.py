"""Lines that open a stored node again: its parent in zarrow, or the node in xarray.

1. A folder is shown by its path. Another store is `store` in the text, as the program passed it.
2. An array inside a group's folder is shown as its member, even if it was opened by its own path.
3. xarray opens a group if each array has names of dimensions, and one size for each name. This is
   checked for local groups, and assumed for others.
"""

from __future__ import annotations

import contextlib
from typing import Any

from zarrow import _zarrow
from zarrow.errors import ZarrowError, ZarrowWarning

_DATASET = "zarrow.xarray.open_zarr(path)"
_VARIABLE = "xarray.DataArray(array[...].numpy())"
_MOST_MEMBERS = 100


def with_places(text: str, node: Any) -> str:
    """Fill in where a node is stored."""
    if not any(part in text for part in (_DATASET, _VARIABLE, "{parent}", "{store}")):
        return text
    store, path, parent = _place(node)
    above, _, name = path.rpartition("/")
    if "{parent}" in text and not path:
        return "this is the root of its store, which has no parent"
    text = text.replace("{parent}", f"zarrow.open({store}{_argument('path', above)})").replace(
        "{store}", store
    )
    if isinstance(node, _zarrow.Group):
        return text.replace(_DATASET, f"zarrow.xarray.open_zarr({store}{_argument('group', path)})")
    if path and (parent is None or _is_dataset(parent)):
        opened = f"zarrow.xarray.open_zarr({store}{_argument('group', above)})[{_quoted(name)}]"
        return text.replace("read the array first: type " + _VARIABLE, f"type {opened}").replace(
            _VARIABLE, opened
        )
    if node.dimension_names and None not in node.dimension_names:
        text = text.replace(_VARIABLE, _VARIABLE.replace("())", "(), dims=array.dimension_names)"))
    return text.replace(".to_dataframe", '.to_dataframe("name")') if _VARIABLE[:-1] in text else text


def _place(node: Any) -> tuple[str, str, Any]:
    """Return the text for the store, the path in it, and the parent group if it is local (steps 1 and 2)."""
    store, open_group = node.__reduce__()[1][0], _zarrow._import("zarrow").open_group
    if isinstance(store, _zarrow.MemoryStore):
        shown, path = "store", node.path
    elif not isinstance(store, str) or "://" in store:
        return "store", node.path, None
    else:
        shown, path = _quoted(node.store), node.path
    from pathlib import Path

    with contextlib.suppress(ZarrowError, OSError):
        if path or not isinstance(store, str):
            return shown, path, open_group(store, path.rpartition("/")[0], mode="r")
        parent = open_group(Path(store).parent, mode="r")
        return _quoted(str(Path(node.store).parent)), Path(store).name, parent
    return shown, path, None


def _is_dataset(group: Any) -> bool:
    """Return whether xarray opens a group (step 3)."""
    sizes: dict[str, int] = {}
    if len(group) > _MOST_MEMBERS:
        return True
    with contextlib.suppress(ZarrowError, ZarrowWarning):  # a damaged member
        for _, array in group.arrays():
            names = array.dimension_names or ()
            if len(names) != array.ndim or None in names:
                return False
            pairs = zip(names, array.shape, strict=True)
            if any(sizes.setdefault(name, size) != size for name, size in pairs):
                return False
        return True
    return False


def _argument(name: str, path: str) -> str:
    return f", {name}={_quoted(path)}" if path else ""


def _quoted(text: str) -> str:
    return repr(text) if '"' in text or "\\" in text or not text.isprintable() else f'"{text}"'
