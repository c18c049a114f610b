"""Scans a table by pyarrow and DuckDB, as a dataset of pyarrow.

DuckDB calls `scanner` with the columns of a query and with the part of its filter that pyarrow can express,
and does not apply that part itself: it is applied here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs

from zarrow.tables.scanning import Filter, Scan, filter_of

if TYPE_CHECKING:
    from zarrow.tables.table import Table


def scan(table: Table, sorted_by: str | None) -> pyarrow.dataset.Dataset:
    """Return a dataset of a table: `Table.scan_arrow`."""
    return TableDataset(Scan(table, sorted_by))


_REFUSED = "a table of zarrow is only scanned: call to_table() first"


class TableDataset(pyarrow.dataset.FileSystemDataset):  # type: ignore[misc]
    """A dataset of one file, which does not exist.

    Consumers recognize the base class. Those that scan it themselves, like Acero, fail with the file's name.
    """

    def __init__(self, source: Scan) -> None:
        files, folder = pyarrow.dataset.IpcFileFormat(), pyarrow.fs.LocalFileSystem()
        fragment = files.make_fragment(_REFUSED, filesystem=folder)
        super().__init__([fragment], source.schema, files, folder)
        self._source = source

    def __reduce__(self) -> tuple[type[TableDataset], tuple[Scan]]:
        return TableDataset, (self._source,)

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> TableScanner:
        """Return a scanner of these columns, for the rows that fulfil a filter; other options are ignored."""
        del batch_size, options
        names = self.schema.names
        if columns is not None and not isinstance(columns, list | tuple):
            raise TypeError(f"expected a list of names of columns, got {type(columns).__name__}")
        for name in columns or ():
            if name not in names:
                raise KeyError(f"the table has no column {name!r}: it has {names}")
        wanted = names if columns is None else list(columns)
        return TableScanner(self._source, wanted, None if filter is None else filter_of(filter, names))

    def to_table(self, *args: Any, **options: Any) -> pa.Table:
        """Read the rows of a query: `scanner` has the arguments."""
        return self.scanner(*args, **options).to_table()

    def to_batches(self, *args: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows of a query by batches: `scanner` has the arguments."""
        return self.scanner(*args, **options).to_batches()

    def head(self, num_rows: int, *args: Any, **options: Any) -> pa.Table:
        """Read the first rows of a query: `scanner` has the other arguments."""
        return self.scanner(*args, **options).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """Count the rows of a query; without a filter, nothing is read."""
        del options
        return self.scanner([], filter).count_rows()

    def _refused(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(_REFUSED)

    filter = get_fragments = join = join_asof = replace_schema = sort_by = take = _get_fragments = _refused


class TableScanner:
    """A query: columns, and the rows that fulfil a filter. It reads when its batches are requested."""

    def __init__(self, source: Scan, columns: list[str], rows_filter: Filter | None) -> None:
        self._source, self._columns, self._filter = source, columns, rows_filter

    @property
    def dataset_schema(self) -> pa.Schema:
        """The types of all columns."""
        return self._source.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The types of the query's columns."""
        schema = self._source.schema
        return pa.schema([schema.field(name) for name in self._columns], schema.metadata)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, a batch at a time."""
        read = self._columns or self._source.schema.names[:1]
        for batch in self._source.batches(read, self._filter):
            yield from batch.select(self._columns).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, which reads a batch at a time."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Read all rows."""
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Read the first rows."""
        found: list[pa.RecordBatch] = []
        missing = num_rows
        batches = self.to_batches()
        while missing > 0 and (batch := next(batches, None)) is not None:
            found.append(batch.slice(0, missing))
            missing -= found[-1].num_rows
        return pa.Table.from_batches(found, self.projected_schema)

    def count_rows(self) -> int:
        """Count the rows; without a filter, nothing is read."""
        if self._filter is None:
            return self._source.table.num_rows
        read = self._columns or list(self._filter.columns)[:1] or self._source.schema.names[:1]
        return sum(batch.num_rows for batch in self._source.batches(read, self._filter))
