"""Exports arrays and tables to files.

1. A file is written in the same folder under another name, and renamed when it is complete.
2. Parts of whole chunks are read one after the other, and written at their places in the file.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from zarrow._zarrow import Array, Group, open
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress, reporting
from zarrow.errors import DataTypeError, NodeTypeError
from zarrow.files import npy, safetensors
from zarrow.files.elements import FileElements
from zarrow.files.formats import Format, format_of, pyarrow, unit_of
from zarrow.files.hidden_file import hidden_file
from zarrow.interchange import lazy_arrays


def export_file(
    source: Array | Group | Store,
    file: str | os.PathLike[str],
    *,
    format: Format | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Progress | bool | None = None,
) -> None:
    """Write an array, or a table or the arrays of a group, to a file of another format.

    Parts of about 64 MiB, or one chunk, are in memory at a time. A file that exists is replaced in one step.

    Parameters
    ----------
    source
        An array for `"npy"` and `"raw"`; an array or a group for `"safetensors"`, which has all arrays below
        the group by their paths, and its attributes of type text; a group with a table for
        `"parquet"` and `"arrow"`, as in `Group.to_arrow`. Or a store as `open` takes it.
    file
        The path of the file.
    format
        By default by the end of the file's name: see `zarrow.files`.
    overwrite
        Replace an existing file.
    dry_run
        Write nothing: check the types of the elements, and that the file's name is free.
    progress
        Called with the number of bytes that are exported, and of all; for a table, with rows. Or True for a
        bar in a terminal or a notebook.

    Raises
    ------
    FileExistsError
        The file exists and `overwrite` is not passed, or it is a folder or device.
    NodeTypeError
        The format takes no such node.
    DataTypeError
        The format has no such elements.
    UnsupportedError
        pyarrow is not installed.
    OSError, StoreError, CodecError
        The file cannot be written, or the array cannot be read. The file is as before.

    Examples
    --------
    >>> import numpy as np, zarrow
    >>> zarrow.save("rain.zarr", np.arange(6).reshape(2, 3))
    >>> zarrow.files.export_file("rain.zarr", "rain.npy")
    >>> np.load("rain.npy").tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    chosen = format_of(file, format)
    node = source if isinstance(source, Array | Group) else open(source, mode="r")
    with reporting(progress, "export", unit_of(chosen)) as report:
        if chosen not in ("parquet", "arrow"):
            _export_arrays(node, file, chosen, overwrite, dry_run, report)
        elif isinstance(node, Group):
            _export_table(node, file, chosen, overwrite, dry_run, report)
        else:
            raise _wrong(node, chosen, "the group of a table")


def _export_arrays(
    node: Array | Group,
    file: str | os.PathLike[str],
    chosen: Format,
    overwrite: bool,
    dry_run: bool,
    progress: Progress | None,
) -> None:
    arrays = _arrays(node, chosen)
    types = {name: _type_of(array, chosen) for name, array in arrays.items()}
    _check_free(Path(file), overwrite)
    if dry_run:
        return
    with _written(file, overwrite) as opened:
        targets = _begun(opened, chosen, node, arrays, types)
        total, done = sum(target.nbytes for target in targets.values()), 0
        # A file of this length fails now if the disk is full, or if it would be too long.
        _allocate(opened, opened.tell() + total)
        for name, target in targets.items():
            unit = arrays[name].chunks or (1,) * len(target.shape)
            for region, values in lazy_arrays.parts_of(arrays[name])(list(unit)):
                target[region] = values.numpy()
                done += math.prod(part.stop - part.start for part in region) * target.dtype.itemsize
                if progress is not None:
                    progress(done, total)


def _arrays(node: Array | Group, chosen: Format) -> dict[str, Array]:
    if isinstance(node, Array):
        return {node.path.rpartition("/")[2] or "data": node}
    if chosen != "safetensors":
        raise _wrong(node, chosen, "an array")
    return {
        path: member for path, member in sorted(node.members(max_depth=None)) if isinstance(member, Array)
    }


