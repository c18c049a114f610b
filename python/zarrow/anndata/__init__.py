"""AnnData's format: sparse matrices to SciPy, tables to pandas and polars, and whole AnnData objects.

Users reach it by `Group.read`, `Group.to_scipy`, `Group.to_pandas`, `Group.to_polars`, `zarrow.load` and
`zarrow.save`. pandas, SciPy and anndata are imported when a result needs them.

Source: AnnData, "On-disk format", encoding versions 0.1.0 and 0.2.0, and `anndata/_io/specs` of anndata 0.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from zarrow._zarrow import Array, Group
from zarrow.arrays.methods import add_method

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    import polars
    import scipy.sparse


def add_to_class() -> None:
    """Give the class Group these methods."""
    for function in (to_scipy, to_pandas, to_polars):
        add_method(Group, function.__name__, function)


def to_scipy(self: Group, selection: Any = None) -> scipy.sparse.csr_matrix | scipy.sparse.csc_matrix:
    """Read a sparse matrix, or rows of it."""
    from zarrow.anndata import sparse

    sparse.check(self)
    return sparse.read(self, selection)


def to_pandas(
    self: Group, columns: str | Sequence[str] | None = None, *, rows: slice | None = None
) -> pandas.DataFrame:
    """Read a table into pandas."""
    from zarrow.anndata import elements

    return elements.read_frame(self, columns, rows)


def to_polars(
    self: Group, columns: str | Sequence[str] | None = None, *, rows: slice | None = None
) -> polars.DataFrame:
    """Read a table into polars."""
    return cast("polars.DataFrame", self.to_arrow(columns, rows=rows).polars())


def is_anndata(value: Any) -> bool:
    """Return whether a value is an AnnData object; anndata is not imported."""
    return any(
        parent.__name__ == "AnnData" and parent.__module__.partition(".")[0] == "anndata"
        for parent in type(value).__mro__
    )


def encoding_of(node: Array | Group) -> str:
    """Return the attribute `encoding-type`; "" if there is none."""
    return str(node._attributes().get("encoding-type", ""))
