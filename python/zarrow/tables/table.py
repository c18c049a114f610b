"""Rows and columns of a group, selected but not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

from zarrow._zarrow import ArrowStream, Group, _import
from zarrow.errors import MetadataError

if TYPE_CHECKING:
    import os
    from typing import Literal

    import pandas
    import polars
    import pyarrow
    import pyarrow.dataset
    from typing_extensions import CapsuleType

    from zarrow.api.progress import Progress
    from zarrow.tables.filtered_rows import FilteredRows
    from zarrow.tables.filters import Filters


class ArrowOptions(TypedDict, total=False):
    """Options of `Group.to_arrow` besides columns and rows."""

    layout: Literal["tensor", "nested", "flat"]
    bools: Literal["bytes", "bits"]
    strings: Literal["large", "small", "views"]
    mask: Literal["cf", "fill"] | None
    batch_rows: int | None


class FrameOptions(TypedDict, total=False):
    """Options of `Group.to_pandas` and `Group.to_polars`."""

    filters: Filters | None
    sorted_by: str | None
    progress: Progress | bool | None


class Table:
    """Rows and columns of a group, selected but not read: `group[0:10]` and `group["id", "name"]` make it.

    A table is small, and can be pickled. It keeps the selection: rows that are appended to the group later
    are not included. Arrow's consumers (`pyarrow.table`, `polars.DataFrame`, DuckDB) take it directly.

    Attributes
    ----------
    group : Group
        The group of the columns.
    columns : tuple of str
        Names of the columns.
    start, stop : int
        The first row, and the row after the last one: by default, all rows that the group has now.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("birds.zarr", {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
    >>> birds = zarrow.open("birds.zarr")
    >>> birds[1:]
    <zarrow.Table 2 rows of id, name>
    >>> birds["name", "id"][:1].to_arrow().arrow().to_pydict()
    {'name': ['owl'], 'id': [1]}
    >>> birds[1:]["name"].tolist()
    ['crow', 'wren']
    """

    __slots__ = ("_selected", "group", "start", "stop")

    def __init__(
        self, group: Group, columns: tuple[str, ...] | None = None, start: int = 0, stop: int | None = None
    ) -> None:
        self.group, self._selected, self.start = group, columns, start
        self.stop: int = group.num_rows if stop is None else stop

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.column_names)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return self.num_rows, len(self.column_names)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.to_arrow().column_names or ())

    @property
    def schema(self) -> pyarrow.Schema:
        """The types of the columns in pyarrow."""
        return cast("pyarrow.Schema", _import("pyarrow").schema(self.to_arrow()))

    def __len__(self) -> int:
        return self.num_rows

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: slice | tuple[str, ...] | list[str]) -> Table: ...
    def __getitem__(self, key: slice | str | Sequence[str]) -> Any:
        """Select rows or columns, or read one column.

        Parameters
        ----------
        key
            A slice without a step, or several names, for a Table; one name for the elements of that column.

        Raises
        ------
        NotFoundError
            A column does not exist (a `KeyError`).
        TypeError
            The key is something else.
        """
        if isinstance(key, slice):
            start, stop = _bounds(key, self.num_rows)
            return Table(self.group, self._selected, self.start + start, self.start + stop)
        if isinstance(key, str):
            return self.group[key].read(slice(self.start, self.stop))
        names = _names(key)
        if names is None:
            raise TypeError(
                "expected a slice of rows, a name or several names of columns, such as table[0:10] or "
                f'table["id", "name"], got {key!r}'
            )
        self.group.to_arrow(names)
        return Table(self.group, names, self.start, self.stop)

    @overload
    def to_arrow(self, **options: Unpack[ArrowOptions]) -> ArrowStream: ...
    @overload
    def to_arrow(
        self, *, filters: Filters, sorted_by: str | None = None, **options: Unpack[ArrowOptions]
    ) -> FilteredRows: ...
    def to_arrow(self, **options: Any) -> ArrowStream | FilteredRows:
        """Return a stream of the rows for Arrow libraries: `Group.to_arrow` documents the options."""
        rows = slice(self.start, self.stop)
        return cast("ArrowStream | FilteredRows", self.group.to_arrow(self._selected, rows=rows, **options))

    def to_pandas(self, **options: Unpack[FrameOptions]) -> pandas.DataFrame:
        """Read the rows into pandas, all columns in one batch: see `Group.to_pandas`."""
        return self.group.to_pandas(self._selected, rows=slice(self.start, self.stop), **options)

    def to_polars(self, **options: Unpack[FrameOptions]) -> polars.DataFrame:
        """Read the rows into polars: see `Group.to_polars`."""
        return self.group.to_polars(self._selected, rows=slice(self.start, self.stop), **options)

    def to_parquet(
        self, path: str | os.PathLike[str], *, progress: Progress | bool | None = None, **options: Any
    ) -> None:
        """Write the rows to a Parquet file, a row group at a time, in bounded memory.

        The file is written beside its name first: after an error or a kill, an old file is unchanged.

        Parameters
        ----------
        path
            A local file; an existing one is replaced.
        progress
            Called with the rows that were written, and all; or True for a bar in a terminal or a notebook.
        options
            Options of `pyarrow.parquet.ParquetWriter`, such as `compression="zstd"`.

        Raises
        ------
        pyarrow.ArrowNotImplementedError
            Parquet has no type for a column.

        And as `Group.to_arrow` and `Array.read`.
        """
        from zarrow.tables import parquet_export

        parquet_export.write(self, path, options, progress)

    def scan_polars(self, *, sorted_by: str | None = None) -> polars.LazyFrame:
        """Return a polars LazyFrame that reads only the columns and rows of a query.

        Needs pyarrow, too. Columns of the filter are read first, a batch at a time, and the other columns
        only for batches with matching rows.

        Parameters
        ----------
        sorted_by
            A column of numbers, times or text in ascending or descending order, without missing elements
            between others. A filter on this column then searches for the chunks with matching rows,
            which reads few chunks. The order is your claim: rows out of order may be lost. Where elements out
            of order are read, the scan raises an error. Elements are as stored: a `_FillValue` at an end has
            to be in order, too.

        Raises
        ------
        ValueError
            `sorted_by` is not a column, not an array with one axis, or of a type without order.
        MetadataError
            Raised by the query: elements of `sorted_by` are not in order.

        And as `Group.to_arrow`; the query raises the errors of `Array.read`.

        Examples
        --------
        >>> import polars, zarrow
        >>> zarrow.save("birds.zarr", {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
        >>> birds = zarrow.open("birds.zarr").scan_polars(sorted_by="id")
        >>> birds.filter(polars.col("id") > 1).select("name").collect().rows()
        [('crow',), ('wren',)]
        """
        from zarrow.tables import polars_source

        return polars_source.scan(self, sorted_by)

    def scan_arrow(self, *, sorted_by: str | None = None) -> pyarrow.dataset.Dataset:
        """Return a dataset of pyarrow, which DuckDB queries: only the columns and rows of a query are read.

        Parameters
        ----------
        sorted_by
            As in `scan_polars`.

        Returns
        -------
        pyarrow.dataset.Dataset
            With `scanner`, `to_table`, `to_batches`, `head` and `count_rows`. DuckDB finds it by the name of
            its variable: `duckdb.sql("SELECT name FROM birds WHERE id > 1")`. DuckDB 2.0 evaluates filters
            of times in nanoseconds by itself, and then reads all rows: select them first, `table[:100]`.

        Raises
        ------
        ValueError
            As `scan_polars`.

        Examples
        --------
        >>> import duckdb, zarrow
        >>> zarrow.save("birds.zarr", {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
        >>> birds = zarrow.open("birds.zarr").scan_arrow(sorted_by="id")
        >>> duckdb.execute("SELECT name FROM birds WHERE id > 1").fetchall()
        [('crow',), ('wren',)]
        """
        from zarrow.tables import arrow_dataset

        return arrow_dataset.scan(self, sorted_by)

    def __arrow_c_schema__(self) -> CapsuleType:
        return self.to_arrow().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<zarrow.Table {self.num_rows} rows of {', '.join(self.column_names)}>"


def whole(group: Group) -> Table:
    """Return all rows and columns of a group.

    Raises
    ------
    ShapeError
        The group is no table: its arrays differ in length, or it has no arrays.
    """
    return Table(group, None, 0, group.to_arrow().num_rows)


def selected(group: Group, key: slice | Sequence[Any]) -> Table | None:
    """Return the table of a slice of rows, or of several names; None for other keys."""
    if isinstance(key, slice):
        start, stop = _bounds(key, group.to_arrow().num_rows)
        return Table(group, None, start, stop)
    names = _names(key)
    return None if names is None else Table(group, names, 0, group.to_arrow(names).num_rows)


def _names(key: Any) -> tuple[str, ...] | None:
    """Return names of columns; None for anything else."""
    if not isinstance(key, tuple | list) or not key or not all(isinstance(name, str) for name in key):
        return None
    if len(set(key)) < len(key):
        raise MetadataError(f"a column is selected twice: {list(key)}")
    return tuple(key)


def _bounds(rows: slice, length: int) -> tuple[int, int]:
    start, stop, step = rows.indices(length)
    if step != 1:
        raise ValueError(f"expected a slice of rows without a step, such as table[0:10], got step {step}")
    return start, max(start, stop)
