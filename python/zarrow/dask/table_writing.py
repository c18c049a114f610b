"""Writes a dataframe of dask to a group with an array for each column, in AnnData's format for tables.

1. The numbers of rows of all partitions, and unknown categories, are computed first. Then all arrays are
   created with their full length. They have the same chunks and shards.
2. Everything that does not depend on elements is checked before the group is created.
3. The task of a partition encodes its rows as arrays of NumPy, which are cut at edges of write units
   (`alignment`). One task gathers the parts of its write units and writes them: no lock is held, and each
   unit is encoded once.
4. The last task sets the attributes that make the group a table. Until then, its attributes say that it is
   unfinished, and readers of tables refuse it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

import dask.dataframe
import pandas
from dask._collections import new_collection
from dask.dataframe.dask_expr._expr import Lengths
from dask.dataframe.dask_expr._expr import Literal as Known
from dask.dataframe.utils import UNKNOWN_CATEGORIES
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from zarrow._zarrow import Group, MemoryStore, _with_options
from zarrow.anndata.encoding import UNFINISHED_TABLE
from zarrow.api.array_options import Store
from zarrow.api.creation import create_group
from zarrow.api.opening import open_group
from zarrow.dask.gathered_blocks import aligned
from zarrow.dask.table_appending import append_rows, with_stored_categories
from zarrow.dask.table_columns import Columns, nodes_of
from zarrow.dask.writing import naming_mode
from zarrow.errors import DataTypeError, ShapeError
from zarrow.groups.referenced_nodes import check_apart


def to_table(
    ddf: dask.dataframe.DataFrame,
    path: Store,
    *,
    component: str | None = None,
    index: bool = True,
    chunks: int | None = None,
    lengths: Sequence[int] | None = None,
    append: bool = False,
    mode: Literal["a", "w", "w-"] = "a",
    storage_options: Mapping[str, Any] | None = None,
    compute: bool = True,
    **kwargs: Any,
) -> Delayed | None:
    """Write a dataframe of dask as a table, which `read_table` and `Group.to_pandas` read.

    Columns are stored as in AnnData's tables, with categoricals, nullable integers and bools, and text. If
    the rows of partitions are not known, the dataframe is computed twice: first for their number. Persist it,
    or pass `lengths`, if this takes long.

    Parameters
    ----------
    ddf
        The dataframe.
    path, component
        Where the group is created: a store, as `create_group` takes it, and a path in it.
    index
        Whether the index is stored.
    chunks
        The number of rows of a chunk: by default, that of the largest partition.
    lengths
        The number of rows of each partition, if you know it.
    append
        Whether the rows are appended to the table at this path, with the same columns, types and index.
        Other appends to the table wait until all rows are computed and stored. Readers see the rows then,
        all at once. If it fails or is killed, the table has its old rows.
    mode
        `"w"` replaces a node; `"a"` and `"w-"` create the group.
    storage_options
        Credentials and other options of a cloud URL: see `CloudStore`.
    compute
        Whether to write now. If not, the arrays are created, and the result writes them when it is computed.
    kwargs
        Options of `create_array` for all columns, such as `shards` and `compressors`.

    Returns
    -------
    dask.delayed.Delayed or None
        The latter if it was computed.

    Raises
    ------
    NotFoundError
        There is no table to append to.
    NodeExistsError
        There is a node, and the mode is not `"w"`; or the dataframe reads the table that it would replace.
    ExchangeError
        A column's type or name cannot be stored, or the index has the name of a column; nothing was changed.
    DataTypeError, ShapeError
        A table to append to has other columns or types. Or raised by tasks: a partition has other types or
        another number of rows than dask says, or categories that the table lacks.
    UnsupportedError
        With `append`, the store has no conditional puts, as those of fsspec.

    Examples
    --------
    >>> import dask.dataframe, pandas, zarrow, zarrow.dask
    >>> birds = pandas.DataFrame({"name": ["owl", "crow", "wren"], "seen": [3, 1, 2]})
    >>> zarrow.dask.to_table(dask.dataframe.from_pandas(birds, npartitions=2), "birds.zarr", chunks=2)
    >>> zarrow.open("birds.zarr").to_pandas()["seen"].tolist()
    [3, 1, 2]
    >>> more = pandas.DataFrame({"name": ["kite"], "seen": [4]}, index=[3])
    >>> zarrow.dask.to_table(dask.dataframe.from_pandas(more, npartitions=1), "birds.zarr", append=True)
    >>> zarrow.open("birds.zarr").to_pandas()["name"].tolist()
    ['owl', 'crow', 'wren', 'kite']
    """
    if not isinstance(ddf, dask.dataframe.DataFrame):
        raise TypeError(f"expected a dataframe of dask, got {type(ddf).__name__}")
    if mode not in ("a", "w", "w-"):
        raise ValueError(f"expected mode 'a', 'w' or 'w-', got {mode!r}")
    if refused := {"data", "shape", "dtype", "fill_value", "path", "overwrite", "attributes"} & kwargs.keys():
        raise TypeError(f"to_table takes no {min(refused)}: each column has its own")
    nodes_of(ddf._meta, index=index)
    store = _with_options(os.fspath(path) if isinstance(path, os.PathLike) else path, storage_options)
    if append:
        if mode != "a" or chunks is not None or kwargs or not compute:
            raise TypeError("append=True takes no mode, no chunks or other options, and no compute=False")
        _append(ddf, open_group(store, path=component or "", mode="r+"), lengths, index=index)
        return None
    if mode == "w":
        check_apart(ddf, "the dataframe", store, component or "")
    counted, meta = _counted(ddf, ddf._meta, lengths)
    columns = Columns(meta, nodes_of(meta, index=index))
    options = {"chunks": max(1, chunks or max(counted, default=1)), **kwargs}
    total = sum(counted)
    # Options are checked in memory, before anything is erased or created.
    Columns(meta, columns.nodes).create(create_group(MemoryStore()), total, options)
    with naming_mode():
        group = create_group(store, component or "", overwrite=mode == "w", attributes=UNFINISHED_TABLE)
    unit = columns.create(group, total, options)
    written = _graph(_optimized(ddf), columns, counted, 0, unit, Columns.finish)
    return written.compute() if compute else written  # type: ignore[no-untyped-call]


def _append(
    ddf: dask.dataframe.DataFrame, group: Group, lengths: Sequence[int] | None, *, index: bool
) -> None:
    counted, meta = _counted(ddf, with_stored_categories(group, ddf._meta), lengths)

    def run(columns: Columns, start: int, unit: int) -> None:
        _graph(_optimized(ddf), columns, counted, start, unit, _written).compute()  # type: ignore[no-untyped-call]

    append_rows(group, meta, sum(counted), index=index, run=run)


def _written(columns: Columns, parts: Sequence[None]) -> None:
    """End an append: its caller lets the arrays grow."""


def _graph(
    ddf: dask.dataframe.DataFrame,
    columns: Columns,
    lengths: Sequence[int],
    first: int,
    unit: int,
    end: Callable[[Columns, Sequence[None]], None],
) -> Delayed:
    """Return the object that writes all partitions from a row on when it is computed (step 3)."""
    token = uuid4().hex
    target, finish = f"columns-{token}", f"to-table-{token}"
    graph: dict[Any, Any] = {target: columns}
    edges = list(itertools.accumulate(lengths, initial=0))
    blocks = aligned([[length for length in lengths if length]], [unit], [first])[0] if edges[-1] else ()
    cuts = list(itertools.accumulate(blocks, initial=0))
    parts: dict[int, list[Any]] = {start: [] for start in cuts[:-1]}
    block = 0
    for number, (key, length) in enumerate(zip(_keys(ddf), lengths, strict=True)):
        encoded, row, stop = (f"encode-{token}", number), edges[number], edges[number + 1]
        graph[encoded] = (Columns.encode, target, key, length)
        while row < stop:
            while cuts[block + 1] <= row:
                block += 1
            after = min(stop, cuts[block + 1])
            if (row, after) == (edges[number], stop):
                part: Any = encoded
            else:
                part = (f"cut-{token}", number, row)
                graph[part] = (_cut, encoded, row - edges[number], after - edges[number])
            parts[cuts[block]].append(part)
            row = after
    for start, below in parts.items():
        graph[f"write-{token}", start] = (Columns.write, target, first + start, below)
    graph[finish] = (end, target, [(f"write-{token}", start) for start in parts])
    return _delayed(finish, graph, ddf)


def _optimized(partitions: Any) -> Any:
    """Optimize a collection, but keep its partitions: dask joins small ones when it tunes a graph."""
    kept = partitions.expr.simplify().lower_completely().simplify().fuse()
    return new_collection(kept)  # type: ignore[no-untyped-call]


def _keys(partitions: Any) -> list[Any]:
    """Return the names of the partitions in dask's graph."""
    return list(partitions.__dask_keys__())


