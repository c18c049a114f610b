"""The class ArrowStream."""

from collections.abc import Iterator
from typing import final

import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import CapsuleType

@final
class ArrowStream:
    """A stream of rows, in batches, for any library with Arrow's PyCapsule interface.

    `Group.to_arrow` and `Array.to_arrow` return it. The object itself holds no rows: each consumer
    (pyarrow.table, polars.DataFrame, a DuckDB query) gets a separate stream from the first row on. A batch is
    read when the consumer requests it, on the consumer's thread and zarrow's threads, and is passed on
    without a copy. So memory use is bounded by what the consumer keeps, and one batch. A failed read ends the
    stream with the consumer's own error, which names store, array, chunk and codec. So does Ctrl-C;
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
        """The number of rows in a batch, except the first and the last: batches begin at multiples of it.

        By default about 32 MiB, in a multiple of all columns' chunk lengths, so that no chunk is decoded
        twice. If that would be more than 256 MiB, a multiple of the longest chunk length.
        """
    @property
    def column_names(self) -> list[str] | None:
        """The names of the columns; None for the rows of a single array."""
    def __iter__(self) -> Iterator[_pyarrow.RecordBatch] | Iterator[_pyarrow.Array]:
        """Yield batches of `batch_rows` rows, each read when it is asked for; of an array its chunks."""

    def arrow(self) -> _pyarrow.Table | _pyarrow.ChunkedArray:
        """Read all rows into a pyarrow.Table, or a pyarrow.ChunkedArray for the rows of a single array."""
    def polars(self) -> _polars.DataFrame | _polars.Series:
        """Read all rows into a polars.DataFrame, or a polars.Series for the rows of a single array."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type of the rows in a capsule."""
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow: a stream of the rows in a capsule, in the requested form if possible."""
