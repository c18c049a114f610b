"""The class Array."""

from collections.abc import Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, Literal, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

from zarrow.api import asynchronous
from zarrow.api.typed import AnyElements, Decompress, Gpu, Out
from zarrow.arrays import selections as array_selections
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
    """An array in a store: its metadata is read, its chunks are read when they are asked for.

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

        It is the dtype of a read's result (see `DecodedArray.dtype`): native-endian, and without the optional
        part of a type, which `data_type` has.

        Raises
        ------
        ImportError
            `ml_dtypes` is needed and not installed: `pip install 'zarrow[ml-dtypes]'`.
        """
    @property
    def data_type(self) -> str | dict[str, Any]:
        """The data type as Zarr version 3 names it, whichever version is stored.

        A name, or a dict of name and configuration, such as
        `{"name": "zarrs.optional", "configuration": {"name": "int16", "configuration": {}}}`. Padding and
        subarrays in a structure, which Zarr cannot name, are the `offset` and `shape` of a field.
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
        """Count the bytes that the store holds for the array, including metadata; looks at every chunk."""
    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk, the unit of decoding; inside of shards, the shape of an inner chunk.

        None for a rectilinear grid.
        """
    @property
    def cdata_shape(self) -> tuple[int, ...] | None:
        """The number of chunks along each axis, those inside of shards; None for a rectilinear grid."""
    @property
    def nchunks(self) -> int | None:
        """The number of chunks, those inside of shards; None for a rectilinear grid."""
    @property
    def nchunks_initialized(self) -> int:
        """The number of chunks that are stored: lists them all. A shard counts as all chunks that fit it.

        Raises
        ------
        NotFoundError, StaleHandleError
            The array was erased or replaced since it was opened.
        """
    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard; None for an array without shards."""
    @property
    def filters(self) -> tuple[dict[str, Any], ...]:
        """The codecs from arrays to arrays, those inside of shards, as metadata of version 3 name them.

        `create_array(filters=...)` takes them.
        """
    @property
    def serializer(self) -> dict[str, Any]:
        """The codec that makes bytes of elements, also inside of shards, as version 3 names it."""
    @property
    def compressors(self) -> tuple[dict[str, Any], ...]:
        """The codecs from bytes to bytes, those inside of shards, as metadata of version 3 name them.

        `create_array(compressors=...)` takes them.

        Examples
        --------
        >>> import zarrow
        >>> zarrow.create_array("a.zarr", shape=4, dtype="i2", compressors="gzip").compressors
        ({'name': 'gzip', 'configuration': {'level': 5}},)
        """
    @property
    def order(self) -> Literal["C", "F"]:
        """Memory order within a stored chunk: "C", or "F" if neighbours on the first axis are contiguous.

        Reading gives "C" in both cases.
        """
    @property
    def attrs(self) -> Attributes:
        """The attributes: a mapping that stores each change. `array.attrs = {...}` replaces all."""
    @attrs.setter
    def attrs(self, attributes: Mapping[str, Any]) -> None: ...
    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Name of each axis, None for an unnamed one, or None; in version 2 `attrs["_ARRAY_DIMENSIONS"]`."""
    @property
    def fill_value(self) -> Any:
        """Value of elements without a stored chunk: a NumPy scalar, str, bytes, or None if missing."""
    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as a `zarr.json` has them, in a new dict; `"zarr_format"` is the stored version."""
    info_complete = node_info.info_of_array
    update_attributes = node_info.update_attributes_of_array
    def _attributes(self) -> dict[str, Any]: ...
    def _codec_stages(self) -> list[list[dict[str, Any]]]: ...
    def _is_column_major(self) -> bool: ...
    def _has_fill_value(self) -> bool: ...
    def _is_read_only(self) -> bool: ...
    def _stored_chunk_count(self) -> int: ...
    def _change_attributes(self, how: str, attributes: dict[str, Any]) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[AnyElements]:
        """Read the rows one by one, each when it is asked for: for many, read more of them at once."""
    def __eq__(self, other: object, /) -> bool:
        """Whether both are the array at one path of one store; the elements are not looked at.

        A NumPy array on the other side reads the array, and compares element by element.
        """
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle: by its store, path and options; loading opens it anew.

        A folder goes by its absolute path. A `MemoryStore` goes with all of its values, so that the loaded
        array has a separate store.
        """
    def __copy__(self) -> Array:
        """Return another handle of the same array."""
    def __getitem__(self, index: _Index, /) -> AnyElements:
        """Read a selection into new memory: `read(index)`, which explains selections."""
    @property
    def oindex(self) -> Indexer:
        """The array by lists, masks and slices of single axes, in all combinations (orthogonal indexing).

        An index has for each axis an integer, which drops it, a slice, a list of positions in any order and
        repeated, or a mask of the axis's length, as `numpy.ix_` combines them: the result has an axis for
        each that is not dropped.

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
        """The array by lists and masks that are taken together, position by position.

        Lists are broadcast to one shape by NumPy's rules, and the result has its axes. A mask stands for the
        lists of its true positions, so that a mask of the array's shape gives one axis. Other axes may have
        slices, which each point takes whole. The points' axes go where NumPy puts them: in the place of the
        lists if these are neighbours, else first.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.vindex[[0, 1, 47], [5, 5, 0], [0, 0, 7]].tolist()
        [40.0, 88.0, 2263.0]
        >>> temperature.vindex[temperature[...].numpy() > 2300].shape
        (3,)
        >>> temperature.vindex[:, [0, 1], [0, 1]].shape
        (48, 2)
        """
    @property
    def blocks(self) -> Indexer:
        """The array by chunks: integers and slices (of step 1) count chunks of the grid.

        The grid is that of the shards, if the array is sharded. An integer is one chunk and drops no axis.
        `for part in array.blocks` goes along the first axis of the grid, so that a part has all chunks of the
        other axes. `array.blocks[i, j]` is one chunk; `iter_chunks_async` goes through all.

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
        mmap: bool = False,
        mask: Any = None,
        order: Literal["C", "F", "A"] = "C",
        device: Any = None,
        stream: Any = None,
        decompress: Decompress = None,
    ) -> AnyElements:
        """Read a selection; all of the array if none is given.

        Without `out` and `mmap` the result is the same as `array[selection]`: new memory, aligned to 64
        bytes. Elements of one chunk, or of one shard, are of one version, even if another writer replaces it
        during the read; different chunks may be of different times.

        Parameters
        ----------
        selection
            An item for each axis: an integer, which drops the axis, a slice of any step, a list of positions
            in any order, a mask, or `...`. Lists and masks are accepted if unambiguous: a single one beside
            integers and slices, as in `oindex`; a list for each axis, which are points, as in `vindex`; a
            mask of the array's own shape. Everything else goes by `oindex` and `vindex`.

            Strings, anywhere among the items, name fields of structures. One gives the field as an array of
            its own type; `"inner.x"` is field x of the structure in field inner. Several strings, or a list
            of them, give structures of these fields alone, each at its place, with padding between them, as
            in NumPy. `write`, `oindex`, `vindex` and `blocks` also take fields.
        out
            Memory to read into instead: a writable array of the selection's shape and of the array's type, or
            the field's (nothing is cast), such as a numpy.ndarray, a torch.Tensor (also a pinned one) or a
            Tensor. Any strides will do, including negative ones, as long as no two elements overlap. Only its
            elements are written, and no copy of the result is made. No other thread may read or write it
            during the call, which does not hold the GIL.
        mmap
            Map the store's files instead of reading them, if they hold uncompressed native-endian elements in
            the layout of the result: within one chunk, or in chunks that are whole rows. Nothing is copied,
            and a page is loaded on first access. If that is not possible, if the kernel has no maps left, or
            if a field is asked for, the elements are read: `Tensor.is_mapped` tells. It cannot be given
            together with `out`.

            The map is private and copied on write: writes to the tensor stay in this process, and no file
            changes. In-place writes of another process to a file show through, until the page is written to
            here. If another process truncates a file, access beyond its end terminates this process by
            SIGBUS.
        mask
            Which values mean that an element is missing; the result has a masked layout, and its data keep
            these values. The mask is made while a chunk is decoded, and so is the bitmap for Arrow.

            - `"cf"`: the values of the attributes `_FillValue` and `missing_value` (CF conventions), as
              numbers or lists, or as xarray writes them in version 3. In version 2 xarray takes the fill
              value as `_FillValue`; so does zarrow if the attribute `_ARRAY_DIMENSIONS` says that xarray
              wrote the array. A value of another type than the array has no effect. The attributes
              `scale_factor` and `add_offset` are not applied.
            - `"fill"`: the array's fill value, if the metadata have one.
            - a value, or a list or NumPy array of values: of the array's or the field's type, exactly,
              except that floats are rounded to it. Any NaN is equal to NaN, and -0 to 0.

            Elements that are missing by their type stay so. Not together with `out`; `mmap` has no effect.
        order
            Memory layout of a Tensor: `"C"`, the last axis is contiguous; `"F"`, the first axis is; `"A"`, as
            the chunks are stored, which needs no transposition. Not together with `out`, `mmap` and `mask`.
        device, stream, decompress
            A GPU to read to, such as `"cuda:0"`, and the stream of PyTorch or CuPy (or its number) that uses
            the result; `out` may be memory of a GPU too. Chunks are decompressed on the `"host"`, or on the
            `"device"` by nvCOMP; `"auto"`: see `zarrow.gpu.explain`. Not with `mmap`, `mask`, `order`.

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
            Memory ran out, the store or the GPU could not be used, or Ctrl-C stopped the read. Some elements
            of `out` may have been written by then, and nothing else.
        ValueError
            `out` has another shape or overlapping elements, or was given with `mmap` or `mask`; `order` is
            not "C", "F" or "A", or was given with `out`, `mmap` or `mask`; `mask` is not a value of the type
            (an `OverflowError` if an integer is too large for it).
        TypeError
            `out` has another type, is not an array, or has a mask; `mask` is of another kind than elements.
        ExchangeError
            `out` is read-only, or does not say that it is writable, as JAX's arrays are (a `BufferError`).
        UnsupportedError
            `out`, `order="F"` or a GPU was given, and the elements are strings, or may be missing; or a field
            that is an array in each element was named by itself and not in a list (a `NotImplementedError`).

        Examples
        --------
        >>> import numpy as np
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> days = np.empty((2, 6, 8), np.float32)
        >>> temperature.read(np.s_[24:26], out=days) is days, days[1, 0, 0]
        (True, np.float32(1200.0))
        >>> tensor = temperature.read(0, mmap=True)  # these chunks are compressed, and so are read
        >>> tensor.shape, tensor.is_mapped
        ((6, 8), False)
        >>> temperature.read(np.s_[0, 0, :4], mask=[1, 3]).tolist()
        [0.0, None, 2.0, None]
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
        device: Any = None,
        stream: Any = None,
        decompress: Decompress = None,
    ) -> Out: ...
    def __setitem__(self, index: _Index, value: Any, /) -> None:
        """Write values to a selection: `write` with its defaults."""
    def write(
        self,
        selection: _Index,
        value: Any,
        *,
        casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
        durability: Literal["none", "file", "full"] | None = None,
        write_empty_chunks: bool = False,
    ) -> None:
        """Write values to a selection.

        Chunks are encoded on all cores, straight from the values' memory: the values are never copied, beyond
        one chunk a thread; integers and floats of another type are cast on the way into the chunk. Each chunk
        is old or new, whole, for every reader, even if this process is killed. If the selection covers a part
        of a chunk (or of a shard, if there are shards), the rest is read and kept: writers of parts of one
        chunk wait for each other by a lock, across all threads and processes that use zarrow. A lock ends
        with the process that holds it. The same holds for a chunk that extends past the edge of the array as
        this Array knows it: elements appended there by others stay. If such a chunk does not decode, a write
        of its whole part inside the array replaces it.

        Parameters
        ----------
        selection
            Integers, slices, `...`, lists, masks and a field, as for `__getitem__`. If a position is
            repeated, the last of its values stays, as in NumPy. If a field is written, the others of each
            element stay, so that its chunks count as covered in part.
        value
            Anything that `zarrow.asarray` takes: arrays of any library, on a GPU too, scalars, sequences,
            text; broadcast to the shape of the selection by NumPy's rules. Other types are cast as `casting`
            says; a Python number or a NumPy scalar is accepted if the stored type can represent it (floats
            are rounded). Text too long for the type is refused. Missing elements (masked, None) need an
            optional type, or an attribute `_FillValue`, which is stored in their place. Do not write to the
            memory during the call.
        casting
            Which casts are allowed, in NumPy's words. "same_kind", the default, casts floats to floats of any
            size, and integers to floats and integers; integers have to fit, and a float that becomes infinite
            is reported as `numpy.errstate(over=...)` says, by default as a RuntimeWarning. "unsafe" also
            casts floats to integers, and keeps the low bits of values that do not fit.
        durability
            How much has reached the disk when the call returns. "none", the default unless the array was
            opened with another: no guarantee, as in other Zarr libraries. A kill loses nothing, and a power
            failure may lose the last writes. "file": the bytes of each chunk, so that it is old or new,
            whole, after a power failure. "full": also the file names, so that it is new.
        write_empty_chunks
            Store chunks whose elements are all the fill value, bit by bit. By default they are not stored,
            and erased if they exist; in arrays of version 2 with a null fill value they are always stored,
            since readers disagree about missing chunks there.

        Raises
        ------
        IndexingError
            The selection lies outside the array (an `IndexError`).
        ShapeError
            The values do not fit the selection (a `ValueError`).
        DataTypeError
            `casting` forbids the cast, or elements are missing (a `TypeError`).
        OverflowError
            An integer does not fit the stored type. Nothing is written.
        FloatingPointError
            A float would become infinite, and `numpy.errstate(over="raise")` is set. Nothing is written.
        CodecError, UnsupportedError
            A codec cannot encode with its configuration, or a partly covered chunk does not decode; several
            fields were named (write them one by one), or a field of elements that may be missing.
        NotFoundError, StaleHandleError
            Since it was opened here, the array was erased, replaced by one of other chunks, or made smaller
            than the selection: nothing is written then. During the call, it is raised at the end.
        ReadOnlyError, StoreError
            The store cannot be written (an `OSError`): `kind` is "read_only", "permission", "no_space" or
            "write". Some chunks may be new then, and the others are old.
        KeyboardInterrupt
            Ctrl-C stops a long write between chunks.

        Examples
        --------
        >>> import numpy as np
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> before = temperature[24:26]
        >>> temperature[24:26] = np.zeros((6, 8), np.float32)
        >>> temperature.write(np.s_[24:26], before, durability="full")
        >>> temperature.write_unit
        (24, 6, 8)
        """
    get_basic_selection = array_selections.get_basic_selection
    set_basic_selection = array_selections.set_basic_selection
    get_orthogonal_selection = array_selections.get_orthogonal_selection
    set_orthogonal_selection = array_selections.set_orthogonal_selection
    get_coordinate_selection = array_selections.get_coordinate_selection
    set_coordinate_selection = array_selections.set_coordinate_selection
    get_mask_selection = array_selections.get_mask_selection
    set_mask_selection = array_selections.set_mask_selection
    get_block_selection = array_selections.get_block_selection
    set_block_selection = array_selections.set_block_selection
    read_async = asynchronous.read_async
    write_async = asynchronous.write_async
    iter_chunks_async = asynchronous.iter_chunks_async
    @property
    def write_unit(self) -> tuple[int, ...] | None:
        """The shape of the smallest region to write independently of other writers: a shard, or a chunk.

        Writers of different such regions never wait for each other; writers of parts of one region do. None
        for a rectilinear grid.
        """
    def resize(self, shape: SupportsIndex | Sequence[SupportsIndex]) -> None:
        """Make the array of another shape, of as many axes.

        New elements have the fill value, also where the array had others before it was made smaller: chunks
        outside of the new shape are erased, and chunks at its edge are filled beyond it. Making an array
        larger lists its chunks and reads the chunks at a moving edge; `append` does neither.

        This Array then has the new shape. Other handles of the same array get it when they are reopened or
        `refresh` is called; until then they read the outside as fill values. Writers that resize or append at
        the same time take turns.

        An edge chunk that does not decode stays unchanged. If making the array smaller fails otherwise, this
        Array takes the shape found in the store.

        Raises
        ------
        ShapeError, MetadataError
            The shape has another number of axes, or is too large (a `ValueError`).
        NotFoundError, StaleHandleError
            As `write`.
        ReadOnlyError, StoreError
            The store cannot be written (an `OSError`). If making the array smaller fails, it may have the
            new shape already, here as in the store.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.resize((50, 6, 8))
        >>> temperature.shape
        (50, 6, 8)
        """
    def append(self, value: Any, axis: int = 0) -> tuple[int, ...]:
        """Make the array longer along an axis, by elements that are written there.

        A reader that opens the array afterwards sees all new elements or none, even if this process is
        killed. Writers that resize or append at the same time take turns, so that nothing is lost. If the
        array ends within a chunk, that chunk is written again.

        Parameters
        ----------
        value
            Anything that `write` takes, with the array's number of axes and its shape except along `axis`.
        axis
            The axis along which to go on; negative ones count from the last.

        Returns
        -------
        tuple of int
            The new shape, which this Array has then; for others see `resize`.

        Raises
        ------
        IndexingError
            The value is of another shape, or the array has no such axis (an `IndexError`).
        DataTypeError, CodecError, NotFoundError, StaleHandleError, ReadOnlyError, StoreError,
        KeyboardInterrupt
            As `write`. The array is as it was then; in an object store it may be longer, as the error says.

        Examples
        --------
        >>> import numpy as np
        >>> import zarrow
        >>> log = zarrow.create_array("log.zarr", shape=(0, 2), dtype="f8")
        >>> log.append([[1.0, 2.0], [3.0, 4.0]])
        (2, 2)
        >>> log.append(np.zeros((1, 2)))
        (3, 2)
        """
    def refresh(self) -> None:
        """Read the metadata again, so that the array is as the store has it now."""
    def retrieve_chunk(self, indices: SupportsIndex | Sequence[SupportsIndex]) -> AnyElements:
        """Read one chunk by its place in the grid, cut to the array at its end.

        The result is as that of `__getitem__`; if the array is sharded, the chunk is a shard.

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
        """Return the rows along the first axis as a stream that Arrow libraries read, in bounded memory.

        Nothing is read before a library asks for it, and then a batch of whole chunks at a time. The array
        itself is such a stream, with the choices that are the defaults here.

        Parameters
        ----------
        rows
            A slice without a step; by default all rows.
        layout, bools, strings
            The type of the rows: see `DecodedArray.arrow`. The axes keep their names. Bools are
            Arrow's own, of one bit, which every library filters by; `bools="bytes"` saves packing them.
        mask
            Which elements are null besides those already missing: "cf" or "fill", as for `read`.
        batch_rows
            Rows of a batch: see `ArrowStream.batch_rows`.

        Raises
        ------
        ShapeError
            The array has no axis (a `ValueError`).
        ExchangeError
            Arrow has no such type; raised when a library asks for the stream (a `BufferError`).

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
        """Read the array, and give a pyarrow.Array of it."""
    def __dlpack__(self, **options: Any) -> CapsuleType:
        """Read the array, and hand it over by DLPack."""
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
