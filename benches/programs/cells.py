"""AnnData under zarr-python: the loader of annbatch, and blocks of dask in automatic shards.

The index of a row says whether a task reads a folder or S3, and whether it writes automatic shards.
"""

import importlib
import itertools
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benches.peers import Peer
from benches.row import Row

PREFIX = "programs-cells-"
CELLS = {"sparse": 65_536, "dense": 16_384}
GENES, DENSITY = 2_000, 0.05
# The loader's request: runs of this many rows, and rows in a batch.
RUN, RUNS, BATCH = 32, 256, 4_096
WRITTEN_CELLS, WRITTEN_GENES, BLOCK = 40_000, 1_000, 2_500

Run = Callable[[], tuple[float, Any]]


def write(path: Path, kind: str) -> None:
    """Write cells as annbatch does, in one large shard of chunks of 64 cells."""
    import anndata
    import pandas
    import scipy.sparse

    warnings.simplefilter("ignore")
    random, count = np.random.default_rng(11), CELLS[kind]
    cells = scipy.sparse.random_array((count, GENES), density=DENSITY, format="csr", dtype="f4", rng=random)
    cells.data = np.ceil(cells.data * 5)
    labels = pandas.Categorical(random.integers(0, 9, count).astype(str))
    names = np.arange(count).astype(str)
    adata = anndata.AnnData(
        cells if kind == "sparse" else cells.toarray(), pandas.DataFrame({"label": labels}, names)
    )
    importlib.import_module("annbatch").write_sharded(zarr.open_group(path, mode="w", zarr_format=3), adata)


def samples(peer: Peer, row: Row, path: Path) -> Run:
    """Load all cells in random order with annbatch: the time of one cell."""
    annbatch = importlib.import_module("annbatch")
    warnings.simplefilter("ignore")
    adata = importlib.import_module("annbatch.utils").load_all_aligned(
        zarr.open_group(_on_s3(path) if "s3" in row.index else path, mode="r")
    )

    def run() -> tuple[float, Any]:
        random = np.random.default_rng(3)
        options: dict[str, Any] = {"chunk_size": RUN, "preload_nchunks": RUNS, "batch_size": BATCH}
        loader = annbatch.Loader(**options, shuffle=True, preload_to_gpu=False, rng=random).add_adata(adata)
        started, count, sums = time.perf_counter(), 0, []
        for batch in loader:
            count += batch["X"].shape[0]
            sums.append(batch["X"][0].sum())
        return (time.perf_counter() - started) / count, np.array(sums)

    return run


def _on_s3(path: Path) -> Any:
    """Serve the folder of a set as a bucket, and return the set there; the server ends with this process."""
    from benches.remote.peers import s3_store
    from benches.remote.server import Server

    scratch = Path(tempfile.gettempdir())
    server = Server(path.parent, scratch / "server.log", scratch)
    _SERVERS.append(server)
    return s3_store(path.name, f"http://127.0.0.1:{server.port}", read_only=True)


# The server ends when its standard input does.
_SERVERS: list[Any] = []


def dask_blocks(peer: Peer, row: Row, path: Path) -> Run:
    """Write an AnnData of dask blocks that are not aligned to chunks or shards."""
    import anndata

    dask_array = importlib.import_module("dask.array")
    warnings.simplefilter("ignore")
    cells = np.random.default_rng(5).poisson(0.3, (WRITTEN_CELLS, WRITTEN_GENES)).astype("f4")
    adata = anndata.AnnData(dask_array.from_array(cells, chunks=(BLOCK, WRITTEN_GENES)))
    anndata.settings.zarr_write_format = 3
    anndata.settings.auto_shard_zarr_v3 = "shards" in row.index
    folders = (Path(tempfile.gettempdir(), f"cells-{number}") for number in itertools.count())

    def run() -> tuple[float, Any]:
        target = next(folders)
        started = time.perf_counter()
        adata.write_zarr(target)
        seconds = time.perf_counter() - started
        written = np.asarray(zarr.open_array(target, path="X", mode="r")[...])
        shutil.rmtree(target)
        return seconds, written

    return run


TASKS = {task.__name__: task for task in (samples, dask_blocks)}
