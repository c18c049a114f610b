"""Imports files as arrays and groups.

1. A node is built in a hidden place, and appears when it is complete, as with `create_array`; in stores that
   cannot do so, a group is filled in its place.
2. Headers are checked before anything is stored.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zarrow._zarrow import Group, MemoryStore, _create_whole_group, open
from zarrow.api.array_options import LayoutOptions, Store, check_names
from zarrow.api.creation import create_array, create_group, extents
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount
from zarrow.errors import NodeExistsError
from zarrow.files import npy, safetensors, table_import
from zarrow.files.elements import FileElements
from zarrow.files.formats import Format, format_of, unit_of
from zarrow.groups.places import node_at

if TYPE_CHECKING:
    from typing import Unpack

    from zarrow.api.typed import AnyNode


def import_file(
    file: str | os.PathLike[str],
    target: Store,
    path: str = "",
    *,
    format: Format | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    offset: int = 0,
    zarr_format: Literal[2, 3] = 3,
    dry_run: bool = False,
    progress: Progress | bool | None = None,
    **options: Unpack[LayoutOptions],
) -> AnyNode:
    """Store the elements of a file: as an array, or as a group for a table and for several tensors.

    Parts of about 64 MiB, or one chunk, are in memory at a time; a batch of rows of a table.

    Parameters
    ----------
    file
        The path of the file. It must not change until the call returns.
    target, path
        A store as for `create_array`, and the path of the new node.
    format
        By default by the end of the file's name: see `zarrow.files`.
    shape, dtype, offset
        Of a file of format `"raw"`: the shape, the type with its byte order, and where the elements begin.
    zarr_format, options
        As in `create_array`, for each array: `chunks`, `compressors`, `overwrite`, ... `chunks` of a table is
        the number of rows.
    dry_run
        Store nothing: check the file's header and the options, and return the new node without elements, in
        memory. The store is only asked whether the path is free.
    progress
        Called with the number of bytes that are stored, and of all; for a table, with rows. Or True for a
        bar in a terminal or a notebook.

    Returns
    -------
    Array or Group
        The new node. Columns of a table with missing values have a type with missing elements; dictionaries
        are decoded.

    Raises
    ------
    MetadataError
        The file is not of this format, or contradicts itself (a `ValueError`).
    UnsupportedError, ExchangeError
        It has elements of a type that is not supported, or pyarrow is not installed.
    NodeExistsError, CodecError, InvalidKeyError, StoreError, OSError
        As `create_array`, and errors of reading the file.

    Examples
    --------
    >>> import numpy as np, zarrow
    >>> np.arange(6, dtype=">i2").tofile("counts.bin")
    >>> zarrow.files.import_file("counts.bin", "counts.zarr", shape=(2, 3), dtype=">i2")[1].tolist()
    [3, 4, 5]
    """
    check_names(options, LayoutOptions.__annotations__, "of import_file")
    chosen = format_of(file, format)
    if chosen != "raw" and (shape is not None or dtype is not None or offset):
        raise TypeError(f"shape, dtype and offset are for raw files, and {chosen} files have their own")
    named: dict[str, Any] = {"zarr_format": zarr_format, **options}
    with (
        Path(file).open("rb", buffering=0) as opened,
        reporting(progress, "import", unit_of(chosen)) as report,
    ):
        if chosen in ("npy", "raw"):
            elements = npy.opened(opened) if chosen == "npy" else _raw(opened, shape, dtype, offset)
            if dry_run:
                _check_free(target, path, bool(named.pop("overwrite", False)))
                return create_array(MemoryStore(), path, shape=elements.shape, dtype=elements.dtype, **named)
            return create_array(
                target, path, data=_Reported(elements, Amount(report, elements.nbytes)), **named
            )
        if chosen == "safetensors":
            tensors, metadata = safetensors.opened(opened)
            whole = Amount(report, sum(each.nbytes for each in tensors.values()))

            def fill(group: Group) -> None:
                for name, each in tensors.items():
                    group.create_array(name, data=_Reported(each, whole), **options)
                if metadata:
                    group.attrs.update(metadata)

            def check(group: Group) -> None:
                for name, each in tensors.items():
                    group.create_array(name, shape=each.shape, dtype=each.dtype, **options)

        else:
            table = table_import.opened(opened, chosen)

            def fill(group: Group) -> None:
                table.store(group, options, report)

            def check(group: Group) -> None:
                table.create(group, options)

        overwrite = bool(options.pop("overwrite", False))
        planned = create_group(MemoryStore(), path, zarr_format=zarr_format)
        check(planned)
        if dry_run:
            _check_free(target, path, overwrite)
            return planned
        return _group(target, path, fill, zarr_format, overwrite)


def _group(
    target: Store,
    path: str,
    fill: Callable[[Group], None],
    zarr_format: Literal[2, 3],
    overwrite: bool,
) -> Group:
    """Create a group with members (step 2)."""
    is_created = _create_whole_group(
        target,
        path,
        {},
        fill,
        lambda: overwrite and node_at(target) is not None,
        zarr_format=zarr_format,
        overwrite=overwrite,
    )
    if not is_created:
        fill(create_group(target, path, zarr_format=zarr_format, overwrite=overwrite))
    return open_created(target, path)


def _check_free(target: Store, path: str, overwrite: bool) -> None:
    """Refuse an existing node, as its creation would."""
    existing = node_at(target, path)
    if existing is not None and not overwrite:
        raise NodeExistsError(
            f"{repr(existing.path) if existing.path else 'the root'} of {existing.store} exists: pass "
            "overwrite=True to replace it",
            node=existing,
        )


def open_created(target: Store, path: str) -> Group:
    """Open the group that was created."""
    group = open(target, path, mode="r+")
    if not isinstance(group, Group):
        raise TypeError(f"another program replaced {path!r} by an array")
    return group


def _raw(file: Any, shape: Any, dtype: Any, offset: int) -> FileElements:
    if shape is None or dtype is None:
        raise TypeError(
            "a raw file has no header: pass shape= and dtype=, such as shape=(100, 200), dtype='<f4'"
        )
    found, kind, begin = tuple(extents(shape)), np.dtype(dtype), operator.index(offset)
    if begin < 0 or any(extent < 0 for extent in found):
        raise ValueError(f"shape is {found} and offset is {begin}, expected numbers of at least 0")
    if kind.hasobject:
        raise TypeError(f"dtype is {kind}, expected the type of elements in a file, such as '<f4'")
    elements = FileElements(file, begin, found, kind)
    elements.check_length(os.fstat(file.fileno()).st_size)
    return elements


class _Reported(FileElements):
    """Elements that report each read as progress."""

    def __init__(self, elements: FileElements, amount: Amount) -> None:
        self.__dict__.update(elements.__dict__)
        self._amount = amount
        amount.begin(self.nbytes)

    def __getitem__(self, region: tuple[slice, ...]) -> Any:
        values = super().__getitem__(region)
        self._amount.add(math.prod(values.shape) * self.dtype.itemsize)
        return values
