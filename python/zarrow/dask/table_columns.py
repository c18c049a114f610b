"""The arrays of a table that dask writes, and the elements of a partition for each of them.

1. AnnData's format for tables defines the nodes. Only the types that dask knows decide which: text is
   always nullable.
2. Categories are stored when the arrays are created. Codes of a partition refer to them.
3. A partition with other types, categories or rows than expected is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas
from dask.dataframe.utils import UNKNOWN_CATEGORIES

from zarrow._zarrow import Array, Group, MemoryStore, _ChunkParts
from zarrow.anndata.encoding import finish
from zarrow.anndata.saving import Stored, node_of
from zarrow.errors import DataTypeError, ExchangeError, ShapeError


class LongerArray:
    """An array with a new document that is not stored yet. It can be pickled."""

    def __init__(self, store: Any, path: str, zarr_format: int, document: bytes, length: int) -> None:
        self._parts = (store, path, zarr_format, document)
        self._length = length

    def __setitem__(self, rows: slice, elements: Any) -> None:
        _ChunkParts(*self._parts).array((self._length,))[rows] = elements


class Columns:
    """The columns that are written: their arrays, types and attributes, for the tasks.

    Attributes
    ----------
    group
        The group of the arrays; None until it is created.
    meta
        A frame without rows, with the types and categories of all partitions.
    nodes
        The nodes of the table, without rows.
    arrays
        Where elements are written, by path.
    """

    def __init__(self, meta: pandas.DataFrame, nodes: Stored, group: Group | None = None) -> None:
        self.meta, self.nodes, self.group = meta, nodes, group
        self.arrays: dict[str, Array | LongerArray] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        if self.group is not None and isinstance(self.group.__reduce__()[1][0], MemoryStore):
            raise TypeError(
                "other processes cannot write into a MemoryStore: use the scheduler 'threads', or a folder"
            )
        return _load, (self.meta, self.nodes, self.group, self.arrays)

    def create(self, group: Group, length: int, options: Mapping[str, Any]) -> int:
        """Create all arrays with their full length (step 1), and return the rows of their write units."""
        self.group, unit = group, None
        for name, node in (self.nodes.members or {}).items():
            for path, leaf in leaves(name, node):
                if leaf.members is not None:
                    group.create_group(path, attributes=leaf.attributes)
                elif is_categories(name, path):
                    group.create_array(path, data=leaf.data, attributes=leaf.attributes)
                else:
                    self.arrays[path] = array = group.create_array(
                        path,
                        shape=(length, *leaf.data.shape[1:]),
                        dtype=leaf.data.dtype,
                        attributes=leaf.attributes,
                        **options,
                    )
                    unit = array.write_unit
        return unit[0] if unit else 1

    def encode(self, frame: pandas.DataFrame, expected: int) -> dict[str, Any]:
        """Return the elements of all arrays for a partition.

        Raises
        ------
        ShapeError
            The partition has another number of rows than it had before.
        DataTypeError
            A column has another type than dask says, or other categories.
        """
        if len(frame) != expected:
            raise ShapeError(
                f"a partition has {len(frame)} rows, expected {expected}: correct lengths= if you passed it; "
                "without lengths=, the computation gives other rows each time"
            )
        if list(frame.columns) != list(self.meta.columns):
            raise DataTypeError(
                f"a partition has the columns {list(frame.columns)}, expected {list(self.meta.columns)}"
            )
        found: dict[str, Any] = {}
        for name, node in (self.nodes.members or {}).items():
            is_column = name in self.meta
            values = frame[name] if is_column else frame.index.to_series()
            like = self.meta[name].dtype if is_column else self.meta.index.dtype
            found |= _elements(name, node, values.reset_index(drop=True), like)
        return found

    def write(self, start: int, parts: Sequence[Mapping[str, Any]]) -> None:
        """Write the elements of adjacent rows into all arrays."""
        for path, array in self.arrays.items():
            elements = [part[path] for part in parts]
            joined = elements[0] if len(elements) == 1 else np.concatenate(elements)
            array[start : start + len(joined)] = joined

    def finish(self, written: Sequence[None]) -> None:
        """Make the group a table (step 4)."""
        del written
        assert self.group is not None
        finish(self.group, self.nodes.attributes)


def _load(
    meta: pandas.DataFrame, nodes: Stored, group: Group | None, arrays: dict[str, Array | LongerArray]
) -> Columns:
    columns = Columns(meta, nodes, group)
    columns.arrays = arrays
    return columns


def nodes_of(meta: pandas.DataFrame, *, index: bool) -> Stored:
    """Return the nodes of a table without rows.

    Raises
    ------
    ExchangeError
        A column's type or name cannot be stored, or the index has the name of a column.
    DataTypeError
        dask does not know the categories of the index.
    """
    if (
        index
        and isinstance(meta.index, pandas.CategoricalIndex)
        and UNKNOWN_CATEGORIES in meta.index.categories
    ):
        raise DataTypeError("the categories of the index are unknown: call ddf.categorize(index=True) first")
    frame = meta.iloc[:0].copy()
    text = pandas.StringDtype(na_value=np.nan)
    for name in frame.columns if frame.columns.is_unique else ():
        if isinstance(name, str) and frame[name].dtype == object:
            frame[name] = frame[name].astype(text)
    if not index:
        frame = frame.reset_index(drop=True)
    elif frame.index.dtype == object:
        frame.index = frame.index.astype(text)
    _check_frame(frame, index=index)
    node = node_of(frame, "")
    if not index:
        members = dict(node.members or {})
        del members[node.attributes["_index"]]
        return Stored({"column-order": node.attributes["column-order"]}, members=members)
    return node


def _check_frame(frame: pandas.DataFrame, *, index: bool) -> None:
    """Refuse types that cannot be stored, and a column with the name of the index."""
    label = "_index" if frame.index.name is None else frame.index.name
    if label in frame.columns:
        raise ExchangeError(
            f"the index and a column are named {label!r}: rename either"
            + (", or pass index=False" if index and label != "_index" else "")
        )
    columns = [(f"column {name!r}", frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    for what, values in [*columns, *([("the index", frame.index)] if index else [])]:
        try:
            node_of(values, what)
        except ExchangeError as error:
            way = "by astype()"
            if getattr(values.dtype, "tz", None) is not None:
                way = 'by .dt.tz_convert("UTC").dt.tz_localize(None)'
                if values is frame.index:
                    way = 'by ddf.map_partitions(lambda part: part.tz_convert("UTC").tz_localize(None))'
            raise ExchangeError(
                f"{what} has type {values.dtype}, which is not stored: convert it {way} first"
            ) from error


def leaves(path: str, node: Stored) -> Iterator[tuple[str, Stored]]:
    """Yield a node and the nodes below it, with their paths."""
    yield path, node
    for name, below in (node.members or {}).items():
        yield from leaves(f"{path}/{name}", below)


def is_categories(column: str, path: str) -> bool:
    """Whether the array at a path has the categories of a column."""
    return path == f"{column}/categories"


def _elements(name: str, node: Stored, values: pandas.Series, like: Any) -> dict[str, Any]:
    """Return the elements of each array of a column."""
    encoding = node.attributes["encoding-type"]
    if encoding == "categorical":
        _check_type(name, values, isinstance(values.dtype, pandas.CategoricalDtype), like)
        converted = values.cat.set_categories(like.categories)
        if not converted.isna().equals(values.isna()):
            lost = values[converted.isna() & values.notna()].iloc[0]
            raise DataTypeError(
                f"column {name!r} has the element {lost!r}, expected one of the categories "
                f"{list(like.categories)}"
            )
        return {f"{name}/codes": converted.cat.codes.to_numpy()}
    if values.dtype.kind == like.kind and values.dtype.kind in "mM":
        values = values.astype(like)
    is_text = values.dtype == object or isinstance(values.dtype, pandas.StringDtype)
    _check_type(name, values, is_text if encoding == "nullable-string-array" else values.dtype == like, like)
    try:
        found = node_of(values, name)
    except ExchangeError as error:
        error.add_note("rows of other partitions may have been written")
        raise
    if node.members is None:
        return {name: found.data}
    if found.members is None:
        return {f"{name}/values": found.data, f"{name}/mask": np.zeros(len(values), bool)}
    return {f"{name}/{part}": below.data for part, below in found.members.items()}


def _check_type(name: str, values: pandas.Series, is_expected: bool, like: Any) -> None:
    """Refuse a column of another type than dask says (step 3)."""
    if not is_expected:
        raise DataTypeError(
            f"a partition's column {name!r} has type {values.dtype}, expected {like}: convert it by astype()"
        )