def _wrong(node: Array | Group, chosen: Format, expected: str) -> NodeTypeError:
    kind = "an array" if isinstance(node, Array) else "a group"
    return NodeTypeError(
        f"{node.name!r} is {kind}, expected {expected} for a file of format {chosen}", node=node
    )


def _type_of(array: Array, chosen: Format) -> np.dtype[Any]:
    """Return the type of the elements in a file."""
    kind = array.data_type.get("name") if isinstance(array.data_type, Mapping) else array.data_type
    dtype = None if kind == "zarrs.optional" else np.dtype(array.dtype)
    if dtype is None or dtype.hasobject or dtype.kind in "TO":
        raise DataTypeError(
            f"{array.name!r} has elements of type {kind}, and {chosen} files have plain numbers: export the "
            "group as .parquet or .arrow",
            node=array,
        )
    return dtype.newbyteorder("<") if chosen == "raw" else dtype


def _begun(
    file: BinaryIO,
    chosen: Format,
    node: Array | Group,
    arrays: Mapping[str, Array],
    types: Mapping[str, np.dtype[Any]],
) -> dict[str, FileElements]:
    """Write the header, and return the elements to write."""
    if chosen == "safetensors":
        attributes = node.attrs if isinstance(node, Group) else {}
        described = {name: (array.shape, types[name]) for name, array in arrays.items()}
        return safetensors.begun(file, described, attributes)
    ((name, array),) = arrays.items()
    if chosen == "npy":
        return {name: npy.begun(file, array.shape, types[name])}
    return {name: FileElements(file, 0, array.shape, types[name])}


def _export_table(
    group: Group,
    file: str | os.PathLike[str],
    chosen: Format,
    overwrite: bool,
    dry_run: bool,
    progress: Progress | None,
) -> None:
    arrow = pyarrow("pyarrow")
    # Parquet has lists, which every reader knows.
    rows = group.to_arrow(layout="nested" if chosen == "parquet" else "tensor")
    total, done = rows.num_rows, 0
    reader = arrow.RecordBatchReader.from_stream(rows)
    _check_free(Path(file), overwrite)
    if dry_run:
        return
    with _written(file, overwrite) as opened:
        make = (
            pyarrow("pyarrow.parquet").ParquetWriter
            if chosen == "parquet"
            else pyarrow("pyarrow.ipc").new_file
        )
        with make(opened, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                done += batch.num_rows
                if progress is not None:
                    progress(done, total)


def _check_free(path: Path, overwrite: bool) -> None:
    """Refuse to replace a file, unless it is asked for, and a folder that does not exist."""
    if not path.parent.exists():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
    if path.exists() and not path.is_file():
        # A folder, or a device such as /dev/null, which a rename would replace.
        raise FileExistsError(f"{str(path)!r} exists and is not a regular file: choose another name")
    if not overwrite and path.exists():
        raise FileExistsError(f"{str(path)!r} exists: pass overwrite=True to replace it")


@contextmanager
def _written(file: str | os.PathLike[str], overwrite: bool) -> Iterator[BinaryIO]:
    """Yield a new file, which takes its place after the block (step 1)."""
    path = Path(file)
    with hidden_file(path) as (hidden, opened):
        yield opened
        if overwrite:
            hidden.replace(path)
        else:
            _link(hidden, path)


def _link(hidden: Path, path: Path) -> None:
    """Give a file its name, unless another file has the name now."""
    try:
        path.hardlink_to(hidden)
    except FileExistsError:
        raise FileExistsError(f"{str(path)!r} exists: pass overwrite=True to replace it") from None
    except OSError:
        # A file system without links.
        hidden.rename(path)


def _allocate(file: BinaryIO, nbytes: int) -> None:
    if hasattr(os, "posix_fallocate") and nbytes:
        os.posix_fallocate(file.fileno(), 0, nbytes)
    else:
        file.truncate(nbytes)
