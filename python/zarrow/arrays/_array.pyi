"""The class Array."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from types import EllipsisType
from typing import Any, Literal, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

from zarrow.api import asynchronous, dask_arrays, reported_writes
from zarrow.api.progress import Progress
from zarrow.api.typed import AnyElements, Decompress, Gpu, Out
from zarrow.arrays import chunk_grid, follow_method, selections
from zarrow.arrays._indexer import Indexer
from zarrow.device_tensor._device_tensor import DeviceTensor
from zarrow.groups import node_info
from zarrow.groups._node import _Node
from zarrow.groups.attributes import Attributes
from zarrow.interchange._arrow_stream import ArrowStream

_Part: TypeAlias = SupportsIndex | slice | EllipsisType | npt.ArrayLike
_Index: TypeAlias = _Part | tuple[_Part, ...]

@final
class Array(_Node):
    """An array in a store: opening reads the metadata, and indexing reads chunks.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> temperature[0:24, ::2, -1].shape
    (24, 3)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis, outermost first."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements.

        It is the dtype of a read's result (see `DecodedArray.dtype`): native-endian. For an optional type, it
        is the type of the values; `data_type` includes the option.

        Raises
        ------
        ImportError
            `ml_dtypes` is needed and not installed: `pip install 'zarrow[ml-dtypes]'`.
        """
    @property
    def data_type(self) -> str | dict[str, Any]:
        """The data type as Zarr version 3 names it, whichever version is stored.

        A name, or a dict of name and configuration, such as
        `{"name": "zarrs.optional", "configuration": {"name": "int16", "configuration": {}}}`. Zarr has no
        names for padding and subarrays in a structure: they are the `offset` and `shape` of a field.
        """
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int | None:
        """The bytes of all elements when decoded; None if they have no fixed size."""
    def nbytes_stored(self) -> int:
        """Return the array's size in the store in bytes, including metadata. This visits every chunk."""
    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk, or of an inner chunk if there are shards; None for a rectilinear grid."""
    @property
    def cdata_shape(self) -> tuple[int, ...] | None:
        """The number of (inner) chunks along each axis; None for a rectilinear grid."""
    @property
    def nchunks(self) -> int | None:
        """The number of (inner) chunks; None for a rectilinear grid."""
    @property
    def nchunks_initialized(self) -> int:
        """The number of stored chunks, found by listing them. A shard counts as all its chunks."""
    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard; None for an array without shards."""
    @property
    def filters(self) -> tuple[dict[str, Any], ...]:
        """The array-to-array codecs (of inner chunks, if sharded) in the metadata form of version 3.

        `create_array(filters=...)` takes them.
        """
    @property
    def serializer(self) -> dict[str, Any]:
        """The array-to-bytes codec (of inner chunks, if sharded) in the metadata form of version 3."""
    @property
    def compressors(self) -> tuple[dict[str, Any], ...]:
        """The bytes-to-bytes codecs (of inner chunks, if sharded) in the metadata form of version 3.

        `create_array(compressors=...)` takes them.
        """
    @property
    def order(self) -> Literal["C", "F"]:
        """Memory order of stored chunks: "C", or "F" if the first axis is contiguous. Reads return "C"."""
    @property
    def attrs(self) -> Attributes:
        """The attributes: a mapping that stores each change. `array.attrs = {...}` replaces all."""
    @attrs.setter
    def attrs(self, attributes: Mapping[str, Any]) -> None: ...
    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Name of each axis (None if unnamed), or None; in version 2 from `attrs["_ARRAY_DIMENSIONS"]`."""
    @property
    def fill_value(self) -> Any:
        """Value of elements without a stored chunk: a NumPy scalar, str, bytes, or None if missing."""
    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata in the form of `zarr.json`, in a new dict; `"zarr_format"` is the stored version."""
    info_complete = node_info.info_of_array
    update_attributes = node_info.update_attributes_of_array
    def _attributes(self) -> dict[str, Any]: ...
    def _codec_stages(self) -> list[list[dict[str, Any]]]: ...
    def _is_column_major(self) -> bool: ...
    def _has_fill_value(self) -> bool: ...
    def _is_read_only(self) -> bool: ...
    def _stored_chunk_count(self) -> int: ...
    def _inner_chunks_of(self, place: Sequence[int]) -> tuple[int, int] | None: ...
    def _cache_counts(self) -> tuple[int, int, int]: ...
    def _with_cache(self, nbytes: int, folder: PathLike[str] | None, disk_nbytes: int) -> Array: ...
    def _change_attributes(self, how: str, attributes: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[AnyElements]:
        """Read the rows one by one, each when it is needed. For many rows, read several at once."""
    def __eq__(self, other: object, /) -> bool:
        """Whether both have the same path in the same store. Elements are not compared.

        A NumPy array on the other side reads the array, and compares element by element.
        """
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the store, the path and the options; loading opens the node again.

        A folder is pickled as its absolute path, a `MemoryStore` with all its values, as a separate store.
        """
    def __copy__(self) -> Array:
        """Return another handle of the same array."""
    def __getitem__(self, index: _Index, /) -> AnyElements:
        """Read a selection into new memory: `read(index)`, which explains selections."""
    @property
    def oindex(self) -> Indexer:
        """Orthogonal indexing: an index for each axis, in all combinations.

        Each axis has an integer, which drops the axis, a slice, a list of positions (in any order, possibly
        repeated), or a mask of the axis's length. They are combined as by `numpy.ix_`.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.oindex[[40, 3, 40], :, [True] * 2 + [False] * 6].shape
        (3, 6, 2)
        >>> temperature.oindex[[0, 1], 0, [0, 7]] = -1  # writes four elements
        >>> temperature[1, 0, 7].item()
        -1.0
        """
    @property
    def vindex(self) -> Indexer:
        """Indexing by points: lists and masks are combined position by position.

        Lists are broadcast to one shape by NumPy's rules, which gives the points' axes. A mask is the same as
        lists of its true positions, so a mask of the array's shape gives one axis. Other axes may have
        slices, which apply to every point. As in NumPy, the points' axes take the place of the lists if these
        stand side by side in the index, and otherwise come first.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.vindex[[0, 1, 47], [5, 5, 0], [0, 0, 7]].tolist()
        [40.0, 88.0, 2263.0]
        >>> temperature.vindex[:, [0, 1], [0, 1]].shape
        (48, 2)
        """
    @property
    def blocks(self) -> Indexer:
        """Indexing by chunks: integers and slices (of step 1) count chunks of the grid.

        For a sharded array, they count shards. An integer selects one chunk and drops no axis. Iteration and
        `len` are along the first axis of the grid; `iter_chunks` iterates over all chunks.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.blocks[1].shape, temperature.blocks[-1, 0, 0][0, 0, 0].item()
        ((24, 6, 8), 1152.0)
        """
    @overload
    def read(
        self,
        selection: _Index | None = None,
        *,
        dtype: Any = None,
        device: Gpu,
        stream: Any = None,
        decompress: Decompress = None,
    ) -> DeviceTensor: ...
    @overload
    def read(
        self,
        selection: _Index | None = None,
        *,
        out: None = None,
        dtype: Any = None,
        mmap: bool = False,
        mask: Any = None,
        decode: Literal["cf"] | None = None,
        order: Literal["C", "F", "A"] = "C",
        device: Any = None,
        stream: Any = None,
        decompress: Decompress = None,
        progress: Progress | bool | None = None,
    ) -> AnyElements:
        """Read a selection; all of the array if none is given.

        Without `out` and `mmap` the result is the same as `array[selection]`: new memory, aligned to 64
        bytes. All elements of a chunk or shard come from the same version, even if another writer replaces it
        during the read. Different chunks may be from different times.

        Parameters
        ----------
        selection
            An item for each axis: an integer, which drops the axis, a slice of any step, a list of positions
            in any order, a mask, or `...`. Lists and masks are accepted if unambiguous: a single one beside
            integers and slices, as in `oindex`; a list for each axis, which are points, as in `vindex`; a
            mask of the array's own shape. For anything else use `oindex` and `vindex`. Strings, anywhere
            among the items, name fields of structures. One gives the field as an array of its own type;
            `"inner.x"` is field x of the structure in field inner. Several strings, or a list of them, give
            structures of only these fields, with padding between them, as in NumPy. All other reads and
            writes also take fields.
        out
            Existing memory to read into: a writable array with the selection's shape and the type of the
            array, field or `dtype`, such as a numpy.ndarray, a torch.Tensor (also pinned) or a Tensor, of any
            strides, if no elements overlap. Nothing else is written. No other thread may access the memory
            during the call, which releases the GIL.
        dtype
            A number type of NumPy or PyTorch to read as: integers as any number that they fit, floats as
            floats and complex numbers. Each chunk is cast while it is decoded, or the result is cast, if the
            types are small floats, complex or optional ones. Not with `mmap` and `mask`.
        mmap
            Map the store's files instead of reading them, if they hold uncompressed native-endian elements in
            the layout of the result: within one chunk, or in chunks that are whole rows. Nothing is copied,
            and each page is loaded at the first access. If mapping is impossible, if the kernel has no maps
            left, or if a field is selected, the elements are read instead: see `Tensor.is_mapped`. Not
            together with `out`.

            The map is private and copied on write: writes to the tensor change no file. In-place writes of
            another process to a file are visible, until this process writes to the page. If another process
            truncates a file, access beyond its end terminates this process by SIGBUS.
        mask
            Which values mean that an element is missing; the result has a masked layout, and its data keep
            these values. The mask and Arrow's bitmap are computed while each chunk is decoded.

            - `"cf"`: the values of the attributes `_FillValue` and `missing_value` (CF conventions), as
              numbers or lists, or as xarray writes them in version 3. In version 2 xarray takes the fill
              value as `_FillValue`; so does zarrow if the attribute `_ARRAY_DIMENSIONS` says that xarray
              wrote the array. A value of another type has no effect. To scale values, see `decode`.
            - `"fill"`: the array's fill value, if the metadata have one.
            - a value, or a list or NumPy array of values: of the array's or the field's type, exactly,
              except that floats are rounded to it. Any NaN is equal to NaN, and -0 to 0.

            Elements that are missing in an optional type stay missing. Not with `out`; `mmap` has no effect.
        decode
            `"cf"` decodes numbers by their CF attributes, to the values and types of xarray: missing ones
            (see `mask`) are NaN or NaT, `scale_factor` and `add_offset` are applied, `units` such as "days
            since 2000-01-01" give `datetime64[ns]`; a `dtype` of "timedelta64[s]" or "bool", and `_Unsigned`
            are respected. `valid_range` masks nothing, as in xarray. If the type changes, the elements are
            copied once. Text stays, masked as by `mask="cf"`. Not with `out`, `dtype`, `mmap`, `mask`,
            `order` and `device`.
        order
            Memory layout of a Tensor: `"C"`, the last axis is contiguous; `"F"`, the first axis is; `"A"`, as
            the chunks are stored, which needs no transposition. Not together with `out`, `mmap` and `mask`.
        device, stream, decompress
            A GPU to read to, such as `"cuda:0"`, and the stream of PyTorch or CuPy (or its number) that uses
            the result; `out` may be memory of a GPU too. Chunks are decompressed on the `"host"`, or on the
            `"device"` by nvCOMP; `"auto"`: see `zarrow.gpu.explain`. Not with `mmap`, `mask`, `order`.
        progress
            Called with the bytes that are read and all bytes, or True for a bar. A block of numbers is read
            part by part. With `decode`, stored bytes count. Not with `mmap` and for a GPU.

        Returns
        -------
        Tensor, Variable, MaskedTensor, MaskedVariable or zarrow.gpu.Tensor
            Or `out` itself, if it was given.

        Raises
        ------
        IndexingError
            A position lies outside its axis, a mask has another length, there is no such field, or the index
            is of another kind (an `IndexError`).
        CodecError
            A chunk does not decode (a `ValueError`).
        OutOfMemoryError, StoreError, DeviceError, KeyboardInterrupt
            Memory ran out, the store or the GPU failed, or Ctrl-C stopped the read, perhaps in mid-`out`.
        ValueError
            `out` has another shape or overlapping elements, or was given with `mmap` or `mask`; `order` is
            not "C", "F" or "A", or was given with `out`, `mmap` or `mask`; `mask` is not a value of the type
            (an `OverflowError` if an integer is too large for it); `decode` needs a malformed attribute.
        TypeError
            `out` has another type or a mask; `mask` is of another kind; `dtype` is no cast of the elements.
        ExchangeError
            `out` is read-only, or does not declare itself writable, such as a JAX array (a `BufferError`).
        UnsupportedError
            `out`, `order="F"` or a GPU was given, and the elements are strings or may be missing; a single
            field of shape other than () was selected outside a list; or `decode` found dates that
            `datetime64[ns]` cannot represent, as of other calendars (a `NotImplementedError`).

        Examples
        --------
        >>> import numpy as np
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> days = np.empty((2, 6, 8), np.float32)
        >>> temperature.read(np.s_[24:26], out=days) is days, days[1, 0, 0]
        (True, np.float32(1200.0))
        >>> temperature.read(np.s_[0, 0, :4], mask=[1, 3]).tolist()
        [0.0, None, 2.0, None]
        >>> cf = {"scale_factor": 0.5, "_FillValue": -1}
        >>> zarrow.create_array("cf.zarr", data=[10, -1, 30], attributes=cf).read(decode="cf").tolist()
        [5.0, nan, 15.0]
        >>> temperature[[7, 0, 7], 2:4].shape, temperature[[7, 0], [5, 5], [1, 2]].tolist()
        ((3, 2, 8), [377.0, 42.0])
        >>> places = zarrow.create_array("places.zarr", data=np.zeros(3, "i4, f8, u1"))
        >>> places["f1", 1:] = [0.5, 2]
        >>> places["f1"].tolist(), places[["f0", "f1"], -1].numpy()[()].item()
        ([0.0, 0.5, 2.0], (0, 2.0))
        """
    @overload
    def read(
        self,
        selection: _Index | None = None,
        *,
        out: Out,
        dtype: Any = None,
        device: Any = None,
        stream: Any = None,
        decompress: Decompress = None,
        progress: Progress | bool | None = None,
    ) -> Out: ...
    def __setitem__(self, index: _Index, value: Any, /) -> None:
        """Write values to a selection: `write` with its defaults."""
    def _write(
        self,
        selection: _Index,
        value: Any,
        casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"],
        durability: Literal["none", "file", "full"] | None,
        write_empty_chunks: bool,
        /,
    ) -> None: ...
    def _append(self, value: Any, axis: int, parts: tuple[int, Progress] | None) -> tuple[int, ...]: ...
    write = reported_writes.write
    get_basic_selection = selections.get_basic_selection
    set_basic_selection = selections.set_basic_selection
    get_orthogonal_selection = selections.get_orthogonal_selection
    set_orthogonal_selection = selections.set_orthogonal_selection
    get_coordinate_selection = selections.get_coordinate_selection
    set_coordinate_selection = selections.set_coordinate_selection
    get_mask_selection = selections.get_mask_selection
    set_mask_selection = selections.set_mask_selection
    get_block_selection = selections.get_block_selection
    set_block_selection = selections.set_block_selection
    read_async = asynchronous.read_async
    write_async = asynchronous.write_async
    iter_chunks_async = asynchronous.iter_chunks_async
    iter_chunks = chunk_grid.iter_chunks
    stored_chunks = chunk_grid.stored_chunks_of
    to_dask = dask_arrays.to_dask
    follow = follow_method.follow
    @property
    def write_unit(self) -> tuple[int, ...] | None:
        """The shape of the smallest region that writers can write independently: a shard, or a chunk.

        Only writers of parts of one such region wait for each other. None for a rectilinear grid.
        """
    def resize(self, shape: SupportsIndex | Sequence[SupportsIndex]) -> None:
        """Change the shape; the number of axes stays.

        New elements have the fill value, also where a larger array had elements before: making an array
        smaller erases the chunks outside the new shape, and fills the chunks at its edge. Making an array
        larger lists its chunks and reads those at the old edge; `append` does neither.

        This Array then has the new shape. Other handles of the array keep the old shape until they are
        reopened or `refresh` is called; until then they read erased elements as fill values. Concurrent calls
        of `resize` and `append` take turns.

        A chunk at the edge that does not decode stays unchanged. If making the array smaller fails for
        another reason, this Array takes the shape found in the store.

        Raises
        ------
        ShapeError, MetadataError
            The shape has a different number of axes, or is too large (a `ValueError`).
        NotFoundError, StaleHandleError
            As `write`.
        ReadOnlyError, StoreError
            The store cannot be written (an `OSError`). If making the array smaller fails, it may already have
            the new shape, here and in the store.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.resize((50, 6, 8))
        >>> temperature.shape
        (50, 6, 8)
        """
    def append(
        self, value: Any, axis: int = 0, *, progress: Progress | bool | None = None
    ) -> tuple[int, ...]:
        """Append elements along an axis.

        A reader that opens the array later sees all new elements or none, even if this process is killed.
        Concurrent calls of `resize` and `append` take turns, so that nothing is lost. If the array ends
        within a chunk, that chunk is rewritten.

        Parameters
        ----------
        value
            Anything that `write` takes, with the array's shape except along `axis`.
        axis
            The axis to append along; negative numbers count from the last axis.
        progress
            Called with the bytes of the value that are written, and of all, or True for a bar. Numbers are
            written part by part. A function that fails ends the call as Ctrl-C does, except at the last
            report, after the append. It must not change the array's shape.

        Returns
        -------
        tuple of int
            The new shape of this Array; for other handles see `resize`.

        Raises
        ------
        IndexingError
            The value has a different shape, or the array has no such axis (an `IndexError`).
        DataTypeError, CodecError, NotFoundError, StaleHandleError, ReadOnlyError, StoreError,
        KeyboardInterrupt
            As `write`. The array is then unchanged; in an object store it may be longer, as the error says.

        Examples
        --------
        >>> import zarrow
        >>> log = zarrow.create_array("log.zarr", shape=(0, 2), dtype="f8")
        >>> log.append([[1.0, 2.0], [3.0, 4.0]])
        (2, 2)
        >>> import numpy as np
        >>> log.append(np.ones((3, 2)), progress=print)
        0 48
        48 48
        (5, 2)
        """
    def refresh(self) -> None:
        """Read the metadata again, so that this Array matches the store."""
    def retrieve_chunk(self, indices: SupportsIndex | Sequence[SupportsIndex]) -> AnyElements:
        """Read one chunk by its indices in the grid; a chunk at the edge is cut to the array.

        The result is like that of `__getitem__`. For a sharded array, the chunk is a shard.

        Raises
        ------
        IndexingError
            The grid has no such chunk (an `IndexError`).
        """
    def to_arrow(
        self,
        *,
        rows: slice | None = None,
        layout: Literal["tensor", "nested", "flat"] = "tensor",
        bools: Literal["bytes", "bits"] = "bits",
        strings: Literal["large", "small", "views"] = "large",
        mask: Literal["cf", "fill"] | None = None,
        batch_rows: int | None = None,
    ) -> ArrowStream:
        """Return the rows along the first axis as a stream for Arrow libraries, in bounded memory.

        Reading starts when a library requests rows, a batch of whole chunks at a time. The array itself is
        also such a stream, with the defaults of these options.

        Parameters
        ----------
        rows
            A slice without a step; by default all rows.
        layout, bools, strings
            The type of the rows: see `DecodedArray.arrow`. The axes keep their names. Bools are Arrow's
            packed bools, which every library can filter by; `bools="bytes"` avoids packing them.
        mask
            Which additional elements are null: "cf" or "fill", as for `read`.
        batch_rows
            Rows of a batch: see `ArrowStream.batch_rows`.

        Raises
        ------
        ShapeError
            The array has no axis (a `ValueError`).
        ExchangeError
            Arrow has no such type. Raised when a library requests the stream (a `BufferError`).

        Examples
        --------
        >>> import pyarrow
        >>> import zarrow
        >>> station = zarrow.open("data.zarr")["station"]
        >>> pyarrow.chunked_array(station).to_pylist()
        ['Oslo', 'Rome', 'Quito']
        >>> station.to_arrow(rows=slice(1, None), strings="views").arrow().type
        DataType(string_view)
        """
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type of the rows along the first axis in a capsule."""
    def __arrow_array__(self, type: Any = None) -> Any:
        """Read the array as a pyarrow.Array."""
    def __dlpack__(self, **options: Any) -> CapsuleType:
        """Read the array, and export it by DLPack."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: the device as (type, number); (1, 0) is the CPU."""
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Arrow: a stream of the rows along the first axis in a capsule, read while it is consumed."""
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: reads all of the array.

        Raises
        ------
        ExchangeError
            `copy` is False (a `ValueError`), or elements may be missing.
        """
