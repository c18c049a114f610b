"""The class ArrowStream."""

from typing import final

import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import CapsuleType

@final
class ArrowStream:
    """Rows that any library with Arrow's PyCapsule interface reads, a batch at a time.

    `Group.to_arrow` and `Array.to_arrow` make it. It holds no rows and reads nothing: each library that asks
    (pyarrow.table, polars.DataFrame, a query of DuckDB) gets a separate stream, from the first row on. A
    batch is read when the library wants it, on the library's thread and zarrow's threads, and is handed over
    without a copy; so memory is bounded by what the library keeps and one batch more. A failed read ends the
    stream with the library's own error, with store, array, chunk and codec in its text; so does Ctrl-C, and
    KeyboardInterrupt follows (`arrow` and `polars` raise it at once).

    Examples
    --------
    >>> import zarrow
    >>> rows = zarrow.open("data.zarr").to_arrow(["temperature"], layout="nested")
    >>> rows
    <zarrow.ArrowStream 48 rows of temperature, 174744 a batch>
    >>> rows.polars()["temperature"].dtype
    Array(Float32, shape=(6, 8))
    """

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
    @property
    def batch_rows(self) -> int:
        """How many rows a batch has, except the first and the last: batches begin at multiples of it.

        By default a multiple of all columns' chunk lengths, so that no chunk is decoded twice, of about 32
        MiB in total; if that would be more than 256 MiB, of the longest chunk length.
        """
    @property
    def column_names(self) -> list[str] | None:
        """The names of the columns; None if it is the rows of one array."""
    def arrow(self) -> _pyarrow.Table | _pyarrow.ChunkedArray:
        """Read all rows into a pyarrow.Table; a pyarrow.ChunkedArray if it is the rows of one array."""
    def polars(self) -> _polars.DataFrame | _polars.Series:
        """Read all rows into a polars.DataFrame; a polars.Series if it is the rows of one array."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type of the rows in a capsule."""
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow: a stream of the rows in a capsule, in the requested form if that is possible."""
