"""The writers, each used as its documentation recommends: a producer hands over one frame after another."""

import importlib
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from benches.writers.data import FRAMES, FrameSet

# Bytes of frames that may wait; acquire-zarr has no such limit.
WAITING_NBYTES = 256 << 20


class Writer:
    """A writer of one array. The constructor imports what it needs."""

    def __init__(self, chosen: FrameSet) -> None:
        self.chosen = chosen
        self.prepare()

    def prepare(self) -> None:
        """Import the library."""

    def open(self, path: Path) -> None:
        """Create the array."""
        raise NotImplementedError

    def append(self, frame: Any) -> None:
        """Take a frame."""
        raise NotImplementedError

    def close(self) -> None:
        """Store all frames."""
        raise NotImplementedError


class Zarrow(Writer):
    def prepare(self) -> None:
        self.zarrow = importlib.import_module("zarrow")
        self.stream = importlib.import_module("zarrow.stream")

    def open(self, path: Path) -> None:
        chosen = self.chosen
        compressors = {"name": "zstd", "configuration": {"level": 1}} if chosen.compressed else None
        array = self.zarrow.create_array(
            path,
            shape=(0, chosen.side, chosen.side),
            dtype="u2",
            chunks=chosen.chunk,
            shards=chosen.shard,
            compressors=compressors,
        )
        self.writer = self.stream.Writer(array, memory_nbytes=WAITING_NBYTES)

    def append(self, frame: Any) -> None:
        self.writer.append(frame)

    def close(self) -> None:
        self.writer.close()


class AcquireZarr(Writer):
    def prepare(self) -> None:
        self.library: Any = importlib.import_module("acquire_zarr")

    def open(self, path: Path) -> None:
        library, chosen = self.library, self.chosen
        compression = None
        if chosen.compressed:
            compression = library.CompressionSettings(
                compressor=library.Compressor.ZSTD, codec=library.CompressionCodec.ZSTD, level=1, shuffle=0
            )
        kinds = (library.DimensionType.TIME, library.DimensionType.SPACE, library.DimensionType.SPACE)
        extents = (0, chosen.side, chosen.side)
        dimensions = [
            library.Dimension(
                name=name,
                kind=kind,
                array_size_px=extent,
                chunk_size_px=size,
                shard_size_chunks=shard // size,
            )
            for name, kind, extent, size, shard in zip(
                "tyx", kinds, extents, chosen.chunk, chosen.shard, strict=True
            )
        ]
        array = library.ArraySettings(data_type=np.uint16, compression=compression, dimensions=dimensions)
        self.stream = library.ZarrStream(library.StreamSettings(store_path=str(path), arrays=[array]))

    def append(self, frame: Any) -> None:
        self.stream.append(frame)

    def close(self) -> None:
        self.stream.close()


class Gathering(Writer):
    """Gathers the frames of a shard, which is then written whole."""

    def gather(self) -> None:
        """Begin the first shard."""
        self.count, self.shard = 0, self.memory()

    def memory(self) -> Any:
        """Return memory for the frames of a shard."""
        return np.empty(self.chosen.shard, np.uint16)

    def append(self, frame: Any) -> None:
        depth = self.chosen.shard[0]
        self.shard[self.count % depth] = frame
        self.count += 1
        if self.count % depth == 0:
            self.write(self.count - depth, self.shard)

    def write(self, start: int, frames: Any) -> None:
        """Write whole shards."""
        raise NotImplementedError

    def close(self) -> None:
        depth = self.chosen.shard[0]
        if self.count % depth:
            self.write(self.count // depth * depth, self.shard[: self.count % depth])


class Tensorstore(Gathering):
    """Writes in the background, a limited number of shards at a time."""

    def prepare(self) -> None:
        self.tensorstore: Any = importlib.import_module("tensorstore")

    def open(self, path: Path) -> None:
        chosen = self.chosen
        codecs: list[Any] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if chosen.compressed:
            codecs.append({"name": "zstd", "configuration": {"level": 1}})
        sharding = {"chunk_shape": chosen.chunk, "codecs": codecs}
        metadata = {
            "shape": (FRAMES, chosen.side, chosen.side),
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chosen.shard}},
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        }
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}, "metadata": metadata}
        self.array = self.tensorstore.open(spec, create=True).result()
        self.waiting: deque[Any] = deque()
        self.most = max(1, WAITING_NBYTES // (2 * np.prod(chosen.shard).item()))
        self.gather()

    def write(self, start: int, frames: Any) -> None:
        self.waiting.append(self.array[start : start + len(frames)].write(frames))
        # The write refers to the memory until it ends.
        self.shard = self.memory()
        while len(self.waiting) > self.most:
            self.waiting.popleft().result()

    def close(self) -> None:
        super().close()
        for write in self.waiting:
            write.result()


class ZarrPython(Gathering):
    def prepare(self) -> None:
        self.zarr: Any = importlib.import_module("zarr")

    def open(self, path: Path) -> None:
        chosen = self.chosen
        self.array = self.zarr.create_array(
            path,
            shape=(FRAMES, chosen.side, chosen.side),
            dtype="u2",
            chunks=chosen.chunk,
            shards=chosen.shard,
            compressors=self.zarr.codecs.ZstdCodec(level=1) if chosen.compressed else None,
        )
        self.gather()

    def write(self, start: int, frames: Any) -> None:
        self.array[start : start + len(frames)] = frames


WRITERS: dict[str, type[Writer]] = {
    "zarrow": Zarrow,
    "acquire-zarr": AcquireZarr,
    "tensorstore": Tensorstore,
    "zarr-python": ZarrPython,
}
