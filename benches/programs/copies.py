"""Copies of an array to other chunks, another compressor or version 3: time, memory, and bytes moved."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import ZstdCodec

from benches.peers import Copy, Peer
from benches.row import Row
from benches.scale import Scale
from benches.tasks import Written

PREFIX = "programs-copy-"
PEERS = ("zarrow", "tensorstore", "dask", "cubed")
STEPS, TILE = 256, 64

Run = Callable[[], tuple[float, Any]]


def write(path: Path, kind: str, side: int) -> None:
    """Write layers in version 3, or tiles in version 2, compressed by zstd."""
    chunks = (1, side, side) if kind == "layers" else (TILE, TILE, TILE)
    options: dict[str, Any] = {"zarr_format": 3, "compressors": ZstdCodec(level=3)}
    if kind == "tiles":
        from numcodecs import Zstd

        options = {"zarr_format": 2, "compressors": Zstd(level=3)}
    shape = (STEPS, side, side)
    array: Any = zarr.create_array(path, shape=shape, chunks=chunks, dtype="f4", **options)
    noise, layers = np.random.default_rng(8), np.linspace(0, 9, side, dtype="f4")
    for step in range(0, STEPS, TILE):
        block = noise.normal(0, 0.05, (TILE, side, side)) + layers[:, None] + np.sin(layers)
        array[step : step + TILE] = np.round(block, 2)


def copied(peer: Peer, row: Row, path: Path) -> Run:
    """Copy an array to a folder in memory, after deleting the previous copy."""
    folder = Path(tempfile.gettempdir(), f"copied-{peer.name}")

    def run() -> tuple[float, Any]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        started = time.perf_counter()
        peer.copy(path, folder / "copy.zarr", row.index)
        return time.perf_counter() - started, Written(peer, folder / "copy.zarr")

    return run


def copies(scale: Scale) -> list[Row]:
    """Return the rows of copies."""
    side = scale.transformed
    layers, tiles = f"{PREFIX}layers-{side}", f"{PREFIX}tiles-{side}"
    size = f"{STEPS * side**2 * 4 >> 20} MiB of float32"
    bars: dict[str, Any] = {"peers": PEERS, "ahead": 1.0, "counts_bytes": True}
    pencils, layer, tile = Copy((STEPS, 32, 32)), Copy((1, side, side), "blosc"), Copy((TILE, TILE, TILE))
    return [
        Row(f"{PREFIX}rechunk", f"{size}, from layers to pencils", "copied", layers, index=pencils, **bars),
        Row(f"{PREFIX}recompress", f"{size}, from zstd to blosc", "copied", layers, index=layer, **bars),
        Row(f"{PREFIX}version", f"{size}, from version 2 to 3", "copied", tiles, index=tile, **bars),
    ]
