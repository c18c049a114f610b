"""The class Group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Unpack, final, overload

import pyarrow
import scipy.sparse
from typing_extensions import CapsuleType

from zarrow.anndata import methods as anndata_methods
from zarrow.api.array_options import Chunks, Codec, Codecs, LayoutOptions
from zarrow.api.progress import Progress
from zarrow.api.typed import AnyNode
from zarrow.arrays._array import Array
from zarrow.arrays._categorical import Categorical
from zarrow.arrays._masked_tensor import MaskedTensor
from zarrow.arrays._masked_variable import MaskedVariable
from zarrow.groups import many_arrays, node_info, rows
from zarrow.groups._node import _Node
from zarrow.groups._tree import Tree
from zarrow.groups.attributes import Attributes
from zarrow.interchange._arrow_stream import ArrowStream
from zarrow.ome import Multiscales
from zarrow.tables import methods
from zarrow.tables.filtered_rows import FilteredRows
from zarrow.tables.filters import Filters
from zarrow.tables.table import ArrowOptions, Table

@final
class Group(_Node):
    """A group of arrays and groups in a store.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open("data.zarr")
    >>> "model/pressure" in root, list(root)
    (True, ['model', 'nickname', 'station', 'temperature', 'turbidity_on_land'])
    """

    @property
    def attrs(self) -> Attributes:
        """The attributes: a mapping that stores each change. `group.attrs = {...}` replaces all."""
    @attrs.setter
    def attrs(self, attributes: Mapping[str, Any]) -> None: ...
    info_complete = node_info.info_of_group
    update_attributes = node_info.update_attributes_of_group
    @overload
    def __getitem__(self, path: str, /) -> AnyNode:
        """Return the Array or Group at a path below this group, such as "model/pressure".

        A slice of rows, `group[0:10]`, or several names of columns, `group["id", "name"]`, give a `Table`:
        the selected rows and columns of the group's arrays, which it reads later. `to_arrow` says which
        arrays are columns.

        Raises
        ------
        NotFoundError
            Nothing exists at the path (a `KeyError`).
        ShapeError
            The columns differ in length (a `ValueError`).
        MetadataError
            Its metadata is malformed (a `ValueError`).
        """
    @overload
    def __getitem__(self, rows_or_columns: slice | tuple[str, ...] | list[str], /) -> Table: ...
    def __setitem__(self, path: str, value: Any, /) -> None:
        """Store an array, a table or a group at a path below this group.

        An existing array is replaced in one step: if this raises, or the process is killed, it is unchanged.
        The new array has the default chunks and codecs of `create_array`, and no attributes; to keep the old
        ones, write to the array: `group["a"][...] = values`. Consolidated metadata are updated in a second
        step: if data type, chunks or codecs change, they lack the array until then.

        Parameters
        ----------
        path
            The path of the node, such as "model/pressure".
        value
            Anything that `asarray` takes. A table of pandas, polars or Arrow, or a dict of arrays, becomes a
            group with an array for each column. An `Array` of a store is copied completely: elements, chunks,
            codecs, fill value, axis names and attributes. More than 256 MiB are copied in parts, and only to
            an unused path. A `Group` is copied with its attributes and everything below it. An existing group
            keeps its other members. In a table, an array with a new name and as many elements becomes the
            last column.

        Raises
        ------
        NodeExistsError
            The path has a group, which an array never replaces (a `FileExistsError`).
        ShapeError
            The group is a dataframe of AnnData with another number of rows (a `ValueError`).

        Examples
        --------
        >>> import zarrow
        >>> root = zarrow.create_group("new.zarr")
        >>> root["table"] = {"x": [1, 2], "name": ["a", "b"]}
        >>> root["copy"] = root["table"]
        >>> root["copy/name"][...].tolist()
        ['a', 'b']
        """
    def __delitem__(self, path: str, /) -> None:
        """Erase the array or group at a path, with everything below it, in one step.

        Other files, folders and chunks cannot be erased this way.

        Raises
        ------
        NotFoundError
            Nothing exists at the path (a `KeyError`).
        ReadOnlyError, StoreError
            The store cannot be written, or erased data cannot be removed; the message then names their path
            (an `OSError`).
        """
    append = rows.append
    def create_array(
        self,
        name: str,
        *,
        shape: int | Sequence[int] | None = None,
        dtype: Any = None,
        data: Any = None,
        chunks: Chunks = "auto",
        shards: int | Sequence[int] | Literal["auto"] | None = None,
        filters: Codecs = "auto",
        compressors: Codecs = "auto",
        compressor: Codec | None = "auto",
        serializer: Codec | Literal["auto"] | None = "auto",
        codecs: Iterable[Codec] | None = None,
        fill_value: Any = None,
        order: Literal["C", "F"] | None = None,
        attributes: Mapping[str, Any] | None = None,
        chunk_key_encoding: str | Mapping[str, Any] | None = None,
        dimension_names: Sequence[str | None] | None = None,
        missing: Literal["optional", "fill", "anndata"] | None = None,
        overwrite: bool = False,
        progress: Progress | bool | None = None,
    ) -> Array:
        """Create an array below the group, and any missing groups between.

        Parameters
        ----------
        name
            The path below the group, such as `"rain"` or `"model/rain"`.
        shape, dtype
            The extent of each axis, and the data type; both follow from `data` if it is given.
        data
            Initial elements: anything that `zarrow.asarray` takes, written straight from its memory.
        chunks, shards
            The shape of a chunk, which is encoded as a unit, and of a shard, which is stored as one file.
        compressors, filters, serializer, codecs, compressor, fill_value, order, attributes,
        chunk_key_encoding, dimension_names, overwrite, progress
            As for `zarrow.create_array`, which explains each. Version and durability are the group's.

        Raises
        ------
        NodeExistsError
            A node, file or folder exists at the path (a `FileExistsError`).
        MetadataError, CodecError, LimitError
            The options contradict each other (a `ValueError`).
        NodeTypeError, UnsupportedError, InvalidKeyError, ReadOnlyError, StoreError
            As `zarrow.create_array`.

        Examples
        --------
        >>> import zarrow
        >>> root = zarrow.open("data.zarr")
        >>> root.create_array("model/wind", shape=(2, 3), dtype="f4", fill_value=-1)[0].tolist()
        [-1.0, -1.0, -1.0]
        """
    create_arrays = many_arrays.create_arrays
    def require_array(
        self,
        name: str,
        *,
        shape: int | Sequence[int],
        dtype: Any = None,
        exact: bool = False,
        fill_value: Any = None,
        **options: Unpack[LayoutOptions],
    ) -> Array:
        """Return the array of this name; create it if missing.

        Parameters
        ----------
        name
            The path below the group.
        shape
            The shape of the array; an existing array must have it.
        dtype
            Data type of an element (default "f8"). An existing array's type must be castable to it without
            loss.
        exact
            Whether an existing array must have exactly this type.
        fill_value, options
            As for `create_array`, for an array that is created.

        Raises
        ------
        TypeError
            The existing array has another shape or type, or the node is a group (`NodeTypeError`).
        MetadataError, CodecError, ReadOnlyError, StoreError
            As `create_array`.

        Examples
        --------
        >>> import zarrow
        >>> root = zarrow.open("data.zarr")
        >>> root.require_array("counts", shape=10, dtype="i4").shape
        (10,)
        >>> root.require_array("counts", shape=10, dtype="i8").dtype
        dtype('int32')
        """
    def create_dataset(
        self, name: str, shape: Any = None, dtype: Any = None, data: Any = None, **options: Any
    ) -> Array:
        """Create an array: `create_array` by its name in h5py and zarr-python 2, of "f8" by default.

        It also takes `dimension_separator`, the old name of `chunk_key_encoding`.
        """
    def require_dataset(
        self,
        name: str,
        shape: int | Sequence[int],
        dtype: Any = None,
        *,
        exact: bool = False,
        **options: Any,
    ) -> Array:
        """Return an array or create it: `require_array` by its name in h5py and zarr-python 2."""
    def zeros(
        self,
        name: str,
        shape: int | Sequence[int],
        *,
        dtype: Any = "f8",
        **options: Unpack[LayoutOptions],
    ) -> Array:
        """Create an array of zeros below the group, with the options of `create_array`.

        Examples
        --------
        >>> import zarrow
        >>> zarrow.open("data.zarr").zeros("counts", 3, dtype="i4")[...].tolist()
        [0, 0, 0]
        """
    def ones(
        self,
        name: str,
        shape: int | Sequence[int],
        *,
        dtype: Any = "f8",
        **options: Unpack[LayoutOptions],
    ) -> Array:
        """Create an array of ones below the group, with the options of `create_array`."""
    def full(
        self,
        name: str,
        shape: int | Sequence[int],
        fill_value: Any,
        *,
        dtype: Any = "f8",
        **options: Unpack[LayoutOptions],
    ) -> Array:
        """Create an array of one value below the group, with the options of `create_array`."""
    def empty(
        self,
        name: str,
        shape: int | Sequence[int],
        *,
        dtype: Any = "f8",
        **options: Unpack[LayoutOptions],
    ) -> Array:
        """Create an array of the default fill value below the group, with the options of `create_array`."""
    def create_group(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> Group:
        """Create a group below the group, and any missing groups between.

        Parameters and errors are as in `zarrow.create_group`.
        """
    def require_group(self, name: str, *, overwrite: bool = False) -> Group:
        """Return the group of this name; create it if missing.

        Parameters
        ----------
        name
            The path below the group.
        overwrite
            Whether to erase an existing node, with everything below it, and create an empty group instead.

        Raises
        ------
        NodeTypeError
            The node is an array (a `TypeError`).
        """
    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return the groups of these names; create missing ones."""
    def consolidate_metadata(self, *, progress: Progress | bool | None = None) -> None:
        """Copy the metadata of everything below the group into the group's own.

        `zarrow.consolidate_metadata` explains the purpose, `progress`, and how the copies stay up to date. If
        a later change is stored but the copies cannot be updated (full disk, a group of another owner), a
        `ZarrowWarning` is given; call this method again.
        """
    def refresh(self) -> None:
        """Read the metadata again, so that this Group matches the store.

        Without consolidated metadata, members that other writers create or erase are visible at once. With
        them, changes of this process are visible at once, and changes of other processes after reopening or
        `refresh`.
        """
    def __contains__(self, path: str, /) -> bool: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse, with a TypeError that says how to read arrays of the group."""
    def __enter__(self) -> Group:
        """Return the group itself, so that `with zarrow.open(path) as root` works as for h5py files."""
    def __exit__(self, *_: object) -> None:
        """Do nothing: writes are stored when their calls return."""
    def __eq__(self, other: object, /) -> bool:
        """Whether both have the same path in the same store."""
    def __ne__(self, other: object, /) -> bool:
        """Whether it is not equal."""
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the store, the path and the options; loading opens the node again.

        Stores are pickled as in `Array.__reduce__`.
        """
    def __copy__(self) -> Group:
        """Return another handle of the same group."""
    def get(self, path: str, default: Any = None) -> AnyNode:
        """Return the Array or Group at a path below this group, or `default` if nothing exists there."""
    def get_array(self, path: str) -> Array:
        """Return the Array at a path below the group: `group[path]`, with a precise type.

        Raises
        ------
        NodeTypeError
            The node is a group (a `TypeError`).
        NotFoundError
            Nothing exists at the path (a `KeyError`).
        """
    def get_group(self, path: str) -> Group:
        """Return the Group at a path below the group: as `get_array`."""
    def _ipython_key_completions_(self) -> list[str]: ...
    def _attributes(self) -> dict[str, Any]: ...
    def _is_read_only(self) -> bool: ...
    def _is_remote(self) -> bool: ...
    def _is_consolidated(self) -> bool: ...
    def _document_version(self) -> int | None: ...
    def _without_consolidated(self) -> Group: ...
    def _get_each(self, paths: list[str]) -> list[Array | Group]: ...
    def _keys_of(self, of_arrays: bool) -> list[str]: ...
    def _erase(self, path: str) -> None: ...
    def _change_attributes(self, how: str, attributes: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> list[str]:
        """List the names of the members, sorted.

        In a loop over them, the members of a group in the cloud are opened in batches.
        """
    def values(self) -> list[AnyNode]:
        """List the members, sorted by name."""
    def items(self) -> list[tuple[str, AnyNode]]:
        """List the members with their names, sorted.

        A member with invalid or unsupported metadata is left out with a warning, here and in the other lists
        of nodes; `keys` has all names. If the store cannot read a member, they raise an error.

        Raises
        ------
        StoreError, StorePermissionError
            The store cannot list the group, or cannot read a member (an `OSError`).
        """
    def arrays(self) -> list[tuple[str, Array]]:
        """List the arrays with their names, sorted."""
    def groups(self) -> list[tuple[str, Group]]:
        """List the groups with their names, sorted."""
    def array_keys(self) -> list[str]:
        """List the names of the arrays, sorted."""
    def group_keys(self) -> list[str]:
        """List the names of the groups, sorted."""
    def array_values(self) -> list[Array]:
        """List the arrays, sorted by name."""
    def group_values(self) -> list[Group]:
        """List the groups, sorted by name."""
    def members(self, max_depth: int | None = 0) -> tuple[tuple[str, AnyNode], ...]:
        """Return the members with their paths below the group. A link to a group above it is a `LimitError`.

        Parameters
        ----------
        max_depth
            How many levels to go down: 0 gives direct members, None all.

        Examples
        --------
        >>> import zarrow
        >>> [path for path, _ in zarrow.open("data.zarr").members(max_depth=None)][:2]
        ['model', 'model/pressure']
        """
    def nmembers(self, max_depth: int | None = 0) -> int:
        """Count the results of `members`."""
    def read(
        self, selection: Any = None
    ) -> (
        Categorical | MaskedTensor | MaskedVariable | scipy.sparse.csr_matrix | scipy.sparse.csc_matrix | Any
    ):
        """Read a nullable, categorical or sparse array that AnnData stored as a group.

        The attribute `encoding-type` names the kind: `nullable-integer`, `nullable-boolean` and
        `nullable-string-array` groups have values and a mask, `categorical` groups have codes and categories,
        `csr_matrix` and `csc_matrix` groups are read as by `to_scipy`.

        Parameters
        ----------
        selection
            As for `Array.__getitem__`; by default all elements. Categories are always read completely.

        Returns
        -------
        MaskedTensor, MaskedVariable, Categorical, or a sparse matrix of SciPy

        Raises
        ------
        NodeTypeError
            The group does not represent an array (a `TypeError`).
        MetadataError
            Its members do not fit together (a `ValueError`).
        NotFoundError, IndexingError, CodecError, StoreError
            As `Array.__getitem__`.

        Examples
        --------
        >>> import zarrow
        >>> cells = zarrow.open("cells.zarr")
        >>> cells["count"].read().tolist(), cells["kind"].read(slice(1, 3)).tolist()
        ([3, None, 7, 0], [None, 'B'])
        """
    @property
    def multiscales(self) -> Multiscales:
        """The OME-Zarr image that the group stores: axes, levels, and labels, of version 0.4 or 0.5.

        If the group has several, the first one. Levels open their arrays when these are used:
        `group.multiscales["1"].array[:, :100]`.

        Raises
        ------
        NodeTypeError
            The group is no image (a `TypeError`).
        MetadataError
            The metadata contradict the specification (a `ValueError`).
        """
    def to_scipy(self, selection: Any = None) -> scipy.sparse.csr_matrix | scipy.sparse.csc_matrix:
        """Read a sparse matrix that AnnData stored, or some rows of it.

        Rows of a CSR matrix are read without the others: first `indptr`, from the first to the last row, then
        the runs of `data` and `indices` in one batch. The same holds for columns of a CSC matrix. Across this
        axis, the selection is applied after the read.

        Parameters
        ----------
        selection
            Rows, or a tuple of rows and columns, each a slice, a list of positions in any order, or a mask.
            An integer keeps its axis. By default all.

        Returns
        -------
        scipy.sparse.csr_matrix or csc_matrix
            As stored. It shares the decoded memory, unless several runs were joined;
            `scipy.sparse.csr_array(matrix)` shares it too.

        Raises
        ------
        NodeTypeError
            The group is no sparse matrix (a `TypeError`).
        MetadataError
            Its arrays do not fit together (a `ValueError`).
        IndexingError
            A position is outside of its axis (an `IndexError`).

        And as `Array.read`.
        """
    to_pandas = anndata_methods.to_pandas
    to_polars = anndata_methods.to_polars
    @property
    def num_rows(self) -> int:
        """The number of rows, if the group is a table: its arrays have one length."""
    @property
    def schema(self) -> pyarrow.Schema:
        """The columns of the table in pyarrow, with their types; attributes are metadata."""
    to_parquet = methods.to_parquet
    scan_polars = methods.scan_polars
    scan_arrow = methods.scan_arrow
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the types of the columns in a capsule."""
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow: the table of `to_arrow()` as a stream in a capsule."""
    @overload
    def to_arrow(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        rows: slice | None = None,
        filters: None = None,
        sorted_by: None = None,
        **options: Unpack[ArrowOptions],
    ) -> ArrowStream: ...
    @overload
    def to_arrow(
        self,
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
    ) -> ArrowStream | FilteredRows:
        """Return the arrays of the group as a table for Arrow libraries, in bounded memory.

        Reading starts when a library requests rows, a batch of rows of all columns at a time. The group's
        attributes become metadata of the schema, and an array's attributes metadata of its field: strings
        unchanged, everything else as JSON.

        Parameters
        ----------
        columns
            Names or paths ("model/pressure") of arrays of the same length, in the order of the columns. A
            group that `read` supports can be a column. By default all arrays of the group with an axis, or
            the columns of a table that AnnData wrote (`obs`, `var`), with the index first.
        rows
            A slice without a step; by default all rows.
        filters
            Comparisons that rows must fulfil, in the form of `pyarrow.parquet.read_table`: tuples of a
            column, one of `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` and `not in`, and a value; a list of such
            lists for alternatives; or a condition of `pyarrow.compute`. A missing element fulfils no
            comparison but `not in`. The columns may be others than `columns`. Columns of the filters are
            read first, and the others only where rows match.
        sorted_by
            With filters: a sorted column, which is searched, as in `scan_arrow`.
        layout, bools, strings
            The types of the columns: see `DecodedArray.arrow`. Bools are Arrow's packed bools, which every
            library can filter by; `bools="bytes"` avoids packing them. DuckDB reads a row of a tensor as a
            flat list; `layout="nested"` keeps the shape.
        mask
            Which additional elements are null: "cf" or "fill", as for `Array.read`, by the metadata of each
            array.
        batch_rows
            Rows of a batch: see `ArrowStream.batch_rows`.

        Returns
        -------
        ArrowStream, or with filters a FilteredRows
            Both have `arrow`, `polars`, `column_names` and `num_rows`, and a loop over them gives batches.

        Raises
        ------
        ShapeError
            The arrays differ in length, one of `columns` has no axis, or there are no columns (a
            `ValueError`).
        NotFoundError, NodeTypeError
            One of `columns` does not exist (a `KeyError`), or is a group.
        TypeError, ValueError
            A filter is no comparison, or its column is not compared with its value.
        ExchangeError
            Arrow has no type for a column. Raised when a library requests the stream (a `BufferError`).

        Examples
        --------
        >>> import pyarrow
        >>> import zarrow
        >>> root = zarrow.open("data.zarr")
        >>> pyarrow.table(root.to_arrow(["station"])).to_pydict()
        {'station': ['Oslo', 'Rome', 'Quito']}
        >>> root.to_arrow(["nickname", "station"], rows=slice(2)).polars().shape
        (2, 2)
        >>> root.to_arrow(["station"], filters=[("station", ">", "P")]).arrow().to_pydict()
        {'station': ['Rome', 'Quito']}
        """
    def tree(self, level: int | None = None) -> Tree:
        """Draw the hierarchy below the group, as a tree to print.

        Parameters
        ----------
        level
            How many levels to show: 0 shows the group alone, None all.
        """
