"""A stream of the rows that fulfil filters: `Group.to_arrow(filters=...)` returns it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from zarrow._zarrow import ArrowStream, _import
from zarrow.tables.arrow_dataset import TableScanner
from zarrow.tables.filters import Query
from zarrow.tables.scanning import filter_of

if TYPE_CHECKING:
    import polars
    from typing_extensions import CapsuleType


class FilteredRows:
    """Rows that fulfil filters, for any library with Arrow's PyCapsule interface.

    As an `ArrowStream`, it holds no rows: each consumer reads them anew, a batch at a time. Columns of the
    filters are read first, and the others only from the first to the last matching row of a batch.
    """

    __slots__ = ("__dict__", "_query")

    def __init__(self, query: Query) -> None:
        self._query = query

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._query.columns)

    @cached_property
    def num_rows(self) -> int:
        """The number of matching rows: the columns of the filters are read for it."""
        return self._scanner().count_rows()

    def arrow(self) -> pa.Table:
        """Read the rows into a pyarrow.Table."""
        return self._scanner().to_table()

    def polars(self) -> polars.DataFrame:
        """Read the rows into a polars.DataFrame."""
        return cast("polars.DataFrame", _import("polars").DataFrame(self.arrow()))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches of matching rows, each read when it is asked for."""
        return self._scanner().to_batches()

    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the types of the columns in a capsule."""
        return cast("CapsuleType", self._scanner().projected_schema.__arrow_c_schema__())

    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow: a stream of the rows in a capsule, in the requested form if possible."""
        return cast("CapsuleType", self._scanner().to_reader().__arrow_c_stream__(requested_schema))

    def __getattr__(self, name: str, /) -> Any:
        """Raise an AttributeError that says what to type."""
        hinted: Any = ArrowStream
        return hinted.__getattr__(self, name)

    def __repr__(self) -> str:
        return f"<zarrow.tables.FilteredRows of {', '.join(self.column_names)} where {self._query.condition}>"

    def _scanner(self) -> TableScanner:
        query = self._query
        found = filter_of(query.condition, query.scan.schema.names)
        return TableScanner(query.scan, query.columns, found)
