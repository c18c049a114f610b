"""Random datasets, encodings and programs of `to_zarr`: ours stores, or refuses, what xarray does."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import zarrow.xarray
from test_xarray_writing import expect_equal, values
from xarray_marks import marks

pytestmark = marks(
    "Times can't be serialized faithfully", "invalid value encountered in cast", "saving variable"
)

COUNT = 400 if "ZARROW_THOROUGH" in os.environ else 20
KINDS = ("f8", "f4", "f2", ">f4", "i4", "u1", "i8", "?", "c8", "M8[ns]", "m8[ns]", "U4", "S3", "T", "O")


def elements(chance: random.Random, kind: str, shape: tuple[int, ...]) -> Any:
    """Draw elements. Some are missing."""
    rng = np.random.default_rng(chance.getrandbits(32))
    count = int(np.prod(shape))
    if kind in ("U4", "S3", "T", "O"):
        some = ["", "a", "bc", "x" if kind == "S3" else "ß", "def"]
        texts = [chance.choice(some) for _ in range(count)]
        dtype: Any = np.dtypes.StringDType() if kind == "T" else object if kind == "O" else kind
        return np.array(texts, dtype).reshape(shape)
    if kind[0] in "Mm":
        return (rng.integers(0, 10**6, shape) * 10**9).astype("i8").view(kind)
    drawn = rng.integers(0, 100, shape).astype(kind)
    if drawn.dtype.kind == "f":
        drawn[rng.random(shape) < 0.2] = np.nan
    if chance.random() < 0.2:
        drawn[...] = 0
    return drawn


def drawn_encoding(chance: random.Random, kind: str, shape: tuple[int, ...], version: int) -> dict[str, Any]:
    """Draw an encoding; it may contradict itself."""
    encoding: dict[str, Any] = {}
    if shape and chance.random() < 0.6:
        encoding["chunks"] = tuple(chance.randint(1, extent) for extent in shape)
        if version == 3 and chance.random() < 0.5:
            encoding["shards"] = tuple(part * chance.randint(1, 3) for part in encoding["chunks"])
    if version == 3 and chance.random() < 0.5:
        encoding["compressors"] = chance.choice(
            [None, [GzipCodec(level=1)], [ZstdCodec(level=3)], [BloscCodec()]]
        )
    if kind in ("f8", "f4") and chance.random() < 0.4:
        encoding.update(dtype="i2", scale_factor=0.5, add_offset=1.0, _FillValue=-1)
    if kind in ("i4", "f8") and version == 3 and chance.random() < 0.3:
        encoding["fill_value"] = chance.choice([0, 7])
    if chance.random() < 0.1:
        encoding["write_empty_chunks"] = chance.random() < 0.5
    return encoding


def drawn(
    chance: random.Random, variables: list[tuple[str, str, tuple[str, ...]]], sizes: dict[str, int]
) -> xr.Dataset:
    """Draw elements for variables."""
    found = {
        name: (dims, elements(chance, kind, tuple(sizes[dim] for dim in dims)), {"note": name})
        for name, kind, dims in variables
    }
    times = pd.date_range("2000", periods=sizes["t"]) + pd.Timedelta(f"{chance.randint(0, 50)}D")
    dataset = xr.Dataset(found, coords={"t": times}, attrs={"number": chance.randint(0, 9)})
    if chance.random() < 0.5:
        dataset = dataset.chunk({dim: chance.randint(1, size) for dim, size in dataset.sizes.items()})
    return dataset


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_programs_store_what_xarray_stores(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    version = chance.choice([2, 3, 3])
    sizes = {"t": chance.randint(1, 9), "x": chance.randint(1, 6), "y": chance.randint(1, 4)}
    variables = []
    for number in range(chance.randint(1, 5)):
        dims = tuple(chance.sample(list(sizes), chance.randint(0, 3)))
        variables.append((f"v{number}", chance.choice(KINDS), dims))
    dataset = drawn(chance, variables, sizes)
    shapes = {name: tuple(sizes[dim] for dim in dims) for name, _, dims in variables}
    encoding = {
        name: drawn_encoding(chance, kind, shapes[name], version)
        for name, kind, _ in variables
        if chance.random() < 0.7
    }
    checks = {"safe_chunks": chance.random() < 0.7, "align_chunks": chance.random() < 0.3}
    steps: list[tuple[xr.Dataset, dict[str, Any]]] = [
        (dataset, {"encoding": encoding, "zarr_format": version, **checks})
    ]
    grown = dict(sizes)
    for _ in range(chance.randint(0, 3)):
        program = chance.choice(["append", "append", "region", "replace", "values"])
        if program == "append":
            more = {**grown, "t": chance.randint(1, 5)}
            options: dict[str, Any] = {"append_dim": "t"}
            grown["t"] += more["t"]
            steps.append((drawn(chance, variables, more), {**options, **checks}))
        elif program == "region":
            start = chance.randint(0, grown["t"] - 1)
            stop = chance.randint(start + 1, grown["t"])
            inside = [variable for variable in variables if "t" in variable[2]]
            part = drawn(chance, inside, {**grown, "t": stop - start})
            steps.append((part, {"region": {"t": slice(start, stop)}, **checks}))
        elif program == "replace":
            steps.append((drawn(chance, variables, grown), {"mode": "w", "zarr_format": version, **checks}))
        else:
            steps.append((drawn(chance, variables, grown), {"mode": chance.choice(["a", "r+"]), **checks}))
    ours, stock = tmp_path / "ours.zarr", tmp_path / "stock.zarr"
    for made, options in steps:
        before = values(ours) if ours.exists() else {}
        errors: list[Any] = []
        for path, write in ((stock, made.copy().to_zarr), (ours, None)):
            given = {
                **options,
                "encoding": {name: dict(one) for name, one in options.get("encoding", {}).items()},
            }
            # Tasks that share chunks lose elements without the engine's locks.
            import dask

            with dask.config.set(scheduler="synchronous"):
                try:
                    write(path, **given) if write else zarrow.xarray.to_zarr(made.copy(), path, **given)
                    errors.append(None)
                except Exception as error:
                    errors.append(error)
        assert type(errors[0]) is type(errors[1]), errors
        if errors[0] is not None:
            assert str(errors[0]).replace("stock.zarr", "ours.zarr") == str(errors[1])
            assert (values(ours) if ours.exists() else {}) == before
            # Stock may have damaged its own.
            shutil.rmtree(stock, ignore_errors=True)
            if ours.exists():
                shutil.copytree(ours, stock)
            else:
                return
        expect_equal(ours, stock, has_empty_shards=True)
