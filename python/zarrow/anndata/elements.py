"""Reading of elements in AnnData's format, by the attribute `encoding-type`.

1. An element is planned first: its arrays are added to a batch, and a function is returned that makes the
   object of the decoded arrays. One batch reads all arrays of a table or of an AnnData.
2. Objects share the decoded memory, except where pandas copies.
3. Results are those of `anndata.io.read_elem`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from zarrow._zarrow import Array, Group, _import, _read_each, read_many
from zarrow.anndata import sparse
from zarrow.anndata.encoding import (
    KNOWN,
    UNFINISHED,
    encoding_of,
    is_known,
    refuse_no_table,
    refuse_unfinished,
)
from zarrow.errors import MetadataError, UnsupportedError
from zarrow.groups import pandas_index
from zarrow.groups.members import get_arrays
from zarrow.hints.calling_line import warn

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas

    from zarrow.api.progress import Progress
    from zarrow.tables.filters import Filters

Made: TypeAlias = Callable[[], Any]

_ARRAYS = ("", "array", "string-array", "rec-array", "numeric-scalar", "string", "bytes", "null")
NULLABLE = {"nullable-integer": "IntegerArray", "nullable-boolean": "BooleanArray"}
# The arrays of groups that stand for an array.
_MEMBERS = {"categorical": ("codes", "categories")} | dict.fromkeys(
    (*NULLABLE, "nullable-string-array"), ("values", "mask")
)
_PARTS = ("X", "obs", "var", "obsm", "varm", "obsp", "varp", "layers", "uns", "raw")


class Batch:
    """Arrays to read together; `rows` selects from each that is added with rows (step 1)."""

    def __init__(self, rows: slice | npt.NDArray[np.int64] | None = None) -> None:
        self._arrays: list[tuple[Array, bool]] = []
        self._rows = rows
        self._decoded: Sequence[Any] = ()
        self._members: dict[str, Array | Group] = {}

    def open_members(self, table: Group, columns: Mapping[str, Array | Group]) -> None:
        """Open the arrays of the columns that are groups, with one round of requests."""
        paths = [
            f"{node.path.removeprefix(table.path).lstrip('/')}/{member}"
            for node in columns.values()
            if isinstance(node, Group) and not node._is_consolidated()
            for member in _MEMBERS.get(encoding_of(node), ())
        ]
        # A missing one raises its error when its column is read.
        with contextlib.suppress(KeyError):
            self._members.update((node.path, node) for node in table._get_each(paths))

    def members(self, group: Group) -> list[Array]:
        """Return the arrays of a group that stands for an array."""
        names = _MEMBERS[encoding_of(group)]
        found = [self._members.get(f"{group.path}/{name}") for name in names]
        opened = [node for node in found if isinstance(node, Array)]
        return opened if len(opened) == len(names) else get_arrays(group, *names)

    def add(self, array: Array, *, by_row: bool = True) -> Made:
        """Add an array; the function returns its elements for NumPy after `read`."""
        at = len(self._arrays)
        self._arrays.append((array, by_row))
        return lambda: self._decoded[at].numpy()

    @property
    def arrays(self) -> list[Array]:
        """The arrays that were added with rows."""
        return [array for array, by_row in self._arrays if by_row]

    def read(self, report: Progress | None = None) -> None:
        """Read all arrays at once; with `report`, in batches."""
        rows = ... if self._rows is None else self._rows
        items = [(array, rows if by_row else ...) for array, by_row in self._arrays]
        if report is not None:
            from zarrow.api.reported_batches import ReportedReads

            self._decoded = ReportedReads(items, report).read_each()
        elif self._rows is None:
            self._decoded = _read_each([array for array, _ in self._arrays])
        else:
            decoded = read_many(items)
            self._decoded = [decoded[at] for at in range(len(items))]


def is_whole(group: Group, members: list[tuple[str, Any]]) -> bool:
    """Return whether a group is an AnnData; warn if it only looks like one.

    Raises
    ------
    MetadataError
        It was not stored completely, or lacks a table.
    UnsupportedError
        anndata gives its version another meaning.
    """
    encoding, tables = encoding_of(group), {"obs", "var"}
    found = {name for name, node in members if name in tables and encoding_of(node) == "dataframe"}
    refuse_unfinished(group)
    if encoding == "anndata" and not is_known(group):
        raise _unknown(group, encoding)
    if encoding == UNFINISHED["encoding-type"]:
        raise _malformed(group, "unfinished AnnData: the program that stored it was stopped: save it again")
    if encoding == "anndata":
        missing = tables.difference(name for name, _ in members)
        if missing:
            raise _malformed(group, f"AnnData without {' and '.join(sorted(missing))}")
        return True
    if encoding not in KNOWN or found == tables:
        warn(
            f"{group.name!r} has the encoding-type {encoding!r}, not 'anndata', so load gives a dict of its "
            "arrays: zarrow.load(path, 'obs') and zarrow.open(path)['X'] read parts"
        )
    return False


def load_anndata(members: list[tuple[str, Any]]) -> Any:
    """Read an AnnData object."""
    batch = Batch()
    parts = {name: plan(node, batch) for name, node in members if name in _PARTS}
    batch.read()
    made = {name: make() for name, make in parts.items()}
    return _import("anndata").AnnData(**made)


def read_frame(
    group: Group,
    columns: str | Sequence[str] | None,
    rows: slice | None,
    filters: Filters | None,
    sorted_by: str | None,
    report: Progress | None,
) -> pandas.DataFrame:
    """Read a table, or its rows that fulfil filters."""
    if rows is not None and not isinstance(rows, slice):
        raise TypeError(f"expected rows as a slice, such as slice(0, 10), or None, got {rows!r}")
    if columns is None:
        refuse_no_table(group, "to_pandas")
    selected: slice | npt.NDArray[np.int64] | None = rows
    if filters is not None:
        from zarrow.tables.filters import Query, selection

        selected = selection(Query(group, columns, rows, filters, sorted_by, {}).numbers())
    elif sorted_by is not None:
        raise TypeError("sorted_by is for filters: leave it out, or pass filters=...")
    batch = Batch(selected)
    make = _table(group, batch, [columns] if isinstance(columns, str) else columns)
    batch.read(report)
    frame: pandas.DataFrame = make()
    return frame


def plan(node: Array | Group, batch: Batch) -> Made:
    """Add the arrays of an element to the batch; the returned function makes its object (step 1)."""
    encoding = encoding_of(node)
    if not is_known(node):
        if isinstance(node, Group):
            refuse_unfinished(node)
        raise _unknown(node, encoding)
    if isinstance(node, Array):
        return _array(node, encoding, batch)
    if encoding in sparse.FORMATS:
        return _sparse(node, batch)
    if encoding == "dataframe":
        return _table(node, batch, None)
    if encoding == "categorical":
        return _categorical(node, batch)
    if encoding in NULLABLE:
        return _nullable(node, NULLABLE[encoding], batch)
    if encoding == "nullable-string-array":
        return _strings(node, batch)
    if encoding in ("", "dict", "raw"):
        below = {name: plan(member, batch) for name, member in node.items()}
        return lambda: {name: make() for name, make in below.items()}
    raise _unknown(node, encoding)


def _array(array: Array, encoding: str, batch: Batch) -> Made:
    if encoding not in _ARRAYS:
        raise _unknown(array, encoding)
    if encoding == "null":
        return lambda: None
    elements = batch.add(array)
    if encoding in ("numeric-scalar", "bytes", "string"):
        return lambda: elements().item()
    if encoding == "rec-array":
        return lambda: _with_objects(elements())
    return elements


def _with_objects(values: Any) -> Any:
    """Return structures with Python's strings in place of text of fixed size, as anndata does."""
    np = _import("numpy")
    types = {"U": lambda field: "O", "S": lambda field: f"U{field.itemsize}"}
    fields = [(name, values.dtype[name]) for name in values.dtype.names]
    return values.astype([(name, types.get(field.kind, np.dtype)(field)) for name, field in fields])


