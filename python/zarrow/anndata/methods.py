"""Methods of a Group that read AnnData's format. The stub `_group.pyi` documents each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, cast

from zarrow._zarrow import Group, _import
from zarrow.anndata import elements, sparse
from zarrow.api.progress import Progress, reporting
from zarrow.arrays.methods import add_method
from zarrow.errors import MetadataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    import polars
    import scipy.sparse

    from zarrow.tables.filters import Filters


def add_to_class() -> None:
    """Give the class Group these methods."""
    for function in (to_scipy, to_pandas, to_polars):
        add_method(Group, function.__name__, function)


def to_scipy(self: Group, selection: Any = None) -> scipy.sparse.csr_matrix | scipy.sparse.csc_matrix:
    """Read a sparse matrix, or rows of it."""
    sparse.check(self)
    return sparse.read(self, selection)


def to_pandas(
    self: Group,
    columns: str | Sequence[str] | None = None,
    *,
    rows: slice | None = None,
    filters: Filters | None = None,
    sorted_by: str | None = None,
    progress: Progress | bool | None = None,
    **unknown: Never,
) -> pandas.DataFrame:
    """Read a table into pandas, all columns in one batch.

    A table of AnnData (`obs`, `var`) gets its index, and the types that `anndata.read_zarr` gives:
    categoricals, nullable integers and bools, and pandas' strings. A table of pandas that `save` stored gets
    its index, too. Other groups get a default index, and nullable integers and bools where they have a mask.

    Parameters
    ----------
    columns
        Names in the order of the columns; by default as in `to_arrow`.
    rows
        A slice of rows; by default all.
    filters, sorted_by
        As in `to_arrow`. Columns of the filters are read first, and then the matching rows.
    progress
        Called with the bytes of the columns that were read, and of all, where the size of text is a guess; or
        True for a bar in a terminal or a notebook. Columns of filters are read before the first report.

    Raises
    ------
    MetadataError
        A column's arrays do not fit together (a `ValueError`).
    UnsupportedError
        A column has an encoding that zarrow does not read.

    And as `to_arrow` and `Array.read`.

    Examples
    --------
    >>> import pandas, zarrow
    >>> birds = pandas.DataFrame({"seen": [3, 1, 2]}, index=["owl", "crow", "wren"])
    >>> zarrow.save("birds.zarr", birds)
    >>> zarrow.open("birds.zarr").to_pandas(filters=[("seen", ">", 1)]).index.tolist()
    ['owl', 'wren']
    """
    if unknown:
        from zarrow.hints.unknown_keywords import refuse_keywords

        refuse_keywords("Group.to_pandas", unknown)
    with reporting(progress, "to_pandas") as report:
        return elements.read_frame(self, columns, rows, filters, sorted_by, report)


def to_polars(
    self: Group,
    columns: str | Sequence[str] | None = None,
    *,
    rows: slice | None = None,
    filters: Filters | None = None,
    sorted_by: str | None = None,
    progress: Progress | bool | None = None,
    **unknown: Never,
) -> polars.DataFrame:
    """Read a table into polars: `to_arrow(columns, rows=rows, filters=filters).polars()`.

    The index of an AnnData table is the first column. `progress`, which needs pyarrow, is called with the
    rows that were read, and all; or True for a bar in a terminal or a notebook. Columns of filters are read
    once more to count the rows.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("birds.zarr", {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
    >>> zarrow.open("birds.zarr").to_polars("name", progress=print).height
    0 3
    3 3
    3
    """
    stream = self.to_arrow(columns, rows=rows, filters=filters, sorted_by=sorted_by, **unknown)
    names = list(stream.column_names or ())
    if len(set(names)) < len(names):
        raise MetadataError(
            f"{self.name!r}: 'column-order' names a column twice: pass columns=[...]", node=self
        )
    with reporting(progress, "to_polars", "{} rows".format) as report:
        if report is None:
            return cast("polars.DataFrame", stream.polars())
        from zarrow.tables.reported_rows import read

        return cast("polars.DataFrame", _import("polars").DataFrame(read(stream, report)))
