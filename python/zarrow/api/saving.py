"""Storing arrays and tables in one call, with default options.

>>> import zarrow
>>> zarrow.save("new.zarr", height=[1.5, 2.5])
>>> zarrow.open("new.zarr")["height"][...].tolist()
[1.5, 2.5]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from zarrow._zarrow import (
    Array,
    Categorical,
    Group,
    MaskedTensor,
    MaskedVariable,
    _is_remote,
    _with_options,
    asarray,
    open,
)
from zarrow.anndata.encoding import finish, is_anndata
from zarrow.api.array_options import Store, says_options
from zarrow.api.copying import copy_array, copy_group
from zarrow.api.creation import _create, _require_group
from zarrow.api.node_batch import NodeBatch, is_small
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount, size_of
from zarrow.api.small_arrays import is_added
from zarrow.arrays.missing import form_of
from zarrow.device_tensor.methods import is_on_device
from zarrow.errors import UnsupportedError
from zarrow.groups import pandas_index, tables
from zarrow.groups.columns import store_member
from zarrow.hints.calling_line import warn
from zarrow.hints.option_names import for_option
from zarrow.interchange import labels
from zarrow.interchange.lazy_arrays import is_read_in_parts, opened

__all__ = ["save"]


_MAX_DEPTH = 32

# Options of `create_array` and of other libraries' `save`, which would silently be stored as arrays.
_OPTIONS_OF_OTHERS = frozenset(
    (
        "attributes",
        "chunks",
        "compressor",
        "compressors",
        "dtype",
        "mode",
        "overwrite",
        "zarr_format",
    )
)


@says_options
def save(
    store: Store,
    array: Any = None,
    /,
    *,
    path: str = "",
    missing: Literal["optional", "fill", "anndata"] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | bool | None = None,
    **arrays: Any,
) -> None:
    """Store an array, a table, or a group of named arrays, with the default codecs of `create_array`.

    Existing arrays of the same names are replaced completely. Groups and everything else in the store stay.
    If any value is not an array, nothing is written.

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL, which is created if missing; a URL in the cloud (`s3://`,
        `gs://`, `az://`, `abfs://`), a `CloudStore` or a `MemoryStore`; a dict or another mapping of keys to
        bytes; or a store of zarr-python, obstore, fsspec or icechunk.
    array
        A single array to store at the path: anything that `asarray` takes. A table of pandas, polars or
        pyarrow, an Arrow stream, or a dict of arrays is stored as a group with an array for each column,
        which `Group.to_arrow` reads back. An `Array` or `Group` of a store is copied completely. An AnnData
        is stored in its own format, which `load` and `anndata.read_zarr` read back, except that text columns
        stay text; it replaces only another AnnData. Its dask arrays are computed in memory first.
    path
        Path in the store; by default its root.
    missing
        How missing elements are stored, as in `create_array`.
    storage_options
        Credentials and other options of a cloud URL: see `CloudStore`.
    progress
        Called with the bytes of the elements that were stored, and of all, where the size of text is a guess;
        or True for a bar in a terminal or a notebook. Large NumPy arrays of numbers, and arrays of a store,
        advance part by part, other values when they are stored. An AnnData is stored without reports.
    arrays
        Arrays or tables to store in a group, by name.

    Raises
    ------
    TypeError
        No array was given, or both a single array and named ones; the array is text, such as the path of a
        file; a column's name is not a str.
    NodeExistsError
        A group exists at the path of an array (a `FileExistsError`).
    NodeTypeError
        An array exists at the path of a group (a `TypeError`).
    ExchangeError
        An array, or a column, has no data type in Zarr; the message begins with its name (a `ValueError`).
    ReadOnlyError, StoreError
        The store cannot be written (an `OSError`).

    Warns
    -----
    ZarrowWarning
        A table replaces one with other columns; the arrays of these columns stay in the group.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("one.zarr", [1, 2, 3])
    >>> zarrow.open("one.zarr")[1:].tolist()
    [2, 3]
    >>> zarrow.save("two.zarr", x=[1.0, 2.0], names=["a", "b"])
    >>> zarrow.open("two.zarr").keys()
    ['names', 'x']
    >>> import polars
    >>> zarrow.save("table.zarr", polars.DataFrame({"name": ["a", "b"], "height": [1.5, 2.5]}))
    >>> polars.DataFrame(zarrow.open("table.zarr").to_arrow()).columns
    ['name', 'height']
    """
    for name, value in (("path", path), ("missing", missing)):
        if value is not None and not isinstance(value, str):
            raise TypeError(
                f'{name} is an option: an array of that name is stored as save(store, {{"{name}": ...}})'
            )
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(
            "storage_options is an option: an array of that name is stored as "
            'save(store, {"storage_options": ...})'
        )
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            "progress is a function, or True for a bar: an array of that name is stored as "
            'save(store, {"progress": ...})'
        )
    if arrays.get("overwrite") is True:
        raise TypeError(
            "save takes no overwrite: leave it out: save replaces an array or a table; an array of that name "
            'is stored as save(store, {"overwrite": ...})'
        )
    for name in _OPTIONS_OF_OTHERS.intersection(arrays):
        if name == "mode" and tables.columns(array) is not None:
            raise TypeError(
                "save takes no mode: it replaces a table; to append rows, type "
                'zarrow.open(store, mode="r+").append(table)'
            )
        if name == "mode" and isinstance(arrays[name], str):
            raise TypeError(
                "save takes no mode: leave it out: save replaces an array or a table, and keeps everything "
                'else; an array of that name is stored as save(store, {"mode": ...})'
            )
        if arrays[name] is None or isinstance(arrays[name], bool | int | str | dict):
            raise TypeError(
                f"save takes no {name}: zarrow.create_array(store, data=..., {name}=...) does; "
                f'an array of that name is stored as save(store, {{"{name}": ...}})'
            )
    if array is not None and arrays:
        name, value = next(iter(arrays.items()))
        if value is None or isinstance(value, bool | int | str):
            text = for_option(name, (), "of save")
            is_of_creation = text.endswith("=...")
            raise TypeError(
                text.replace("type ", "type zarrow.create_array(store, data=..., ") + ")"
                if is_of_creation
                else text
            )
        if name == "encoding" and isinstance(value, dict):
            raise TypeError(
                "save takes no encoding: type zarrow.xarray.to_zarr(dataset, store, encoding=...) for a "
                "Dataset of xarray"
            )
        if name in ("chunks", "shards") and isinstance(value, tuple):
            raise TypeError(
                f"save takes no {name}: leave it out, or for one array type "
                f"zarrow.create_array(store, data=..., {name}={value!r})"
            )
    if (array is None) == (not arrays):
        raise TypeError(
            "save(store, array) stores one array, save(store, a=..., b=...) several by name: give one of "
            "the two"
        )
    _refuse_text(array, store)
    tables.refuse_sparse(array)
    store = _with_options(store, storage_options)
    if is_anndata(array):
        from zarrow.anndata import saving

        saving.save(store, path, array)
        return
    with reporting(progress, "save") as report:
        amount = Amount(report)
        _save_opened(store, path, opened(array), arrays, missing, amount)
        amount.finish_all()


def _save_opened(
    store: Store, path: str, array: Any, arrays: dict[str, Any], missing: str | None, amount: Amount
) -> None:
    """Store one array, the columns of one table, a group, or named arrays."""
    columns = tables.columns(array)
    if array is not None and columns is None and not isinstance(array, Group):
        amount.expect(size_of(array))
        amount.begin(size_of(array))
        if isinstance(array, Array) and missing is None:
            copy_array(array, store, path, 3, report=amount.add)
            return
        _create(
            store, path, "none", {"zarr_format": 3},
            data=array, missing=missing, report=amount.add if amount.is_reported else None, overwrite="array",
        )  # fmt: skip
        return
    if isinstance(array, Group):
        copy_group(array, _opened_group(store), path, amount)
        return
    if columns is None:
        columns, attributes = arrays, None
    else:
        attributes = labels.from_group(array)
    _check_each(columns, missing)
    target = store if _is_remote(store) else _opened_group(store)
    for name in filter(lambda name: _is_name_of_file(columns[name]), columns):
        _refuse_text_for_array(_opened_group(target), f"{path}/{name}", columns[name])
    amount.expect(size_of(columns))
    _store_each(target, path, columns, missing, attributes, amount)


def _opened_group(store: Store | Group) -> Group:
    group = store if isinstance(store, Group) else open(store, mode="a")
    if not isinstance(group, Group):
        _require_group(group)
    return group


def _refuse_text(value: Any, store: Any) -> None:
    """Refuse text or a path as the only array: the caller means the array at that path.

    With an array in place of the store, as in `torch.save`, the two are swapped.
    """
    if isinstance(value, str | bytes) or hasattr(value, "__fspath__"):
        name = str(os.fsdecode(value))
        is_of_bytes = isinstance(store, Mapping) and all(isinstance(item, bytes) for item in store.values())
        if (
            hasattr(store, "__array__")
            or isinstance(store, list)
            or (isinstance(store, Mapping) and not is_of_bytes)
        ):
            raise TypeError(f"the store is the first argument: type zarrow.save({name!r}, x)")
        raise TypeError(
            f"save stores arrays, got the text {name!r}: type zarrow.save(store, zarrow.open({name!r})) to "
            f"copy an array or a group of a store, zarrow.save(store, zarrow.load({name!r})) for its "
            f"elements, zarrow.save(store, numpy.load({name!r})) for a file of NumPy, or "
            f"zarrow.save(store, numpy.array({name!r})) to store the text itself"
        )


_SUFFIXES = (".npy", ".npz", ".zarr", ".zip", ".h5", ".hdf5", ".nc", ".csv", ".parquet", ".tif", ".tiff")


def _is_name_of_file(value: Any) -> bool:
    """Return whether a value is text that names a file or a store."""
    text = os.fsdecode(value).lower() if isinstance(value, str | bytes) else ""
    return text.endswith(_SUFFIXES) or "://" in text


def _refuse_text_for_array(group: Group, path: str, value: Any) -> None:
    """Refuse to replace an array with axes by the name of a file or a store."""
    existing = group.get(path) if _is_name_of_file(value) else None
    if isinstance(existing, Array) and existing.ndim:
        raise TypeError(
            f"{path!r} is an array of shape {existing.shape}, and the value is the text {value!r}: type "
            f"group[{path!r}][...] = value to fill the array, zarrow.load({value!r}) or "
            f"numpy.load({value!r}) for the elements of a file, or group.create_array({path!r}, data=value, "
            "overwrite=True) to replace the array by the text"
        )


def _store(group: Group, path: str, value: Any, missing: str | None = None) -> None:
    """`Group.__setitem__`: replaces an array, but not a group. Copies values that are already in a store.

    A table becomes a group of its columns, and a value assigned to such a group a column.
    """
    _refuse_text_for_array(group, path, value)

    def store(target: Group, path: str, value: Any, form: str | None) -> None:
        _store_reported(target, path, value, missing or form, Amount(None))

    store_member(group, path, value, store)


def _store_reported(group: Group, path: str, value: Any, missing: str | None, amount: Amount) -> None:
    """`_store`, and report the bytes of parts."""
    if is_anndata(value):
        from zarrow.anndata import saving

        saving.save(group, path, value, group.zarr_format)
        return
    tables.refuse_sparse(value)
    value = opened(value)
    if value is None:
        raise TypeError(
            f"expected an array, got None: type group.create_array({path!r}, shape=..., dtype=...), or "
            f"del group[{path!r}]"
        )
    if isinstance(value, Group):
        copy_group(value, group, path, amount)
        return
    if isinstance(value, Array) and missing is None:
        amount.begin(size_of(value))
        copy_array(value, group, path, group.zarr_format, report=amount.add)
        amount.finish()
        return
    columns = tables.columns(value)
    if columns is not None:
        _check_each(columns, missing)
        _store_each(group, path, columns, missing, labels.from_group(value), amount)
        return
    amount.begin(size_of(value))
    version: dict[str, Any] = {"zarr_format": group.zarr_format}
    report = amount.add if amount.is_reported else None
    _create(group, path, "none", version, data=value, missing=missing, report=report, overwrite="array")
    amount.finish()


def _check_each(named: dict[str, Any], missing: str | None) -> None:
    """Refuse values that are not arrays before storing the first, so that no table is half replaced.

    If the caller did not say how to store missing elements, one warning names all arrays that have some.
    """
    masked = list(_masked(named))
    if masked:
        form_of(missing, ", ".join(masked))


def _masked(named: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the names of arrays with missing elements; raise if one is not an array."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"dicts are nested more than {_MAX_DEPTH} deep, or one contains itself")
    for name, given in named.items():
        if is_anndata(given):
            continue
        with tables.naming(name):
            array = opened(given)
        columns = tables.columns(array)
        if columns is not None:
            yield from _masked(columns, depth + 1)
        elif not isinstance(array, Group | Categorical) and not (
            is_on_device(array) or is_read_in_parts(array)
        ):
            try:
                with tables.naming(name):
                    tables.refuse_sparse(array)
                    tables.refuse_null(array)
                    taken = asarray(array)
            except Exception as error:
                error.add_note("nothing was stored")
                raise
            if isinstance(taken, MaskedTensor | MaskedVariable):
                yield name


def _store_each(
    target: Store | Group,
    path: str,
    named: dict[str, Any],
    missing: str | None,
    attributes: dict[str, Any] | None,
    amount: Amount,
) -> None:
    """Store arrays by their names in the group at a path, which is created if missing.

    With `attributes` for the group, the arrays are the columns of a table or a dict: warn of columns that
    only the table before had.
    """
    if attributes is not None:
        attributes = {**attributes, "column-order": list(named)}
    if isinstance(target, Group) and not target._is_remote():
        group, rest = target.require_group(path) if path else target, list(named)
    else:
        group, rest = _store_small(target, path, named, missing, attributes)
        amount.begin(sum(size_of(value) for name, value in named.items() if name not in rest))
        amount.finish()
    for name in rest:
        with tables.naming(name):
            _store_reported(group, name, named[name], missing, amount)
    if attributes is None:
        return
    before = list(group.attrs.get("column-order") or ())
    others = [name for name in before if name not in named]
    had_index = pandas_index.ATTRIBUTE not in attributes and pandas_index.levels(group, before)
    present = set(group) if others and group._is_remote() else group
    left = [name for name in others if name in present]
    if any(group.attrs.get(key) != value for key, value in attributes.items()):
        finish(group, attributes)
    if had_index:
        del group.attrs[pandas_index.ATTRIBUTE]
    if left:
        path = f", {group.path!r}" if group.path else ""
        warn(
            f"the group at {group.name!r} still contains arrays of the table stored there before: "
            f"{', '.join(map(repr, left))}; to replace the whole group, erase it first: type "
            f"zarrow.create_group(store{path}, overwrite=True)"
        )


def _store_small(
    target: Store | Group,
    path: str,
    named: dict[str, Any],
    missing: str | None,
    attributes: dict[str, Any] | None,
) -> tuple[Group, list[str]]:
    """Create the group together with the small arrays. Return it, and the names of the other values.

    A new group without other values also gets these attributes.
    """
    batch = NodeBatch(target, target.zarr_format if isinstance(target, Group) else 3)
    batch.add_group(path, {}, keep=True)
    rest = [name for name in named if not _is_added(batch, path, name, named[name], missing)]
    try:
        created = batch.create(attributes_last=(path, attributes) if attributes and not rest else None)
    except UnsupportedError:
        if isinstance(target, Group):
            raise
        group = _opened_group(target)
        if group.zarr_format == batch.zarr_format:
            raise
        return _store_small(group, path, named, missing, attributes)
    assert isinstance(created[0], Group)
    return created[0], rest


def _is_added(batch: NodeBatch, path: str, name: str, value: Any, missing: str | None) -> bool:
    """Add a small array to a batch; return False for a value that is stored in another way."""
    if not is_small(value) or is_anndata(value):
        return False
    with tables.naming(name):
        value = opened(value)
        if tables.columns(value) is not None:
            return False
        below = f"{path}/{name}" if path else name
        return is_added(batch, below, data=value, missing=missing, overwrite="array")
