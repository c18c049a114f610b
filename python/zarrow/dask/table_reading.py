"""Reads the columns of a group as a dataframe of dask.

1. A partition is a number of rows that begins at a chunk or shard, unless `partition_rows` says otherwise.
2. A task has the group, the numbers of its rows and the names of its columns. dask selects the columns, so
   that only these are read. The number of rows is known, so that `len` reads nothing.
3. Metadata and categories decide the types, so that all partitions have the same. Nullable columns have
   pandas' nullable types, also where no element is missing. Categories are read at once: dask would find
   them later, but not in their order.
4. Divisions are the numbers of rows, or the first and last elements of a sorted column. Neighbours that
   share an element become one partition, because dask looks an element up in one.
5. With filters, a task reads their columns and then the matching rows, which keep their labels. Partitions
   are left out if `sorted_rows` finds that none of their rows can match.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dask.dataframe
import numpy as np
import pandas
from dask._collections import new_collection
from dask.base import tokenize
from dask.dataframe.dask_expr._expr import Index, Lengths, Literal
from dask.dataframe.dask_expr._reductions import Len
from dask.dataframe.dask_expr.io import FromMapProjectable

from zarrow._zarrow import Array, Group, _with_options
from zarrow.anndata.elements import Batch, plan
from zarrow.anndata.encoding import encoding_of
from zarrow.api.array_options import Store
from zarrow.api.opening import open_group
from zarrow.errors import MetadataError
from zarrow.groups import pandas_index
from zarrow.tables.filters import Filters, Query, selection
from zarrow.tables.scanning import filter_of
from zarrow.tables.table import Table, selected, whole

if TYPE_CHECKING:
    import numpy.typing as npt


class Rows:
    """Reads rows of a table into pandas, in a task (step 2)."""

    __slots__ = ("filters", "first", "group", "index", "is_sorted", "label", "token")

    def __init__(
        self,
        group: Group,
        index: str | None,
        first: int,
        *,
        is_sorted: bool,
        label: str | None,
        filters: Filters | None,
        token: str | None = None,
    ) -> None:
        self.group, self.index, self.first, self.is_sorted = group, index, first, is_sorted
        self.label, self.filters = label, filters
        self.token = token or self._token()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rows, (
            self.group,
            self.index,
            self.first,
            self.is_sorted,
            self.label,
            self.filters,
            self.token,
        )

    def __call__(self, start: int, stop: int, columns: Sequence[str]) -> pandas.DataFrame:
        """Read these columns of rows.

        Raises
        ------
        MetadataError
            Elements of a sorted column are not in order.
        """
        frame = self._frame(slice(start, stop), columns)
        if self.is_sorted and not frame.index.is_monotonic_increasing:
            raise not_sorted(str(self.index))
        return frame

    def meta(self, columns: Sequence[str]) -> pandas.DataFrame:
        """Return no rows of these columns, with the types of all rows; categories are read (step 3)."""
        return self._frame(slice(self.first, self.first), columns)

    def query(self) -> Query:
        """Return the filters as a query of the group's rows."""
        assert self.filters is not None
        return Query(self.group, None, None, self.filters, self.index if self.is_sorted else None, {})

    def _frame(self, part: slice, columns: Sequence[str]) -> pandas.DataFrame:
        rows: slice | npt.NDArray[np.int64] = part
        if self.filters is not None and part.start < part.stop:
            rows = selection(self.query().numbers(range(part.start, part.stop)))
        batch = Batch(rows)
        made = {name: self._planned(name, batch) for name in columns}
        index = None if self.index is None else self._planned(self.index, batch)
        batch.read()
        if index is None:
            labels = (
                pandas.RangeIndex(part.start, part.stop) if rows is part else pandas.Index(_numbers(rows))
            )
            labels -= self.first
        else:
            labels = pandas.Index(typed(index()), name=self.label)
        values = {name: typed(column()) for name, column in made.items()}
        return pandas.DataFrame(values, index=labels, columns=list(columns))

    def _planned(self, name: str, batch: Batch) -> Any:
        node = self.group[name]
        made = plan(node, batch)
        if isinstance(node, Array) and node.dtype.kind == "T":
            return lambda: _text(made())
        return made

    def _token(self) -> str:
        documents = [json.dumps(array.metadata, sort_keys=True) for array in arrays_of(self.group, None)]
        attributes = json.dumps(self.group._attributes(), sort_keys=True)
        place = self.group.__reduce__()[1]
        # dask shares objects of one name. After a group is replaced, its old handle must not be shared.
        version = self.group._document_version()
        found: str = tokenize(
            place,
            version,
            self.index,
            self.first,
            self.is_sorted,
            self.label,
            str(self.filters),
            attributes,
            documents,
        )
        return found

    def __dask_tokenize__(self) -> Any:
        return (type(self).__qualname__, self.token)


