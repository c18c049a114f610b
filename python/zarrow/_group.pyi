"""The class Group."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Unpack, final

from zarrow._array import Array
from zarrow._arrow_stream import ArrowStream
from zarrow._tree import Tree
from zarrow.attributes import Attributes
from zarrow.creation import ArrayOptions

@final
class Group:
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
        """The attributes: a mapping that reads as a dict does, and stores what is changed."""
    @property
    def path(self) -> str:
        """The path in the store, without a slash before it; "" is the root."""
    @property
    def name(self) -> str:
        """The path in the store, with a slash before it."""
    @property
    def store(self) -> str:
        """The store, as it calls itself."""
    @property
    def zarr_format(self) -> int:
        """The version of the Zarr format: 2 or 3."""
    def __getitem__(self, path: str, /) -> Any:
        """Give the Array or Group at a path below, such as "model/pressure".

        Raises
        ------
        NotFoundError
            There is none (a `KeyError`).
        MetadataError
            Its metadata is malformed (a `ValueError`).
        """
    def __setitem__(self, path: str, array: Any, /) -> None:
        """Store an array at a path below, as `create_array(path, data=array, overwrite=True)` does.

        An array that is there is replaced in one step: where this raises, or the process is killed, it is as
        it was. The new array has the attributes, chunks and axis names that `create_array` chooses; to keep
        the old ones, write to the array: `group["a"][...] = values`. Consolidated metadata follow in a second
        step: where data type, chunks or codecs change, they lack the array until then.

        Raises
        ------
        NodeExistsError
            There is a group, which no array replaces (a `FileExistsError`).
        """
    def __delitem__(self, path: str, /) -> None:
        """Erase the array or group at a path below, with everything below it, in one step.

        Raises
        ------
        NotFoundError
            There is none (a `KeyError`).
        ReadOnlyError, StoreError
            The store cannot be written, or what was erased cannot be removed: the message says what is left
            (an `OSError`).
        """
    def create_array(self, path: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array at a path below the group, and the groups between that are not there.

        The options are those of `zarrow.create_array`, which says what is raised; format and durability are
        the group's.

        Examples
        --------
        >>> import zarrow
        >>> root = zarrow.open("data.zarr")
        >>> root.create_array("model/wind", shape=(2, 3), dtype="f4", fill_value=-1)[0].tolist()
        [-1.0, -1.0, -1.0]
        """
    def create_group(
        self, path: str, *, attributes: dict[str, Any] | None = None, overwrite: bool = False
    ) -> Group:
        """Create a group at a path below the group, as `zarrow.create_group` does."""
    def require_group(self, path: str) -> Group:
        """Give the group at a path below, which is created where it is not there.

        Raises
        ------
        NodeTypeError
            There is an array (a `TypeError`).
        """
    def consolidate_metadata(self) -> None:
        """Copy the metadata of everything below the group into the group's own.

        `zarrow.consolidate_metadata` says what that is for, and what keeps the copies true.
        """
    def refresh(self) -> None:
        """Read the metadata again, so that the group is as the store has it now.

        A Group sees members that others create and erase at once. Where its metadata is consolidated it sees
        what this process has changed, by whichever object, and of other processes what they had changed when
        it was opened or refreshed.
        """
    def __contains__(self, path: str, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool:
        """Whether both are the group at one path of one store."""
    def __ne__(self, other: object, /) -> bool:
        """Whether it is not equal."""
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle: by its store, path and options; loading opens it anew.

        What `Array.__reduce__` says of stores holds here.
        """
    def __copy__(self) -> Group:
        """Give another handle of the same group."""
    def get(self, path: str, default: Any = None) -> Any:
        """Give the Array or Group at a path below, or `default` where there is none."""
    def _ipython_key_completions_(self) -> list[str]: ...
    def _attributes(self) -> dict[str, Any]: ...
    def _change_attributes(self, how: str, attributes: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> list[str]:
        """List the names of the members, sorted."""
    def values(self) -> list[Any]:
        """List the members, sorted by name."""
    def items(self) -> list[tuple[str, Any]]:
        """List the members with their names, sorted."""
    def arrays(self) -> list[tuple[str, Array]]:
        """List the arrays with their names, sorted."""
    def groups(self) -> list[tuple[str, Group]]:
        """List the groups with their names, sorted."""
    def read(self, selection: Any = None) -> Any:
        """Read the array that the group stands for, as AnnData writes nullable and categorical ones.

        The attribute `encoding-type` says so: `nullable-integer`, `nullable-boolean` and
        `nullable-string-array` are values and a mask, `categorical` is codes and categories.

        Parameters
        ----------
        selection
            As for `Array.__getitem__`; all, where none is given. Of categories all are read.

        Returns
        -------
        MaskedTensor, MaskedVariable or Categorical

        Raises
        ------
        NodeTypeError
            The group stands for no array (a `TypeError`).
        MetadataError
            What it has does not go together (a `ValueError`).
        NotFoundError, IndexingError, CodecError, StoreError
            As `Array.__getitem__`.

        Examples
        --------
        >>> import zarrow
        >>> cells = zarrow.open("cells.zarr")
        >>> cells["count"].read().tolist(), cells["kind"].read(slice(1, 3)).tolist()
        ([3, None, 7, 0], [None, 'B'])
        """
    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        rows: slice | None = None,
        layout: Literal["tensor", "nested", "flat"] = "tensor",
        bools: Literal["bytes", "bits"] = "bits",
        strings: Literal["large", "small", "views"] = "large",
        mask: Literal["cf", "fill"] | None = None,
        batch_rows: int | None = None,
    ) -> ArrowStream:
        """Give the arrays of the group as a table that Arrow libraries read, in bounded memory.

        Nothing is read before a library asks for it, and then a batch of rows at a time, of all columns at
        once. The attributes of the group are metadata of the schema, and those of an array metadata of its
        field: strings as they are, all else as JSON.

        Parameters
        ----------
        columns
            Names of arrays of one length along their first axis, or their paths ("model/pressure"), in the
            order of the columns; a group that `read` takes is a column too. Where none are given they are all
            of the group that have an axis, or those of a table that AnnData wrote (`obs`, `var`), in its
            order with the index first.
        rows
            A slice without a step; all rows, where none is given.
        layout, bools, strings
            The types of the columns: see `DecodedArray.arrow`. Bools are Arrow's own, of one bit, which every
            library filters by; `bools="bytes"` saves packing them. For DuckDB, which takes a tensor's row for
            a list of all its elements, `layout="nested"` keeps the shape.
        mask
            Which elements are null besides those that are missing already: "cf" or "fill", as `Array.read`
            has it, of each array by what it says itself.
        batch_rows
            Rows of a batch: see `ArrowStream.batch_rows`.

        Raises
        ------
        ShapeError
            The arrays differ in length, one of `columns` has no axis, or there is none (a `ValueError`).
        NotFoundError, NodeTypeError
            One of `columns` is not there (a `KeyError`), or a group.
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
    def tree(self, depth: int | None = None) -> Tree:
        """Draw what is below the group, as a tree to print; depth limits the levels."""