def _sparse(group: Group, batch: Batch) -> Made:
    (_, arrays) = sparse.parts(group)
    shape = tuple(group._attributes()["shape"])
    axis = sparse.FORMATS[encoding_of(group)]
    parts = [batch.add(array) for array in arrays]
    return lambda: sparse.assembled(group, axis, shape, *(part() for part in parts))


def _table(group: Group, batch: Batch, columns: Sequence[str] | None) -> Made:
    names: list[str] = list(group.to_arrow(columns).column_names or ())
    index = group._attributes().get("_index") if encoding_of(group) == "dataframe" else None
    if columns is None and index is not None:
        names = names[1:]
    wanted = names if index is None else [*names, index]
    nodes = dict(zip(wanted, group._get_each(wanted), strict=True))
    for name, node in nodes.items():
        if index is not None and isinstance(node, Array) and len(node.shape) != 1 and name in names:
            raise _malformed(group, f"column {name!r} has the shape {node.shape}, expected one axis")
    batch.open_members(group, nodes)
    made = {name: plan(nodes[name], batch) for name in names}
    made_index = None if index is None else plan(nodes[index], batch)
    levels = {} if index is not None else pandas_index.levels(group, _with_index(group, names))
    others = [name for name in levels if name not in made]
    made |= {name: plan(node, batch) for name, node in zip(others, group._get_each(others), strict=True)}

    def make() -> Any:
        pandas = _import("pandas")
        frame = pandas.DataFrame(
            {name: _of_one_axis(column()) for name, column in made.items()},
            index=made_index and made_index(),
            columns=[*names, *(name for name in levels if name not in names)] or None,
        )
        if index not in (None, "_index"):
            frame.index.name = index
        return frame.set_index(list(levels)).rename_axis(list(levels.values())) if levels else frame

    return make


