"""Opening a group or an array, and reading a whole store at once.

>>> import zarrow
>>> zarrow.open_array("data.zarr", "temperature").shape
(48, 6, 8)
>>> zarrow.load("data.zarr", "station").tolist()
['Oslo', 'Rome', 'Quito']
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from zarrow._zarrow import Array, Group, _open_members, _read_each, _with_options, open
from zarrow.api.array_options import OPTIONS, ArrayOptions, Store, check_names, says_options
from zarrow.api.creation import create_array
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount
from zarrow.api.reported_reads import ENCODED_ARRAYS, load_members, read_array
from zarrow.errors import (
    NodeTypeError,
    NotFoundError,
    StaleHandleError,
    StorePermissionError,
    ZarrowError,
)
from zarrow.groups.descent import Way
from zarrow.interchange.lazy_arrays import estimated_nbytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from anndata import AnnData

    from zarrow import DecodedArray
    from zarrow.api.limits import DecodeLimits
    from zarrow.api.typed import AnyLoaded

__all__ = ["load", "open_array", "open_group"]


@says_options
def open_group(
    store: Store,
    path: str = "",
    *,
    mode: Literal["r", "r+", "a", "w", "w-", "x"] = "a",
    zarr_format: Literal[2, 3] | None = None,
    attributes: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    cache_bytes: int = 0,
    limits: DecodeLimits | None = None,
    durability: Literal["none", "file", "full"] = "none",
) -> Group:
    """Open a group; create it if it does not exist.

    Parameters
    ----------
    store, path, zarr_format, storage_options, cache_bytes, limits, durability
        As for `open`.
    mode
        As for `open`, except that "a" is the default, as in zarr-python. "r+" opens only an existing group.
    attributes
        Attributes to store in a new group, or to change in an existing one.

    Raises
    ------
    NodeTypeError
        The node is an array (a `TypeError`).
    NotFoundError, NodeExistsError, MetadataError, UnsupportedError, ReadOnlyError, StoreError
        As `open`.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open_group("new.zarr", attributes={"title": "rain"})
    >>> zarrow.open_group("new.zarr", mode="r").attrs["title"]
    'rain'
    """
    node = open(
        store,
        path,
        mode=mode,
        zarr_format=zarr_format,
        storage_options=storage_options,
        cache_bytes=cache_bytes,
        limits=limits,
        durability=durability,
    )
    if not isinstance(node, Group):
        raise _wrong_node("an array, not a group: zarrow.open_array opens it", node)
    if attributes:
        node.attrs.update(attributes)
    return node


@says_options
def open_array(
    store: Store,
    path: str = "",
    *,
    mode: Literal["r", "r+", "a", "w", "w-", "x"] = "a",
    zarr_format: Literal[2, 3] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    cache_bytes: int = 0,
    limits: DecodeLimits | None = None,
    durability: Literal["none", "file", "full"] = "none",
    **options: Unpack[ArrayOptions],
) -> Array:
    """Open an array; create it if it does not exist and its shape is given.

    Parameters
    ----------
    store, path, zarr_format, storage_options, cache_bytes, limits, durability
        As for `open`.
    mode
        "a", the default, opens an existing array, or creates it. "r" and "r+" open an existing array. "w"
        erases an existing node and creates the array. "w-" (or "x") creates it, and raises if a node exists.
    options
        Options of `create_array`, such as `shape` and `dtype` ("f8" by default), for a new array. An existing
        array keeps its own.

    Raises
    ------
    NotFoundError
        Nothing exists at the path, and no shape was given (a `FileNotFoundError`).
    NodeTypeError
        The node is a group (a `TypeError`).
    NodeExistsError, MetadataError, CodecError, UnsupportedError, ReadOnlyError, StoreError
        As `open` and `create_array`.

    Examples
    --------
    >>> import zarrow
    >>> log = zarrow.open_array("log.zarr", shape=(0, 2), dtype="f8")
    >>> log.append([[1.0, 2.0]])
    (1, 2)
    >>> zarrow.open_array("log.zarr", shape=(0, 2), dtype="f8").shape
    (1, 2)
    """
    opening: dict[str, Any] = {"cache_bytes": cache_bytes, "limits": limits, "durability": durability}
    store = _with_options(store, storage_options)
    return _open_or_create_array(store, path, mode, zarr_format, opening, options)


@says_options
def load(
    store: Store,
    path: str = "",
    *,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | bool | None = None,
) -> AnyLoaded:
    """Read an array, or all arrays of a group, into memory.

    The arrays of a group are read at once: a cloud store needs only two round trips more than for one array.
    A member with invalid or unsupported metadata is left out with a warning. If the store cannot read a
    member, `load` raises an error: a result is never incomplete because a request failed.

    Parameters
    ----------
    store, path, storage_options
        As for `open`.
    progress
        Called with the bytes of the elements that were read, and of all, where the size of text is a guess;
        or True for a bar in a terminal or a notebook. Small arrays are read together, large arrays of numbers
        part by part, and other arrays at once. An AnnData is read without reports.

    Returns
    -------
    Tensor, Variable, MaskedTensor or MaskedVariable
        The elements of the array, in new memory.
    dict
        For a group: the elements of each array by name, and such a dict for each member group. A group that
        stands for an array, such as a categorical of AnnData, is that array.
    anndata.AnnData
        For a group that stores one, as `anndata.read_zarr` reads it.

    Raises
    ------
    NotFoundError, MetadataError, CodecError, OutOfMemoryError, StoreError
        As `open` and `Array.read`. An AnnData that `save` did not finish is a `MetadataError`.
    UnsupportedError
        An AnnData has an element of another encoding, such as an awkward array.
    StaleHandleError
        The group was replaced during each of twenty reads. After fewer, the new AnnData is read whole.

    Warns
    -----
    ZarrowWarning
        The group looks like an AnnData, but does not say that it is one, or its `encoding-type` is unknown:
        the result is a dict.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("pair.zarr", x=[1, 2], y=[0.5])
    >>> zarrow.load("pair.zarr")["x"].tolist()
    [1, 2]
    """
    source = _with_options(store, storage_options)
    seen: list[list[object]] = []
    for _ in range(_LOADS):
        try:
            node, members = _open_members(source, path)
        except (NotFoundError, StorePermissionError):
            # A folder that is replaced while it is opened loses its document: then the new one is opened.
            if not (isinstance(source, str | os.PathLike) and os.path.isdir(source)):  # noqa: PTH112
                raise
            folders = _folders(source, path)
            if folders in seen or len(seen) == _REPLACEMENTS:
                raise
            seen.append(folders)
            continue
        seen = []
        if members is None:
            return _load_array(node, progress)
        # An AnnData is read after one look at the group's document and before the next, which must agree.
        before = node._document_version()
        try:
            is_anndata, loaded = _load_group(node, members, progress)
        except ZarrowError:
            # The members of a group that another process removes go one by one.
            if _is_unchanged(node, before):
                raise
        else:
            if not is_anndata or _is_unchanged(node, before):
                return loaded
    text = f"this group was replaced during each of {_LOADS} reads"
    raise StaleHandleError(text, node=node)


# Maximum number of reads of a group, if other processes replace it during each.
_LOADS = 20

# Maximum number of replacements of a folder during attempts to open a node in it.
_REPLACEMENTS = 3


def _folders(source: str | os.PathLike[str], path: str) -> list[object]:
    """Return what changes if the folder of a node, or one above it, is replaced."""
    found: list[object] = []
    for part in ("", *path.split("/")):
        source = os.path.join(source, part)  # noqa: PTH118
        try:
            about = os.stat(source)  # noqa: PTH116
        except OSError:
            found.append(None)
        else:
            found.append((about.st_dev, about.st_ino, about.st_mtime_ns))
    return found


def _is_unchanged(node: Group, before: int | None) -> bool:
    """Return whether the document of a group still has the version `before`."""
    try:
        return node._document_version() == before != 0
    except StorePermissionError:
        # A folder that was replaced is inaccessible while it is removed.
        return False


def _load_array(array: Array, progress: Progress | bool | None) -> DecodedArray:
    """Read an array."""
    if progress is None or progress is False:
        elements: DecodedArray = array[...]
        return elements
    with reporting(progress, "load") as report:
        return read_array(array, Amount(report, estimated_nbytes(array)))


def _load_group(
    node: Group, members: list[tuple[str, Any]], progress: Progress | bool | None
) -> tuple[bool, DecodedArray | AnnData | dict[str, Any]]:
    """Read all of a group; return whether it is an AnnData, and its elements."""
    if node.attrs.get("encoding-type") is not None or any(name == "obs" for name, _ in members):
        from zarrow.anndata.elements import is_whole, load_anndata

        if is_whole(node, members):
            node.refresh()
            return True, load_anndata(node.items())
    if node.attrs.get("encoding-type") in ENCODED_ARRAYS:
        return False, node.read()
    way = Way().to(node)
    if progress is None or progress is False:
        return False, _load_members(members, way)
    with reporting(progress, "load") as report:
        return False, load_members(members, way, Amount(report))


def _load_members(members: list[tuple[str, Any]], way: Way) -> dict[str, Any]:
    """Read all arrays among the members at once; groups become nested dicts."""
    arrays = {name: member for name, member in members if isinstance(member, Array)}
    found: dict[str, Any] = dict(zip(arrays, _read_each(list(arrays.values())), strict=True))
    for name, below in members:
        if isinstance(below, Group):
            stands_for_array = below.attrs.get("encoding-type") in ENCODED_ARRAYS
            found[name] = below.read() if stands_for_array else _load_members(below.items(), way.to(below))
    return found


def _open_or_create_array(
    store: Any, path: str, mode: Any, zarr_format: Any, opening: dict[str, Any], options: Mapping[str, Any]
) -> Array:
    """Open an array as `open` and `open_array` do, with options for a new one."""
    check_names(options, [*OPTIONS, *opening, "mode", "storage_options", "zarr_format"], "of open")
    if mode in ("r", "r+") and options:
        said = ", ".join(options)
        raise TypeError(f'mode {mode!r} opens an existing array: leave out {said}, or pass mode="a" or "w"')
    if mode in ("r", "r+", "a"):
        try:
            node = open(store, path, mode="r+" if mode == "a" else mode, zarr_format=zarr_format, **opening)
        except NotFoundError:
            if mode != "a" or not ("shape" in options or "data" in options):
                raise
        else:
            if not isinstance(node, Array):
                raise _wrong_node("a group, not an array: zarrow.open_group opens it", node)
            return node
    elif mode not in ("w", "w-", "x"):
        raise ValueError(f'mode is {mode!r}, expected "r", "r+", "a", "w" or "w-"')
    given: dict[str, Any] = {"overwrite": mode == "w", **options}
    if given.get("data") is None and given.get("dtype") is None:
        given["dtype"] = "f8"  # as in zarr-python
    durability = opening["durability"]
    array = create_array(store, path, zarr_format=zarr_format or 3, durability=durability, **given)
    if opening["cache_bytes"] or opening["limits"]:
        array = open(store, path, mode="r+", **opening)
    return array


def _wrong_node(text: str, node: Array | Group) -> NodeTypeError:
    return NodeTypeError(f"this is {text}", node=node)
