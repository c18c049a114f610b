"""The class Group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Unpack, final

from typing_extensions import CapsuleType

from zarrow.api.array_options import Chunks, Codec, Codecs, LayoutOptions
from zarrow.api.typed import AnyNode
from zarrow.arrays._array import Array
from zarrow.arrays._categorical import Categorical
from zarrow.groups import node_info
from zarrow.groups._node import _Node
from zarrow.groups._tree import Tree
from zarrow.groups.attributes import Attributes
from zarrow.interchange._arrow_stream import ArrowStream

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
    def __getitem__(self, path: str, /) -> AnyNode:
        """Return the Array or Group at a path below, such as "model/pressure".

        Raises
        ------
        NotFoundError
            Nothing exists at the path (a `KeyError`).
        MetadataError
            Its metadata is malformed (a `ValueError`).
        """
    def __setitem__(self, path: str, value: Any, /) -> None:
        """Store an array, a table or a group at a path below.

        An existing array is replaced in one step: if this raises, or the process is killed, it is unchanged.
        The new array has the chunks and codecs that `create_array` chooses, and no attributes; to keep the
        old ones, write to the array: `group["a"][...] = values`. Consolidated metadata follow in a second
        step: if data type, chunks or codecs change, they lack the array until then.

        Parameters
        ----------
        path
            The path of the node, such as "model/pressure".
        value
            Anything that `asarray` takes. A table of pandas, polars or Arrow, or a dict of arrays, becomes a
            group with an array for each column. An `Array` of a store is copied completely: elements, chunks,
            codecs, fill value, axis names, attributes; one of more than 256 MiB in parts, to an unused path.
            A `Group` is copied with its attributes and everything below it. An existing group keeps its
            other members.

        Raises
        ------
        NodeExistsError
            A group is at the path, and an array does not replace it (a `FileExistsError`).

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
        """Erase the array or group at a path below, with everything below it, in one step.

        Nothing else is erased: a file, a folder or a chunk is neither an array nor a group.

        Raises
        ------
        NotFoundError
            Nothing exists at the path (a `KeyError`).
        ReadOnlyError, StoreError
            The store cannot be written, or erased data cannot be removed: the message names the remains (an
            `OSError`).
        """
    def append(self, table: Any) -> int:
        """Append the rows of a table: each column to the array of its name.

        One writer at a time may append to a table: two at once may write between each other's columns. If a
        column cannot be appended, the columns before it are cut to their old length; a process killed during
        the call leaves columns of different lengths, which `Array.resize` makes equal.

        Parameters
        ----------
        table
            A table as for `save`, with a column for each array of the group. A column of only nulls takes the
            type of its array, if that stores missing elements.

        Returns
        -------
        int
            How many rows the group has then.

        Raises
        ------
        TypeError
            It is not a table, or a column of the group is a group itself.
        ValueError
            The table has other columns than the group, or columns have different lengths. If a column cannot
            be appended, nothing is, and the message begins with its name.
        DataTypeError, CodecError, ReadOnlyError, StoreError
            As `Array.append`.

        Examples
        --------
        >>> import zarrow
        >>> zarrow.save("table.zarr", {"x": [1, 2], "name": ["a", "b"]})
        >>> table = zarrow.open("table.zarr")
        >>> table.append({"x": [3], "name": ["c"]})
        3
        >>> table["name"][...].tolist()
        ['a', 'b', 'c']
        """
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
    ) -> Array:
        """Create an array below the group, and any missing groups between.

        Parameters
        ----------
        name
            The path below the group, such as `"rain"` or `"model/rain"`.
        shape, dtype
            The extent of each axis, and the data type; both follow from `data` if it is given.
        data
            Elements to begin with, anything that `zarrow.asarray` takes; written from its memory.
        chunks, shards
            The shape of a chunk, which is encoded as one unit, and of a shard, which is stored in one file.
        compressors, filters, serializer, codecs, compressor, fill_value, order, attributes,
        chunk_key_encoding, dimension_names, overwrite
            As for `zarrow.create_array`, which explains each. Version and durability are the group's.

        Raises
        ------
        NodeExistsError
            There is something at the path (a `FileExistsError`).
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
            Data type of an element (default "f8"). The type of an existing array must be cast to it without
            loss.
        exact
            Whether an existing array must have exactly this type.
        fill_value, options
            As for `create_array`, for an array that is created.

        Raises
        ------
        TypeError
            There is an array of another shape or type, or a group (`NodeTypeError`).
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

        It also takes `dimension_separator`, which is `chunk_key_encoding` today.
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
        """Create an array of the usual fill value below the group, with the options of `create_array`."""
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
            There is an array (a `TypeError`).
        """
    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return the groups of these names; create missing ones."""
    def consolidate_metadata(self) -> None:
        """Copy the metadata of everything below the group into the group's own.

        `zarrow.consolidate_metadata` explains the purpose, and how the copies stay up to date. If a change is
        stored and the copies cannot be written (a full disk, a group of another owner), the change warns
        (`ZarrowWarning`), and this renews them.
        """
    def refresh(self) -> None:
        """Read the metadata again, so that the group is as the store has it now.

        A Group sees at once which members other writers create and erase. If its metadata are consolidated,
        it sees every change of this process, through any object, and changes of other processes up to its
        opening or last refresh.
        """
    def __contains__(self, path: str, /) -> bool: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse, with a TypeError that says how to read arrays of the group."""
    def __enter__(self) -> Group:
        """Return the group itself: `with zarrow.open(path) as root` reads as with files of h5py."""
    def __exit__(self, *_: object) -> None:
        """Do nothing: writes are stored when their calls return."""
    def __eq__(self, other: object, /) -> bool:
        """Whether both are the group at one path of one store."""
    def __ne__(self, other: object, /) -> bool:
        """Whether it is not equal."""
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle: by its store, path and options; loading opens it anew.

        Stores are pickled as in `Array.__reduce__`.
        """
    def __copy__(self) -> Group:
        """Return another handle of the same group."""
    def get(self, path: str, default: Any = None) -> AnyNode:
        """Return the Array or Group at a path below, or `default` if nothing exists there."""
    def get_array(self, path: str) -> Array:
        """Return the Array at a path below the group: `group[path]`, with a precise type.

        Raises
        ------
        NodeTypeError
            There is a group (a `TypeError`).
        NotFoundError
            There is nothing (a `KeyError`).
        """
    def get_group(self, path: str) -> Group:
        """Return the Group at a path below the group: as `get_array`."""
    def _ipython_key_completions_(self) -> list[str]: ...
    def _attributes(self) -> dict[str, Any]: ...
    def _is_read_only(self) -> bool: ...
    def _is_remote(self) -> bool: ...
    def _keys_of(self, of_arrays: bool) -> list[str]: ...
    def _change_attributes(self, how: str, attributes: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> list[str]:
        """List the names of the members, sorted.

        In the body of a loop over them, a member of a group in the cloud is read with those around it.
        """
    def values(self) -> list[AnyNode]:
        """List the members, sorted by name."""
    def items(self) -> list[tuple[str, AnyNode]]:
        """List the members with their names, sorted."""
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
        """Return the members with their paths below the group.

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
    def read(self, selection: Any = None) -> Categorical | Any:
        """Read the array that the group stands for, as AnnData writes nullable and categorical ones.

        The attribute `encoding-type` says so: `nullable-integer`, `nullable-boolean` and
        `nullable-string-array` are values and a mask, `categorical` is codes and categories.

        Parameters
        ----------
        selection
            As for `Array.__getitem__`; by default all. Of categories all are read.

        Returns
        -------
        MaskedTensor, MaskedVariable or Categorical

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
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow: the arrays of the group as a table, as `to_arrow` gives it, in a capsule."""
    def to_arrow(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        rows: slice | None = None,
        layout: Literal["tensor", "nested", "flat"] = "tensor",
        bools: Literal["bytes", "bits"] = "bits",
        strings: Literal["large", "small", "views"] = "large",
        mask: Literal["cf", "fill"] | None = None,
        batch_rows: int | None = None,
    ) -> ArrowStream:
        """Return the arrays of the group as a table that Arrow libraries read, in bounded memory.

        Nothing is read before a library asks for it, and then a batch of rows at a time, of all columns at
        once. The attributes of the group are metadata of the schema, and the attributes of an array metadata
        of its field: strings unchanged, all else as JSON.

        Parameters
        ----------
        columns
            Names of arrays of one length along their first axis, or their paths ("model/pressure"), in the
            order of the columns; a group that `read` takes can be a column. By default all arrays of the
            group with an axis, or the columns of a table that AnnData wrote (`obs`, `var`), in its order with
            the index first.
        rows
            A slice without a step; by default all rows.
        layout, bools, strings
            The types of the columns: see `DecodedArray.arrow`. Bools are Arrow's own, of one bit, which every
            library filters by; `bools="bytes"` saves packing them. For DuckDB, which takes a tensor's row for
            a list of all its elements, `layout="nested"` keeps the shape.
        mask
            Which elements are null besides those already missing: "cf" or "fill", as for `Array.read`, by the
            metadata of each array.
        batch_rows
            Rows of a batch: see `ArrowStream.batch_rows`.

        Raises
        ------
        ShapeError
            The arrays differ in length, one of `columns` has no axis, or there are no columns (a
            `ValueError`).
        NotFoundError, NodeTypeError
            One of `columns` does not exist (a `KeyError`), or is a group.
        ExchangeError
            Arrow has no type for a column; raised when a library asks for the stream (a `BufferError`).

        Examples
        --------
        >>> import pyarrow
        >>> import zarrow
        >>> root = zarrow.open("data.zarr")
        >>> pyarrow.table(root.to_arrow(["station"])).to_pydict()
        {'station': ['Oslo', 'Rome', 'Quito']}
        >>> root.to_arrow(["nickname", "station"], rows=slice(2)).polars().shape
        (2, 2)
        """
    def tree(self, level: int | None = None) -> Tree:
        """Draw the hierarchy below the group, as a tree to print.

        Parameters
        ----------
        level
            How many levels to show: 0 shows the group alone, None all.
        """