def _rows(
    group: Group,
    index: str | None,
    first: int,
    is_sorted: bool,
    label: str | None,
    filters: Filters | None,
    token: str,
) -> Rows:
    return Rows(group, index, first, is_sorted=is_sorted, label=label, filters=filters, token=token)


def _numbers(rows: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


class ReadTable(FromMapProjectable):
    """The expression of dask that reads a table: it knows the number of rows (step 2)."""

    def _simplify_up(self, parent: Any, dependents: Any) -> Any:
        if isinstance(parent, Len | Lengths) and self.func.filters is None:
            starts, stops = self.iterables
            lengths = tuple(stops[at] - starts[at] for at in self._partitions)
            known = sum(lengths) if isinstance(parent, Len) else lengths
            return Literal(known)  # type: ignore[no-untyped-call]
        if isinstance(parent, Index) and self.columns:
            without = self.substitute_parameters({"columns": [], "_series": False})
            return Index(without)  # type: ignore[no-untyped-call]
        return super()._simplify_up(parent, dependents)  # type: ignore[no-untyped-call]


def read_table(
    path: Group | Table | Store,
    columns: Sequence[str] | None = None,
    *,
    component: str | None = None,
    sorted_by: str | None = None,
    filters: Filters | None = None,
    partition_rows: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dask.dataframe.DataFrame:
    """Return a dataframe of dask that reads the columns of a group. No row is read yet.

    It has the rows and columns of `Group.to_pandas`. Integers and bools with missing elements have pandas'
    nullable types, and text has the type `str`.

    Parameters
    ----------
    path, component
        An opened group, or rows and columns of it, such as `group[:1000]`; or a store, as `open_group` takes
        it, and a path in it.
    columns
        Names in the order of the columns; by default all. dask reads only the columns that a computation
        uses.
    sorted_by
        A column in ascending order, such as the time. It becomes the index, with known divisions: the first
        and the last element of each partition are read. The order is your claim. Where elements
        out of order are read, an error is raised. By default, the index is that of a table of AnnData or
        pandas, without divisions, or the numbers of rows.
    filters
        Comparisons that rows must fulfil, as in `Group.to_arrow`. A filter on `sorted_by` leaves out
        partitions without matching rows, and their elements are not read.
    partition_rows
        The number of rows of a partition: by default whole chunks or shards of about 32 MiB. Partitions that
        share elements of `sorted_by` are joined.
    storage_options
        Credentials and other options of a cloud URL: see `CloudStore`.
    kwargs
        Options of `open_group`.

    Raises
    ------
    NotFoundError
        No group, or no column of that name (a `KeyError`).
    ShapeError
        The group is no table.
    MetadataError
        `sorted_by` is not in ascending order, or a column is named twice.

    Examples
    --------
    >>> import zarrow, zarrow.dask
    >>> zarrow.save("birds.zarr", {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
    >>> birds = zarrow.dask.read_table("birds.zarr", sorted_by="id")
    >>> birds.divisions
    (1, 3)
    >>> birds.loc[2:]["name"].compute().tolist()
    ['crow', 'wren']
    """
    if isinstance(columns, str):
        raise TypeError(f"expected names of columns, such as [{columns!r}], got the text {columns!r}")
    if partition_rows is not None and partition_rows < 1:
        raise ValueError(f"expected partition_rows of at least 1, got {partition_rows}")
    table = _table_of(path, component, storage_options, kwargs)
    group, encoded = table.group, table.group._attributes().get("_index")
    levels = pandas_index.levels(group, table.column_names)
    index, label = encoded if encoding_of(group) == "dataframe" else None, encoded
    if index is None and len(levels) == 1:
        ((index, label),) = levels.items()
    if sorted_by is not None and sorted_by != index:
        index = label = sorted_by
    if columns is None:
        # A name that occurs twice is the index of an AnnData table, which is also a column.
        hidden = {index, encoded} if table._selected is None else {index}
        names = [name for name in dict.fromkeys(table.column_names) if name not in hidden]
    else:
        names = list((selected(group, list(columns)) or table).column_names) if columns else []
    first, last = table.start, table.stop
    rows = partition_rows or _rows_of_partition(group, [*names, *([index] if index else [])])
    starts = [first, *range(first - first % rows + rows, last, rows)]
    label = None if label == "_index" else label
    reader = Rows(group, index, first, is_sorted=sorted_by is not None, label=label, filters=filters)
    divisions: tuple[Any, ...] = (None,) * (len(starts) + 1)
    if first < last and sorted_by is not None:
        starts, divisions = _divided(group, sorted_by, starts, last)
    elif first < last and index is None:
        divisions = (*(start - first for start in starts), last - 1 - first)
    stops = [*starts[1:], last]
    if filters is not None:
        starts, stops, divisions = _possible(reader, starts, stops, divisions)
    meta = reader.meta(names)
    expression = ReadTable(  # type: ignore[no-untyped-call]
        reader, [starts, stops], names, [], {}, True, meta, False, divisions, "read-table"
    )
    found: dask.dataframe.DataFrame = new_collection(expression)  # type: ignore[no-untyped-call]
    return found


def arrays_of(group: Group, columns: Sequence[str] | None) -> list[Array]:
    """Return the arrays that have the rows of these columns, by default of all."""
    batch = Batch()
    for name in group.to_arrow(columns).column_names or ():
        plan(group[name], batch)
    return batch.arrays


def typed(values: Any) -> Any:
    """Return values as pandas takes them, with a type that does not depend on them (step 3)."""
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim > 1:
        return pandas.array(list(values), dtype=object)
    if isinstance(values, np.ma.MaskedArray):
        kind, mask = values.dtype.kind, np.ma.getmaskarray(values)
        if kind in "iu":
            return pandas.arrays.IntegerArray(values.data, mask)
        if kind == "b":
            return pandas.arrays.BooleanArray(values.data, mask)
        return values.filled("NaT" if kind in "mM" else np.nan) if kind in "fcmM" else values.astype(object)
    return values


def not_sorted(name: str) -> MetadataError:
    """Return the error of a column with elements out of order."""
    return MetadataError(f"column {name!r} is not in ascending order: read the table without sorted_by")


def _text(values: Any) -> Any:
    return pandas.array(np.asarray(values, dtype=object), dtype=pandas.StringDtype(na_value=np.nan))


def _table_of(
    path: Group | Table | Store,
    component: str | None,
    storage_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Table:
    if isinstance(path, Table):
        if component is not None:
            raise TypeError("rows and columns of a group take no component")
        return path
    if not isinstance(path, Group):
        opened = _with_options(path, storage_options)
        return whole(open_group(opened, path=component or "", **{"mode": "r", **options}))
    return whole(path if component is None else path.get_group(component))


def _rows_of_partition(group: Group, columns: Sequence[str]) -> int:
    """Return rows of whole chunks, and of whole shards if these are not longer (step 1)."""
    names = list(dict.fromkeys(columns))
    rows = group.to_arrow(names or None).batch_rows
    units = [array.write_unit[0] for array in arrays_of(group, names or None) if array.write_unit]
    longest = max(units, default=1)
    return rows - rows % longest if rows > longest else rows


def _possible(
    reader: Rows, starts: list[int], stops: list[int], divisions: tuple[Any, ...]
) -> tuple[list[int], list[int], tuple[Any, ...]]:
    """Return the partitions with rows that may match, at least one (step 5)."""
    query = reader.query()
    found = filter_of(query.condition, query.scan.schema.names)
    ranges = query.scan.narrowed(range(starts[0], stops[-1]), found)
    kept = [
        at
        for at, (start, stop) in enumerate(zip(starts, stops, strict=True))
        if any(start < part.stop and part.start < stop for part in ranges)
    ] or [0]
    edges = (*(divisions[at] for at in kept), divisions[kept[-1] + 1])
    return [starts[at] for at in kept], [stops[at] for at in kept], edges


def _divided(group: Group, name: str, starts: list[int], last: int) -> tuple[list[int], tuple[Any, ...]]:
    """Return where partitions begin, and the divisions, by elements of a sorted column (step 4)."""
    stops = [*starts[1:], last]
    ends = [row for start, stop in zip(starts, stops, strict=True) for row in (start, stop - 1)]
    batch = Batch(np.array(ends))
    made = plan(group[name], batch)
    batch.read()
    values = pandas.Index(typed(made()))
    if isinstance(values, pandas.CategoricalIndex):
        raise ValueError(f"sorted_by={name!r} has categories: expected numbers, times or text")
    if not values.is_monotonic_increasing:
        raise not_sorted(name)
    firsts, lasts = values[::2], values[1::2]
    kept = [0, *(np.flatnonzero(np.asarray(firsts[1:] > lasts[:-1])) + 1).tolist()]
    return [starts[at] for at in kept], (*firsts[kept].tolist(), lasts.tolist()[-1])
