"""Tables of Parquet and Arrow files, which pyarrow reads.

1. A first pass finds the columns with missing values: by the statistics of a Parquet file, or by reading.
2. The rows are then read in batches, and stored in whole chunks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from zarrow._zarrow import Group, MemoryStore
from zarrow.api.creation import create_array
from zarrow.api.progress import Progress
from zarrow.files.elements import malformed
from zarrow.files.formats import Format, pyarrow
from zarrow.groups.tables import naming

# Rows of a chunk, by default.
_CHUNK_ROWS = 1 << 16

# The size of the rows that are in memory at a time.
_BATCH_NBYTES = 64 << 20


def opened(file: BinaryIO, chosen: Format) -> Table:
    """Return the table of a file.

    Raises
    ------
    MetadataError
        The file is not of its format.
    UnsupportedError
        pyarrow is not installed.
    """
    arrow = pyarrow("pyarrow")
    try:
        if chosen == "parquet":
            return ParquetTable(pyarrow("pyarrow.parquet").ParquetFile(file), file)
        return ArrowTable(pyarrow("pyarrow.ipc").open_file(file), file)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise malformed(file, f"no {chosen} file: {error}") from error


class Table:
    """Rows of a file."""

    def __init__(self, schema: Any, file: BinaryIO) -> None:
        self._schema = schema
        self._file = file
        self._arrow = pyarrow("pyarrow")
        if not schema.names:
            raise malformed(file, "the table has no columns")
        if len(set(schema.names)) < len(schema.names):
            raise malformed(file, f"the columns {schema.names} have a name twice")

    def num_rows(self) -> int:
        """Return the number of rows."""
        raise NotImplementedError

    def nulls(self) -> set[str]:
        """Return the columns with missing values (step 1)."""
        raise NotImplementedError

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield tables of this many rows, and a last one with fewer."""
        raise NotImplementedError

    def store(self, group: Group, options: Mapping[str, Any], progress: Progress | None) -> None:
        """Store all columns in a group (step 2)."""
        arrays = self.create(group, options)
        total, at = self.num_rows(), 0
        steps = [array.write_unit[0] for array in arrays.values() if array.write_unit]
        for table in self.batches(max(steps, default=1)):
            for name, array in arrays.items():
                with naming(name):
                    array[at : at + len(table)] = self._plain(table.column(name))
            at += len(table)
            if progress is not None:
                progress(at, total)
        if at != total:
            raise malformed(self._file, f"the table has {at} rows, but its header says {total}")
        group.attrs["column-order"] = list(arrays)

    def create(self, group: Group, options: Mapping[str, Any]) -> dict[str, Any]:
        """Create the array of each column."""
        chosen = {name: value for name, value in options.items() if name != "overwrite"}
        rows = chosen.pop("chunks", _CHUNK_ROWS)
        if type(rows) is not int or rows < 1:
            raise ValueError(f"chunks is {rows!r}, expected a number of rows, such as 65536")
        nulls, total, arrays = self.nulls(), self.num_rows(), {}
        for field in self._schema:
            with naming(field.name):
                kind = field.type
                value = kind.value_type if self._arrow.types.is_dictionary(kind) else kind
                storage = getattr(value, "storage_type", value)
                sample = self._arrow.array([None] if field.name in nulls else [], type=storage)
                if storage is not value:
                    sample = self._arrow.ExtensionArray.from_storage(value, sample)
                found = create_array(MemoryStore(), data=sample)
                tail = found.shape[1:]
                arrays[field.name] = group.create_array(
                    field.name,
                    shape=(total, *tail),
                    dtype=found.data_type,
                    chunks=(max(1, min(rows, total)), *tail),
                    **chosen,
                )
        return arrays

    def _plain(self, column: Any) -> Any:
        if self._arrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column.combine_chunks() if hasattr(column, "combine_chunks") else column

    def _rebatched(self, batches: Iterator[Any], rows: int) -> Iterator[Any]:
        held: list[Any] = []
        count = 0
        for batch in batches:
            held.append(batch)
            count += batch.num_rows
            if count >= rows:
                table = self._arrow.Table.from_batches(held, self._schema)
                whole = count - count % rows
                for at in range(0, whole, rows):
                    yield table.slice(at, rows)
                held, count = table.slice(whole).to_batches(), count - whole
        if count:
            yield self._arrow.Table.from_batches(held, self._schema)


class ParquetTable(Table):
    """A table of a Parquet file."""

    def __init__(self, file: Any, opened: BinaryIO) -> None:
        super().__init__(file.schema_arrow, opened)
        self._parquet = file

    def num_rows(self) -> int:
        """Return the number of rows."""
        return int(self._parquet.metadata.num_rows)

    def nulls(self) -> set[str]:
        """Return the columns with missing values, by reading those without statistics."""
        found, unknown = set(), set()
        metadata = self._parquet.metadata
        for group in range(metadata.num_row_groups):
            for at in range(metadata.num_columns):
                column = metadata.row_group(group).column(at)
                name = column.path_in_schema.partition(".")[0]
                statistics = column.statistics
                if statistics is None or not statistics.has_null_count:
                    unknown.add(name)
                elif statistics.null_count:
                    found.add(name)
        unknown -= found
        for name in unknown:
            if any(batch.column(0).null_count for batch in self._parquet.iter_batches(columns=[name])):
                found.add(name)
        return found

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield tables of this many rows, and a last one with fewer."""
        metadata = self._parquet.metadata
        nbytes = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
        at_once = max(1, _BATCH_NBYTES * max(1, metadata.num_rows) // max(1, nbytes))
        at_once = max(rows, at_once - at_once % rows)
        batches = self._parquet.iter_batches(batch_size=min(at_once, max(1, metadata.num_rows)))
        return self._rebatched(batches, at_once)


class ArrowTable(Table):
    """A table of an Arrow file."""

    def __init__(self, file: Any, opened: BinaryIO) -> None:
        super().__init__(file.schema, opened)
        self._batches = file
        self._rows: int | None = None
        self._nulls: set[str] = set()

    def _scan(self) -> None:
        if self._rows is None:
            rows = 0
            for batch in self._each():
                rows += batch.num_rows
                self._nulls |= {
                    name
                    for name, column in zip(self._schema.names, batch.columns, strict=True)
                    if column.null_count
                }
            self._rows = rows

    def _each(self) -> Iterator[Any]:
        return (self._batches.get_batch(at) for at in range(self._batches.num_record_batches))

    def num_rows(self) -> int:
        """Return the number of rows."""
        self._scan()
        return self._rows or 0

    def nulls(self) -> set[str]:
        """Return the columns with missing values."""
        self._scan()
        return self._nulls

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield tables of this many rows, and a last one with fewer."""
        return self._rebatched(self._each(), rows)
