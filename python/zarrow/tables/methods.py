"""Methods of a Group that treat it as a table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, cast

from zarrow._zarrow import ArrowStream, Group, _import
from zarrow.anndata.encoding import refuse_no_table, refuse_unfinished
from zarrow.arrays.methods import add_method, add_property
from zarrow.errors import ShapeError
from zarrow.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars
    import pyarrow
    import pyarrow.dataset
    from typing_extensions import CapsuleType

    from zarrow.api.progress import Progress
    from zarrow.tables.filtered_rows import FilteredRows
    from zarrow.tables.filters import Filters

_member = Group.__getitem__
_stream = Group.to_arrow


def add_to_class() -> None:
    """Give the classes Group and ArrowStream these methods."""
    add_method(Group, "__getitem__", _getitem)
    for function in (scan_arrow, scan_polars, to_parquet):
        add_method(Group, function.__name__, function)
    add_method(Group, "__arrow_c_schema__", _arrow_schema)
    add_method(ArrowStream, "__iter__", _batches)
    add_method(Group, "to_arrow", to_arrow)
    add_property(Group, "num_rows", num_rows)
    add_property(Group, "schema", schema)


def _batches(self: ArrowStream) -> Iterator[pyarrow.RecordBatch] | Iterator[pyarrow.Array]:
    """Yield batches of `batch_rows` rows, each read when it is asked for; of an array its chunks."""
    rows: Any = self
    reader = _import("pyarrow").RecordBatchReader
    batches: Iterator[Any] = iter(
        rows.arrow().chunks if self.column_names is None else reader.from_stream(self)
    )
    return batches


def to_arrow(
    self: Group,
    columns: str | Sequence[str] | None = None,
    *,
    rows: slice | None = None,
    filters: Filters | None = None,
    sorted_by: str | None = None,
    layout: Literal["tensor", "nested", "flat"] = "tensor",
    bools: Literal["bytes", "bits"] = "bits",
    strings: Literal["large", "small", "views"] = "large",
    mask: Literal["cf", "fill"] | None = None,
    batch_rows: int | None = None,
    **unknown: Any,
) -> ArrowStream | FilteredRows:
    """Return a stream of the rows, unless some rows are not stored yet; the stub documents it."""
    options = dict(layout=layout, bools=bools, strings=strings, mask=mask, batch_rows=batch_rows, **unknown)
    refuse_unfinished(self)
    if columns is None:
        refuse_no_table(self, "to_arrow")
    if filters is None:
        if sorted_by is not None:
            raise TypeError("sorted_by is for filters: leave it out, or pass filters=...")
        return cast("ArrowStream", _stream(self, columns, rows=rows, **options))
    from zarrow.tables.filtered_rows import FilteredRows
    from zarrow.tables.filters import Query

    return FilteredRows(Query(self, columns, rows, filters, sorted_by, options))


def _getitem(self: Group, key: Any, /) -> Any:
    if isinstance(key, str):
        return _member(self, key)
    try:
        if isinstance(key, slice) and str(self.attrs.get("encoding-type")).startswith("nullable-"):
            raise TypeError("values and their mask are one array")
        found = table.selected(self, key) if isinstance(key, slice | tuple | list) else None
        return _member(self, key) if found is None else found
    except (ShapeError, TypeError) as error:
        from zarrow.hints.kinds_of_groups import for_key

        if hint := for_key(self, key):
            error.args = (hint, *error.args[1:])
            vars(error).pop("__notes__", None)
        raise


def num_rows(self: Group) -> int:
    """Return the number of rows."""
    return self.to_arrow().num_rows


def schema(self: Group) -> pyarrow.Schema:
    """Return the schema."""
    return table.whole(self).schema


def to_parquet(
    self: Group, path: str | os.PathLike[str], *, progress: Progress | bool | None = None, **options: Any
) -> None:
    """Write the table to a Parquet file: `Table.to_parquet` documents it.

    Examples
    --------
    >>> import pyarrow.parquet
    >>> import zarrow
    >>> zarrow.save("birds.zarr", {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
    >>> zarrow.open("birds.zarr").to_parquet("birds.parquet", compression="zstd")
    >>> pyarrow.parquet.read_table("birds.parquet")["name"].to_pylist()
    ['owl', 'crow', 'wren']
    """
    table.whole(self).to_parquet(path, progress=progress, **options)


def scan_polars(self: Group, *, sorted_by: str | None = None) -> polars.LazyFrame:
    """Return a polars LazyFrame of the table, which reads only the columns and rows of a query.

    `Table.scan_polars` documents it.
    """
    return table.whole(self).scan_polars(sorted_by=sorted_by)


def scan_arrow(self: Group, *, sorted_by: str | None = None) -> pyarrow.dataset.Dataset:
    """Return a dataset of pyarrow, which DuckDB queries: `Table.scan_arrow` documents it."""
    return table.whole(self).scan_arrow(sorted_by=sorted_by)


def _arrow_schema(self: Group) -> CapsuleType:
    """Arrow: the types of the columns in a capsule."""
    return self.to_arrow().__arrow_c_schema__()
