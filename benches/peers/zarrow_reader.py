"""zarrow, and its options for reading."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benches.peers.peer import Copy, Peer
from benches.peers.zarr_reader import create_like
from benches.selections import Selection


def takes(function: Callable[..., Any], parameter: str) -> bool:
    """Return whether a function of this version has a parameter."""
    return parameter in inspect.signature(function).parameters


class Zarrow(Peer):
    name = "zarrow"
    package = "zarrow"
    is_zarrow = True
    reads_http = True  # by the Rust example that `late` starts
    calls: ClassVar = {
        "dlpack": "t.__dlpack__()",
        "dlpack-versioned": "t.__dlpack__(max_version=(1, 0))",
        "numpy": "t.numpy()",
        "numpy-dlpack": "numpy.from_dlpack(t)",
        "torch": "t.torch()",
        "torch-dlpack": "torch.from_dlpack(t)",
        "from-numpy": "zarrow.from_numpy(numpy_array)",
        "from-torch": "zarrow.from_dlpack(torch_tensor)",
        "arrow": "t.__arrow_c_array__()",
        "tvm": "nop(t)",
    }

    def __init__(self) -> None:
        import zarrow

        self.zarrow: Any = zarrow

    def open(self, path: Path) -> Any:
        return self.zarrow.open(path)

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array[...] if selection is None else array[selection]

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        create_like(path, like)
        self.zarrow.open(path)[...] = data

    def copy(self, source: Path, target: Path, options: Copy) -> None:
        codecs = options.codecs()
        self.zarrow.copy(source, target, chunks=options.chunks, compressors=codecs, zarr_format=3)

    def lazy(self, path: Path) -> Any:
        return self.zarrow.open(path, mode="r").to_dask()

    def create(self, path: Path) -> None:
        self.zarrow.create_array(path, shape=(1000, 1000), chunks=(100, 100), dtype="float32")

    def batch(self, array: Any, selections: Sequence[Selection]) -> Any:
        if not hasattr(self.zarrow, "read_many"):
            return super().batch(array, selections)
        return self.zarrow.read_many([(array, selection) for selection in selections])

    def release_memory(self) -> None:
        self.zarrow.release_memory()

    def arrow(self, result: Any) -> Any:
        return result.arrow()

    def strings(self, result: Any) -> Any:
        return result.numpy()


class Mapped(Zarrow):
    """Maps the files; the tensor must confirm it."""

    name = "zarrow mmap"
    rows = frozenset({"rows-open", "rows-sum"})

    def missing(self) -> str | None:
        return None if takes(self.zarrow.Array.read, "mmap") else "this version has no mmap="

    def read(self, array: Any, selection: Selection | None) -> Any:
        result = array.read(selection, mmap=True)
        if not result.is_mapped:
            raise NotImplementedError("these chunks cannot be mapped, and were read")
        return result


class Into(Zarrow):
    """Reads into the same memory each time."""

    name = "zarrow out="
    rows = frozenset({"raw", "zstd", "blosc", "gzip", "sharded", "rows"})

    def missing(self) -> str | None:
        return None if takes(self.zarrow.Array.read, "out") else "this version has no out="

    def open(self, path: Path) -> Any:
        array = self.zarrow.open(path)
        return array, np.zeros(array.shape, array.dtype)

    def read(self, array: Any, selection: Selection | None) -> Any:
        source, target = array
        source.read(selection, out=target)
        return target


class Cached(Zarrow):
    """Caches decoded chunks."""

    name = "zarrow cache_bytes"
    rows = frozenset({"crops", "batch", "table"})

    def missing(self) -> str | None:
        return None if takes(self.zarrow.open, "cache_bytes") else "this version has no cache_bytes="

    def open(self, path: Path) -> Any:
        return self.zarrow.open(path, cache_bytes=1 << 30)
