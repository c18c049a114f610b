"""The sets of samples, written once by zarr-python."""

import importlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import zarr

BATCH = 32
WINDOW_NBYTES = 16 << 20  # of rows that are shuffled together, and of tensorstore's cache


@dataclass(frozen=True)
class SampleSet:
    """An array of float32, and its samples: rows, random crops of a shape, or rows of a sparse matrix."""

    title: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    samples: int
    crop: tuple[int, int, int] | None = None
    window_nbytes: int = WINDOW_NBYTES
    batch: int = BATCH
    density: float = 1.0

    @property
    def kind(self) -> Literal["rows", "crops", "sparse rows"]:
        """What a sample is."""
        return "crops" if self.crop else "rows" if self.density == 1 else "sparse rows"


SETS = {
    "rows-16": SampleSet("16 samples a chunk", (1024, 128, 128), (16, 128, 128), 1024),
    "rows-1": SampleSet("1 sample a chunk", (1024, 128, 128), (1, 128, 128), 1024),
    # With zarrow's default window. tensorstore reads three batches of 14 MiB at a time beside its cache.
    "crops": SampleSet("random crops of 48³", (256, 256, 256), (64, 64, 64), 256, (48, 48, 48), 64 << 20),
    # Batches of the size that annbatch recommends. A window has 8,192 cells, as many as annbatch loads.
    "cells": SampleSet(
        "cells of 2,000 genes, 5 % stored", (65_536, 2_000), (), 65_536, None, 6_600_000, 4_096, density=0.05
    ),
}


def write(folder: Path, name: str) -> None:
    """Write the group of a set, unless it exists. Each row begins with its number.

    Raises
    ------
    ImportError
        The set is written by a library that is missing.
    """
    path, chosen = folder / f"{name}.zarr", SETS[name]
    if path.exists():
        return
    part = folder / f"{name}.part"
    if chosen.kind == "sparse rows":
        write_cells(part, chosen)
        part.rename(path)
        return
    values = np.random.default_rng(5).integers(0, 1000, chosen.shape).astype("float32")
    if chosen.crop is None:
        values[:, 0, 0] = np.arange(chosen.samples)
    zarr.open_group(part, mode="w").create_array(
        "x", data=values, chunks=chosen.chunks, dimension_names=["time", "row", "column"]
    )
    zarr.consolidate_metadata(part)
    part.rename(path)


def write_cells(path: Path, chosen: SampleSet) -> None:
    """Write an AnnData as annbatch does, in large shards. The first gene is the cell's number, from 1."""
    import anndata
    import scipy.sparse

    random = np.random.default_rng(5)
    cells = scipy.sparse.random_array(
        chosen.shape, density=chosen.density, format="csr", dtype="f4", rng=random
    )
    numbers = scipy.sparse.csr_array(np.arange(1, chosen.samples + 1, dtype="f4")[:, None])
    with warnings.catch_warnings(action="ignore"):
        adata = anndata.AnnData(scipy.sparse.hstack([numbers, cells[:, 1:]], format="csr"))
        group = zarr.open_group(path, mode="w", zarr_format=3)
        importlib.import_module("annbatch").write_sharded(group, adata)
