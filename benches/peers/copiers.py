"""Libraries that copy arrays lazily, by tasks on their chunks."""

import tempfile
from pathlib import Path
from typing import Any, ClassVar

from benches.peers.peer import Copy, Peer


class Dask(Peer):
    """dask.array on zarr-python, with its threads."""

    name = "dask"
    package = "dask"
    rows: ClassVar = frozenset[str]()  # those of programs name their peers

    def __init__(self) -> None:
        import dask.array

        self.array: Any = dask.array

    def lazy(self, path: Path) -> Any:
        return self.array.from_zarr(str(path))

    def copy(self, source: Path, target: Path, options: Copy) -> None:
        array = self.array.from_zarr(str(source)).rechunk(options.chunks)
        array.to_zarr(str(target), compressors=options.codecs(), zarr_format=3)


class Cubed(Peer):
    """cubed on zarr-python, with its threads."""

    name = "cubed"
    package = "cubed"
    rows: ClassVar = frozenset[str]()

    def __init__(self) -> None:
        import cubed
        import zarr

        self.cubed: Any = cubed
        self.zarr: Any = zarr

    def spec(self) -> Any:
        """Return limits of memory. The intermediate arrays are beside the other results."""
        options = {"work_dir": tempfile.gettempdir(), "executor_name": "threads"}
        return self.cubed.Spec(**options, allowed_mem="1GB", reserved_mem="200MB")

    def copy(self, source: Path, target: Path, options: Copy) -> None:
        array = self.cubed.from_zarr(str(source), spec=self.spec()).rechunk(options.chunks)
        # Its `to_zarr` chooses the codecs.
        empty = self.zarr.create_array(
            target, shape=array.shape, chunks=options.chunks, dtype=array.dtype, compressors=options.codecs()
        )
        self.cubed.store([array], [empty])