def _delayed(name: str, graph: dict[Any, Any], partitions: Any) -> Delayed:
    whole = HighLevelGraph.from_collections(name, graph, dependencies=[partitions])
    return Delayed(name, whole)  # type: ignore[no-untyped-call]


def _cut(elements: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    return {path: values[start:stop] for path, values in elements.items()}


def _counted(
    ddf: dask.dataframe.DataFrame, meta: pandas.DataFrame, lengths: Sequence[int] | None
) -> tuple[list[int], pandas.DataFrame]:
    """Return the number of rows of each partition, and a frame without rows with all categories (step 1)."""
    unknown = [
        name
        for name in meta.columns
        if isinstance(meta[name].dtype, pandas.CategoricalDtype)
        and UNKNOWN_CATEGORIES in meta[name].cat.categories
    ]
    known = Lengths(ddf.expr).simplify()  # type: ignore[no-untyped-call]
    if lengths is None and isinstance(known, Known):
        lengths = known.value
    if lengths is not None and len(lengths) != ddf.npartitions:
        raise ShapeError(f"{len(lengths)} lengths for {ddf.npartitions} partitions")
    if lengths is not None and not unknown:
        return list(lengths), meta
    looked = _optimized(ddf[unknown] if unknown else ddf.index)
    name = f"rows-{uuid4().hex}"
    graph: dict[Any, Any] = {(name, at): (_looked, key) for at, key in enumerate(_keys(looked))}
    graph[name] = list(graph)
    found = _delayed(name, graph, looked).compute()  # type: ignore[no-untyped-call]
    meta = meta.copy()
    for column in unknown:
        meta[column] = meta[column].astype(_common(column, [dtypes[column] for _, dtypes in found]))
    return [count for count, _ in found] if lengths is None else list(lengths), meta


def _looked(rows: pandas.DataFrame | pandas.Index) -> tuple[int, dict[str, Any]]:
    """Return the number of rows, and the types of the columns."""
    return len(rows), {} if isinstance(rows, pandas.Index) else dict(rows.dtypes)


def _common(name: str, found: Sequence[pandas.CategoricalDtype]) -> pandas.CategoricalDtype:
    """Return a type with the categories of all partitions."""
    if all(one == found[0] and list(one.categories) == list(found[0].categories) for one in found):
        return found[0]
    if any(one.ordered for one in found):
        raise DataTypeError(f"column {name!r} has ordered categories that differ by partition")
    categories = found[0].categories
    for one in found[1:]:
        categories = categories.append(one.categories.difference(categories, sort=False))
    return pandas.CategoricalDtype(categories)
