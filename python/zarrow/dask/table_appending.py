"""Appends the rows of a dataframe of dask to a stored table.

1. The table and the dataframe have the same columns, types and index. The stored categories apply.
2. Tasks store elements behind the end of each array, where no reader sees them. Then all arrays grow
   (`zarrow.groups.rows`). Other appends wait for the whole computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import pandas

from zarrow._zarrow import Array, Group
from zarrow.anndata.encoding import encoding_of, refuse_unfinished
from zarrow.dask.table_columns import Columns, LongerArray, is_categories, leaves, nodes_of
from zarrow.errors import DataTypeError, UnsupportedError
from zarrow.groups.array_documents import ArrayDocuments
from zarrow.groups.places import store_of
from zarrow.groups.rows import Done, grow

Run = Callable[[Columns, int, int], None]


def with_stored_categories(group: Group, meta: pandas.DataFrame) -> pandas.DataFrame:
    """Return a frame without rows, with the categories of the table (step 1)."""
    refuse_unfinished(group)
    stored, categorical = group.to_pandas(rows=slice(0, 0)), pandas.CategoricalDtype
    dtypes = {
        name: stored[name].dtype
        for name in meta.columns.intersection(stored.columns)
        if isinstance(meta[name].dtype, categorical) and isinstance(stored[name].dtype, categorical)
    }
    meta = meta.assign(**{name: pandas.Series(dtype=dtype) for name, dtype in dtypes.items()})
    if isinstance(meta.index.dtype, categorical) and isinstance(stored.index.dtype, categorical):
        meta.index = stored.index
    return meta


def append_rows(group: Group, meta: pandas.DataFrame, added: int, *, index: bool, run: Run) -> None:
    """Append rows, which `run` writes into columns from a row on, with a size of write units.

    Raises
    ------
    DataTypeError
        The table has other columns or types.
    UnsupportedError
        The store has no conditional puts.
    """
    columns = Columns(meta, nodes_of(meta, index=index), group)
    arrays = _arrays_of(columns, group)

    def write(length: int, documents: ArrayDocuments, after: Mapping[str, bytes]) -> None:
        del documents
        columns.arrays = {
            path: LongerArray(store_of(array), array.path, array.zarr_format, after[path], length + added)
            for path, array in arrays.items()
        }
        units = [array.write_unit[0] for array in arrays.values() if array.write_unit]
        run(columns, length, max(units, default=1))

    grow(group, arrays, added, write, _refuse_store)


def _refuse_store(length: int, done: Done) -> NoReturn:
    del length, done
    raise UnsupportedError(
        "the store has no conditional puts, so that its arrays cannot grow together: append to a copy in a "
        "folder, or write a new table"
    )


def _arrays_of(columns: Columns, group: Group) -> dict[str, Array]:
    """Return the arrays that grow, after the comparison of all types (step 1)."""
    meta, nodes = columns.meta, columns.nodes
    attributes = group._attributes()
    for key in ("column-order", "_index"):
        has, given = attributes.get(key), nodes.attributes.get(key)
        if has != given:
            what = "columns" if key == "column-order" else "index"
            raise DataTypeError(
                f"the dataframe has the {what} {given}, and the table {group.name!r} has {has}: "
                + ("select them by ddf[names]" if key == "column-order" else "pass index=, or set_index()")
            )
    arrays: dict[str, Array] = {}
    found: object
    expected: object
    for name, node in (nodes.members or {}).items():
        for path, leaf in leaves(name, node):
            if is_categories(name, path):
                continue
            stored = group.get(path)
            if isinstance(stored, Group):
                found, expected = encoding_of(stored), leaf.attributes["encoding-type"]
            elif isinstance(stored, Array) and leaf.members is None:
                found, expected = stored.dtype, leaf.data.dtype
                arrays[path] = stored
            else:
                found, expected = getattr(stored, "dtype", None), leaf.attributes["encoding-type"]
            if found != expected:
                dtype = meta[name].dtype if name in meta else meta.index.dtype
                raise DataTypeError(
                    f"column {name!r} of the dataframe has type {dtype}, and the table {group.name!r} stores "
                    f"{found}: convert the column by astype() first"
                )
    return arrays
