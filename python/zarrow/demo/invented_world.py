"""A world that is made up, in the shape of the real data: for a wheel without the packages that carry those.

1. Land and the turbidity of the air follow from sines, so that every run has the same world.
2. zarrow itself writes the stores, including those with missing values.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zarrow
from zarrow.demo import files
from zarrow.demo.stores import Stores

_AIRPORTS = 20_000


def prepare(folder: Path) -> Stores:
    """Write the stores into `folder` unless they exist."""
    stores = Stores(folder)
    mark = folder / "written"
    if mark.is_file():
        return stores
    start = time.perf_counter()
    print(f"zarrow writes an invented world to {folder} ...", flush=True)
    for path in (stores.world, stores.world_v2, stores.masked, stores.source):
        shutil.rmtree(path, ignore_errors=True)
    stores.source.mkdir(parents=True)
    land = _land(files.TURBIDITY_SHAPE[1:])
    turbidity = _turbidity()
    _write_world(stores.world, turbidity)
    root = zarrow.create_group(stores.world_v2, zarr_format=2)
    root.create_array("turbidity_counts", data=turbidity, chunks=(1, 1080, 2160), compressors="zlib")
    _write_masked(stores, turbidity, land)
    mark.write_text("an invented world")
    print(f"  done in {time.perf_counter() - start:.1f} s", flush=True)
    return stores


def _land(shape: tuple[int, int]) -> NDArray[np.bool_]:
    latitude = np.linspace(np.pi / 2, -np.pi / 2, shape[0], dtype="f4")[:, None]
    longitude = np.linspace(-np.pi, np.pi, shape[1], dtype="f4")[None, :]
    height = np.sin(2 * longitude + 3 * np.sin(2 * latitude)) + np.sin(5 * latitude - longitude)
    height += 0.5 * np.sin(7 * longitude + 1) * np.cos(6 * latitude) + 0.2 * np.sin(
        23 * longitude + 17 * latitude
    )
    return np.asarray(height > 0.3)


def _turbidity() -> NDArray[np.uint8]:
    months, height, width = files.TURBIDITY_SHAPE
    latitude = np.linspace(np.pi / 2, -np.pi / 2, height, dtype="f4")[:, None]
    longitude = np.linspace(-np.pi, np.pi, width, dtype="f4")[None, :]
    dust = 30 * np.cos(latitude) ** 2 * (1.5 + np.sin(3 * longitude + 2 * latitude)) + 35
    season = [np.cos(2 * np.pi * (month - 6) / months) * np.sin(latitude) for month in range(months)]
    return np.stack([(dust * (1 + 0.3 * part)).astype("u1") for part in season])


def _write_world(path: Path, turbidity: NDArray[np.uint8]) -> None:
    place = ("month", "latitude", "longitude")
    real = turbidity * files.TURBIDITY_UNIT
    root = zarrow.create_group(path, attributes={"title": "An invented world"})

    def write(name: str, values: Any, names: tuple[str, ...], **layout: Any) -> None:
        root.create_array(name, data=values, dimension_names=names, **layout)

    fast = {"name": "zstd", "configuration": {"level": 1}}
    write("turbidity/zstd", real, place, chunks=(1, 540, 1080), compressors=fast)
    write("turbidity/sharded", real, place, shards=(1, 1080, 2160), chunks=(1, 270, 540), compressors=fast)
    counts, chunks = turbidity, (1, 1080, 2160)
    write("turbidity_counts/uncompressed", counts, place, chunks=chunks, compressors=None)
    write("turbidity_counts/gzip", counts, place, chunks=chunks, compressors="gzip")
    write(
        "turbidity_counts/blosc_lz4",
        counts,
        place,
        chunks=chunks,
        compressors={"id": "blosc", "cname": "lz4"},
    )
    land = _land((2 * turbidity.shape[1], 2 * turbidity.shape[2]))
    write("land_mask", land, place[1:], chunks=(1080, 2160), compressors=fast)
    names = [f"Airport {number}, {'Ünterberg' if number % 7 else 'Łąka'}" for number in range(_AIRPORTS)]
    write("airports/name", names, ("airport",), chunks=(4096,))
    write("airports/latitude", np.linspace(-90, 90, _AIRPORTS), ("airport",), chunks=(8192,))


def _write_masked(stores: Stores, turbidity: NDArray[np.uint8], land: NDArray[np.bool_]) -> None:
    cities = [f"City {number}" if number % 5 else None for number in range(_AIRPORTS)]
    turbidity.tofile(stores.source / "turbidity.bin")
    land.tofile(stores.source / "land.bin")
    (stores.source / "cities.json").write_text(json.dumps(cities), encoding="utf-8")
    root = zarrow.create_group(stores.masked)
    missing = np.broadcast_to(~land, turbidity.shape)
    with warnings.catch_warnings():
        # Few readers support optional types, but the demo shows them, so do not warn.
        warnings.simplefilter("ignore")
        on_land = np.ma.MaskedArray(turbidity, mask=missing)
        root.create_array("turbidity_on_land", data=on_land, chunks=(1, 1080, 2160))
        root.create_array("city", data=cities, chunks=(4096,))