def _with_index(group: Group, names: list[str]) -> list[str]:
    """Return all columns of the table if these are among them: its index is read with any of them."""
    stored = group._attributes().get("column-order")
    return stored if isinstance(stored, list) and set(names) <= set(map(str, stored)) else names


def _of_one_axis(values: Any) -> Any:
    """Return a column's values; pandas takes tensors only as a list of them.

    Integers and bools with a mask become nullable: pandas would round large integers to floats.
    """
    if getattr(values, "ndim", 1) > 1:
        return list(values)
    np, pandas = _import("numpy"), _import("pandas")
    if np.ma.isMaskedArray(values) and values.dtype.kind in "iub":
        made = pandas.arrays.BooleanArray if values.dtype.kind == "b" else pandas.arrays.IntegerArray
        return made(values.data, np.ma.getmaskarray(values).copy())
    return values


def _categorical(group: Group, batch: Batch) -> Made:
    arrays = batch.members(group)
    codes, categories = batch.add(arrays[0]), batch.add(arrays[1], by_row=False)
    ordered = bool(group._attributes().get("ordered", False))

    def make() -> Any:
        pandas = _import("pandas")
        try:
            return pandas.Categorical.from_codes(codes(), categories(), ordered=ordered)
        except ValueError as error:  # codes without a category, or a category twice
            raise _malformed(group, f"{error}") from error

    return make


def _nullable(group: Group, kind: str, batch: Batch) -> Made:
    values, mask = map(batch.add, values_and_mask(group, batch))
    return lambda: getattr(_import("pandas").arrays, kind)(values(), mask=mask())


def _strings(group: Group, batch: Batch) -> Made:
    values, mask = map(batch.add, values_and_mask(group, batch))
    is_nan = group._attributes().get("na-value", "NA") == "NaN"

    def make() -> Any:
        np, pandas = _import("numpy"), _import("pandas")
        dtype = pandas.StringDtype(na_value=np.nan if is_nan else pandas.NA)
        found = pandas.array(values().astype(np.dtypes.StringDType(na_object=dtype.na_value)), dtype=dtype)
        found[mask()] = pandas.NA
        return found

    return make


def values_and_mask(group: Group, batch: Batch) -> tuple[Array, Array]:
    """Return the arrays of a nullable column, which have one shape."""
    values, mask = batch.members(group)
    if mask.dtype.kind != "b" or mask.shape != values.shape:
        raise _malformed(
            group, f"mask of {mask.dtype} and shape {mask.shape}, expected bools of shape {values.shape}"
        )
    return values, mask


def _malformed(group: Group, text: str) -> MetadataError:
    return MetadataError(f"{group.name!r}: {text}", node=group)


def _unknown(node: Array | Group, encoding: str) -> UnsupportedError:
    version = node._attributes().get("encoding-version")
    return UnsupportedError(
        f"{node.name!r} has the AnnData encoding {encoding!r}, version {version!r}, which zarrow does not "
        "read: type anndata.read_zarr(path), or zarrow.open(path) to read other parts",
        node=node,
    )
