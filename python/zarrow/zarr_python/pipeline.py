"""The codec pipeline of zarr-python that hands chunks to the engine.

1. A pipeline is made each time an array is opened, and is not made anew by a resize. Making one resolves
   nothing: the first batch does, once for all later batches.
2. A batch is read by one call of the engine, which opens each chunk once. If the engine cannot read it, or
   fails, zarr-python's own pipeline reads the whole batch: results and errors come from zarr-python.
3. Whether a chunk is written as a whole is decided by its batch. Such a chunk is replaced without reading the
   old one, also if that is damaged. Other chunks are changed under the engine's locks, or by conditional
   puts.
4. A write that the engine cannot begin is zarr-python's. A write that failed in the store stays failed:
   another attempt without locks might undo the work of other writers.
5. The engine runs in the thread that asks for elements (`caller_thread`). On an event loop, small reads of a
   local store take less time than a change of threads, and run there. After one that took longer, as on a
   network file system, all reads of the array run in threads. Those of a local store begin in the engine's
   threads, which need no GIL, and the loop prepares the next read.

Source: `zarr.abc.codec.CodecPipeline` of zarr-python 3.1 to 3.4.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from zarr.abc.codec import CodecPipeline as AbstractCodecPipeline
from zarr.codecs._v2 import V2Codec
from zarr.core import codec_pipeline
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.buffer.cpu import NDBuffer
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.config import config
from zarr.registry import register_pipeline
from zarr.storage import StorePath

from zarrow._zarrow import DeviceTensor
from zarrow.errors import (
    CodecError,
    DataTypeError,
    ExchangeError,
    IndexingError,
    LimitError,
    MetadataError,
    ShapeError,
    UnsupportedError,
    ZarrowError,
)
from zarrow.zarr_python import buffers, device_reads
from zarrow.zarr_python.batches import Plan, plan, repeats, without_masks
from zarrow.zarr_python.caller_thread import begun, call, install, is_caller, on_event_loop
from zarrow.zarr_python.chunks import Chunks, open_chunks
from zarrow.zarr_python.fallback import FallbackError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zarr.abc.codec import Codec, GetResult
    from zarr.abc.store import Store
    from zarr.core.buffer import Buffer
    from zarr.core.buffer import NDBuffer as AbstractNDBuffer

# Step 5.
_SMALL_NBYTES = 256 << 10
_SLOW_SECONDS = 0.002

# Elements of variable length that are read at once.
_BLOCK = 1 << 20

# Errors before a write begins, such as that of an old chunk that cannot be decoded (step 4).
_NOT_BEGUN = (
    CodecError,
    DataTypeError,
    ExchangeError,
    IndexingError,
    LimitError,
    MetadataError,
    ShapeError,
    UnsupportedError,
    TypeError,
    ValueError,
)

# Orders of the chunks in a shard that the engine may write; zarr-python gives no meaning to its default.
_ORDERS = (None, "morton", "lexicographic", "unordered")

_PRESENT: Any = {"status": "present"}
_MISSING: Any = {"status": "missing"}

_Entry = tuple[Any, ArraySpec, Any, Any, bool]

# Classes of buffers that hold an array of NumPy.
_HOST_BUFFERS = (NDBuffer, buffers.NDBuffer)


@dataclass(slots=True)
class _State:
    """What a pipeline has resolved so far."""

    chunks: Chunks | None = None
    # Why the engine does not read the array.
    why: str | None = None
    stock: BatchedCodecPipeline | None = None
    # Whether a small read was slow (step 5).
    is_slow: bool = False


@dataclass(frozen=True)
class CodecPipeline(AbstractCodecPipeline):
    """A codec pipeline for zarr-python: chunks are read, decoded, encoded and stored by zarrow's engine.

    Choose it by `zarrow.zarr_python.enable()`, by `zarr.config.set({"codec_pipeline.path":
    "zarrow.zarr_python.CodecPipeline"})`, or by the environment variable `ZARR_CODEC_PIPELINE__PATH`.

    Attributes
    ----------
    metadata
        The metadata of the array when it was opened.
    store
        Its store.
    """

    metadata: Any
    store: Any
    _state: _State = field(default_factory=_State, init=False, repr=False, compare=False)

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec], **options: Any) -> Any:
        """Return zarr-python's own pipeline, for chunks in memory such as those inside a shard."""
        return BatchedCodecPipeline.from_codecs(codecs, **options)

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: Store) -> Self:
        """Return the pipeline of an array, with zarr-python's warnings about its codecs."""
        if array_metadata.zarr_format == 3:
            codec_pipeline.codecs_from_list(array_metadata.codecs)
        return cls(array_metadata, store)

    def __reduce__(self) -> tuple[Any, tuple[Any, Any]]:
        return type(self), (self.metadata, self.store)

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Self:
        """Return this pipeline, which has the codecs of the array."""
        return self

    @property
    def _stock(self) -> BatchedCodecPipeline:
        """zarr-python's own pipeline of the same codecs."""
        if self._state.stock is None:
            self._state.stock = _stock(self.metadata)
        return self._state.stock

    def __iter__(self) -> Any:
        return iter(self._stock)

    @property
    def supports_partial_decode(self) -> bool:
        """Whether a part of a chunk is decoded without the rest."""
        return self._stock.supports_partial_decode

    @property
    def supports_partial_encode(self) -> bool:
        """Whether a part of a chunk is encoded without the rest."""
        return self._stock.supports_partial_encode

    def validate(self, **array: Any) -> None:
        """Check that the codecs fit the array."""
        self._stock.validate(**array)

    def compute_encoded_size(self, byte_length: int, array_spec: ArraySpec) -> int:
        """Return the encoded size of a chunk."""
        return self._stock.compute_encoded_size(byte_length, array_spec)

    async def decode(
        self, chunk_bytes_and_specs: Iterable[tuple[Buffer | None, ArraySpec]]
    ) -> Iterable[AbstractNDBuffer | None]:
        """Decode chunks in memory, by zarr-python's own pipeline."""
        return await self._stock.decode(chunk_bytes_and_specs)

    async def encode(
        self, chunk_arrays_and_specs: Iterable[tuple[AbstractNDBuffer | None, ArraySpec]]
    ) -> Iterable[Buffer | None]:
        """Encode chunks in memory, by zarr-python's own pipeline."""
        return await self._stock.encode(chunk_arrays_and_specs)

    def chunks(self, path: str) -> Chunks:
        """Return the engine's form of the array, from the path of a chunk (step 1).

        Raises
        ------
        FallbackError
            The engine does not read the array.
        """
        state = self._state
        if state.why is not None:
            raise FallbackError(state.why)
        known = state.chunks
        if known is None or not path.startswith(known.prefix) or not known.is_current():
            try:
                known = state.chunks = open_chunks(self.metadata, self.store, path)
            except FallbackError as error:
                state.why = str(error)
                raise
        return known

    async def read(
        self,
        batch_info: Iterable[_Entry],
        out: AbstractNDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> tuple[GetResult, ...]:
        """Read the parts of a batch to their places in `out` (step 2)."""
        batch = list(batch_info)
        if not batch:
            return ()
        try:
            chunks, memory, entries, found = self.planned(batch, out, drop_axes)
            shape = tuple(chunks.room(axis, stop) for axis, stop in enumerate(found.stops))
            coalescing = _coalescing(batch[0][1].config)
            if isinstance(memory, DeviceTensor):
                missing = await call(lambda: device_reads.read(chunks, shape, found, memory, coalescing))
                return _results(entries, missing)
            if not memory.flags.writeable:
                raise FallbackError("the result is read-only")
            if chunks.is_variable:
                missing = await call(lambda: _read_variable(chunks, shape, found, memory, coalescing))
                return _results(entries, missing)
            native = memory.view(memory.dtype.newbyteorder("=")) if not memory.dtype.isnative else memory
            engine, arguments = chunks.engine, (shape, found.kind, found.parts, native)
            is_on_loop = chunks.is_local and not is_caller()
            is_small = (
                is_on_loop
                and not self._state.is_slow
                and memory.nbytes <= _SMALL_NBYTES
                and len(batch) * chunks.unit_nbytes <= _SMALL_NBYTES
            )
            if is_small:
                began = perf_counter()
                missing = engine.read(*arguments, coalescing=coalescing)
                self._state.is_slow = perf_counter() - began > _SLOW_SECONDS
            elif is_on_loop:
                missing = await begun(partial(engine.begin_read, *arguments, coalescing=coalescing))
            else:
                missing = await call(partial(engine.read, *arguments, coalescing=coalescing))
        except (FallbackError, ZarrowError, TypeError, ValueError):
            await on_event_loop()
            return await self._stock.read(batch, out, drop_axes)
        if native is not memory:
            for _, part in found.memory(native):
                part.byteswap(inplace=True)
        return _results(entries, missing)

    async def write(
        self,
        batch_info: Iterable[_Entry],
        value: AbstractNDBuffer,
        drop_axes: tuple[int, ...] = (),
    ) -> None:
        """Write the parts of a batch from their places in `value` (steps 3 and 4)."""
        batch = list(batch_info)
        if not batch:
            return
        try:
            write = self.writes(batch, value, drop_axes)
            await call(write)
        except (FallbackError, *_NOT_BEGUN):
            await on_event_loop()
            await self._stock.write(batch, value, drop_axes)

    def planned(
        self, batch: Sequence[_Entry], buffer: AbstractNDBuffer, drop_axes: tuple[int, ...]
    ) -> tuple[Chunks, Any, list[Any], Plan]:
        """Return the chunks of a batch, its memory, the places of the chunks in the grid, and the selections.

        The memory is an array of NumPy, or a Tensor on a GPU.

        Raises
        ------
        FallbackError
            zarr-python has to read the batch.
        """
        chunks, memory = self._place(batch, buffer)
        entries, found = _planned(chunks, batch, drop_axes, memory.shape)
        return chunks, memory, entries, found

    def writes(
        self, batch: Sequence[_Entry], value: AbstractNDBuffer, drop_axes: tuple[int, ...]
    ) -> Callable[[], None]:
        """Return a function that writes a batch: first its whole chunks, then the parts of others.

        Raises
        ------
        FallbackError
            zarr-python has to write the batch.
        """
        chunks, memory = self._place(batch, value)
        if isinstance(memory, DeviceTensor):
            raise FallbackError("elements on a GPU are written by zarr-python")
        if self.store.read_only:
            raise FallbackError("the store is read-only")
        if chunks.is_variable:
            raise FallbackError("elements of variable length are written by zarr-python")
        for codec in () if self.metadata.zarr_format == 2 else self.metadata.codecs:
            if getattr(codec, "subchunk_write_order", None) not in _ORDERS:
                raise FallbackError(f"shards are written in the order {codec.subchunk_write_order!r}")
        planned = []
        for is_complete in (True, False):
            own = [entry for entry in batch if bool(entry[4]) is is_complete]
            if not own:
                continue
            entries, found = _planned(chunks, own, drop_axes, memory.shape if memory.ndim else _extents(own))
            if repeats(found):
                raise FallbackError("a position is written several times")
            if is_complete:
                # The end of the array, where it cuts off a whole chunk.
                shape = found.stops
                _check_whole(chunks, entries, shape)
            else:
                shape = tuple(chunks.room(axis, stop) for axis, stop in enumerate(found.stops))
            # One value is written to all positions.
            parts = found.memory(memory) if memory.ndim else [(index, memory) for index, _ in found.parts]
            planned.append((shape, found.kind, parts, is_complete))
        write_empty_chunks = batch[0][1].config.write_empty_chunks

        def write() -> None:
            for shape, kind, parts, is_complete in planned:
                chunks.engine.write(
                    shape, kind, parts, write_empty_chunks=write_empty_chunks, replace_edges=is_complete
                )

        return write

    def _place(self, batch: Sequence[_Entry], buffer: AbstractNDBuffer) -> tuple[Chunks, Any]:
        """Return the chunks of a batch, and the memory of its elements.

        Raises
        ------
        FallbackError
            zarr-python has to read or write the batch.
        """
        getter, spec = batch[0][0], batch[0][1]
        if not isinstance(getter, StorePath) or getter.store is not self.store:
            raise FallbackError("the chunks are not in the store of the array")
        chunks = self.chunks(getter.path)
        if type(buffer) in _HOST_BUFFERS and spec.prototype.nd_buffer in _HOST_BUFFERS:
            memory: Any = buffer.as_ndarray_like()
            if type(memory) is not np.ndarray:
                kind = type(memory)
                raise FallbackError(f"elements in memory of {kind.__module__}.{kind.__qualname__}")
            expected = chunks.dtype
        else:
            memory = device_reads.tensor_of(buffer, spec.prototype.nd_buffer)
            if memory is None:
                kind = type(buffer)
                raise FallbackError(f"elements in buffers of {kind.__module__}.{kind.__qualname__}")
            expected = chunks.dtype.newbyteorder("=")
        is_alike = spec.dtype is chunks.data_type or spec.dtype == chunks.data_type
        if memory.dtype != expected or not is_alike:
            raise FallbackError(f"elements of {memory.dtype} in an array of {chunks.dtype}")
        return chunks, memory


def _planned(
    chunks: Chunks, batch: Sequence[_Entry], drop_axes: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[list[tuple[tuple[int, ...], Any, Any]], Plan]:
    """Return the places of a batch's chunks, and its selections."""
    entries: list[tuple[tuple[int, ...], Any, Any]] = []
    known, path = None, None
    position: tuple[int, ...] = ()
    for getter, spec, part, where, *_ in batch:
        # Many runs of one chunk follow each other.
        if getter.path != path:
            path = getter.path
            position = chunks.position(path)
        # All chunks of a regular grid have the same specification.
        if spec is not known:
            chunks.check(position, spec.shape)
            known = spec
        entries.append((position, without_masks(part), where))
    return entries, plan(chunks, entries, drop_axes, shape)


def _read_variable(
    chunks: Chunks,
    shape: tuple[int, ...],
    found: Plan,
    result: np.ndarray[Any, Any],
    coalescing: tuple[int, int] | None,
) -> list[tuple[int, ...]]:
    """Read text or bytes to their places in an array of NumPy; return the indices of the missing chunks.

    Raises
    ------
    FallbackError
        zarr-python gives one element of bytes as an array of objects in an array of objects.
    """
    if result.dtype.kind == "O" and result.ndim == 0:
        raise FallbackError("one element of bytes is read by zarr-python")
    array = chunks.engine.array(shape, coalescing=coalescing)
    reader = device_reads.reader(array, found.kind)
    for index, part in found.memory(result):
        for rows, block in _blocks(chunks, index, part):
            block[...] = reader.read(rows).numpy()
    return chunks.engine.take_missing(array)


def _blocks(chunks: Chunks, index: Any, part: np.ndarray[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Divide a selection of many rows, so that few elements are in memory twice: rows of whole chunks."""
    first = index[0] if index else None
    extent = chunks.axes[0] if chunks.axes else None
    if not isinstance(first, slice) or not isinstance(extent, int) or first.step != 1 or part.ndim == 0:
        yield index, part
        return
    rows = max(_BLOCK // max(part[:1].size, 1) // extent, 1) * extent
    start = first.start
    while start < first.stop:
        stop = min((start // rows + 1) * rows, first.stop)
        yield (slice(start, stop), *index[1:]), part[start - first.start : stop - first.start]
        start = stop


def _coalescing(settings: ArrayConfig) -> tuple[int, int] | None:
    """Return the maximum gap and size of merged requests; None before zarr-python has these settings."""
    gap = getattr(settings, "sharding_coalesce_max_gap_bytes", None)
    if gap is None:
        return None
    return _in_bounds(gap), _in_bounds(settings.sharding_coalesce_max_bytes)


def _in_bounds(nbytes: int) -> int:
    return min(max(nbytes, 0), sys.maxsize)


def _results(
    entries: Sequence[tuple[tuple[int, ...], Any, Any]], missing: Sequence[tuple[int, ...]]
) -> tuple[GetResult, ...]:
    """Return the result of each entry of a batch."""
    if not missing:
        return (_PRESENT,) * len(entries)
    absent = set(missing)
    return tuple(_MISSING if position in absent else _PRESENT for position, *_ in entries)


def _extents(batch: Sequence[_Entry]) -> tuple[int, ...]:
    """Return the shape of the selection that a batch writes one value to."""
    places = [entry[3] if isinstance(entry[3], tuple) else (entry[3],) for entry in batch]
    return tuple(max(map(_stop, axis)) for axis in zip(*places, strict=True))


def _stop(place: slice | np.ndarray[Any, Any]) -> int:
    return int(place.stop if isinstance(place, slice) else place.max() + 1)


def _check_whole(
    chunks: Chunks, entries: Sequence[tuple[tuple[int, ...], Any, Any]], shape: tuple[int, ...]
) -> None:
    """Check that each part covers its chunk inside an array of this shape."""
    for position, part, _ in entries:
        items = part if isinstance(part, tuple) else (part,)
        for axis, (number, item) in enumerate(zip(position, items, strict=True)):
            extent = min(chunks.stop(axis, number), shape[axis]) - chunks.start(axis, number)
            covers = (
                item.indices(chunks.extent(axis, number)) == (0, extent, 1)
                if isinstance(item, slice)
                else np.ravel(item).tolist() == list(range(extent))
            )
            if not covers:
                raise FallbackError("a part of a chunk that is declared to be the whole chunk")


def _stock(metadata: Any) -> BatchedCodecPipeline:
    """Return zarr-python's own pipeline of an array, as its `create_codec_pipeline` does."""
    if metadata.zarr_format == 2:
        codecs: Any = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
        shape, settings = metadata.chunks, ArrayConfig.from_dict({"order": metadata.order})
    else:
        codecs, settings = metadata.codecs, ArrayConfig.from_dict({})
        shape = getattr(metadata.chunk_grid, "chunk_shape", None) or (1,) * len(metadata.shape)
    spec = ArraySpec(
        shape=shape,
        dtype=metadata.dtype,
        fill_value=metadata.fill_value,
        config=settings,
        prototype=default_buffer_prototype(),
    )
    evolved = []
    for codec in codecs:
        evolved.append(codec.evolve_from_array_spec(array_spec=spec))
        spec = evolved[-1].resolve_metadata(spec)
    # Without the warnings about these codecs, which came when the array was opened.
    split = getattr(codec_pipeline, "codecs_from_list_unchecked", codec_pipeline.codecs_from_list)
    array_array_codecs, array_bytes_codec, bytes_bytes_codecs = split(evolved)
    return BatchedCodecPipeline(
        array_array_codecs=array_array_codecs,
        array_bytes_codec=array_bytes_codec,
        bytes_bytes_codecs=bytes_bytes_codecs,
        batch_size=config.get("codec_pipeline.batch_size"),
    )


# zarr-python finds a pipeline by the name of its class.
CodecPipeline.__module__ = "zarrow.zarr_python"
register_pipeline(CodecPipeline)
install(CodecPipeline)
