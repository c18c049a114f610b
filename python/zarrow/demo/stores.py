"""Writes the demo's stores: by zarr-python, and the two arrays with missing values by zarrs.

1. Stores from an earlier run with the same code are used again.
2. zarr-python writes `world.zarr` (Zarr v3) and `world_v2.zarr`, in several codecs, sharded and not.
3. The values of the masked arrays go to `source/` as plain files, against which the demo checks itself.
4. The Rust example `write_masked` turns them into `masked.zarr`, for zarr-python has no optional data type.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrow.demo import files


@dataclass(frozen=True)
class Stores:
    """Where the demo's stores are."""

    folder: Path

    @property
    def world(self) -> Path:
        """The hierarchy that zarr-python wrote in Zarr v3."""
        return self.folder / "world.zarr"

    @property
    def world_v2(self) -> Path:
        """The hierarchy that zarr-python wrote in Zarr v2."""
        return self.folder / "world_v2.zarr"

    @property
    def masked(self) -> Path:
        """The arrays with missing values, written by zarrs."""
        return self.folder / "masked.zarr"

    @property
    def source(self) -> Path:
        """The values of the masked arrays, in plain files."""
        return self.folder / "source"

    def source_turbidity(self) -> np.ma.MaskedArray[Any, Any]:
        """Return the turbidity on land as the masked array should hold it, straight from the plain files."""
        values = np.fromfile(self.source / "turbidity.bin", dtype=np.uint8).reshape(files.TURBIDITY_SHAPE)
        land = np.fromfile(self.source / "land.bin", dtype=np.bool_).reshape(files.TURBIDITY_SHAPE[1:])
        return np.ma.MaskedArray(values, mask=np.broadcast_to(~land, values.shape))

    def source_cities(self) -> list[str | None]:
        """Return the cities as the masked array should hold them, straight from the plain file."""
        cities: list[str | None] = json.loads((self.source / "cities.json").read_text(encoding="utf-8"))
        return cities


def prepare(packages: Path, folder: Path, masked_writer: Path) -> Stores:
    """Write the stores into `folder` from the packages' files unless they exist.

    Raises
    ------
    FileNotFoundError
        A data file or the writer of the masked arrays is not there.
    """
    stores = Stores(folder)
    mark = folder / "written"
    key = _key()
    if mark.is_file() and mark.read_text() == key:
        return stores
    for path in files.missing(packages, masked_writer):
        raise FileNotFoundError(f"{path} is not there; `make demo` in the source tree sets everything up")
    start = time.perf_counter()
    print("zarr-python writes the stores, once (the land mask alone is 933 MB) ...", flush=True)
    for path in (stores.world, stores.world_v2, stores.masked, stores.source):
        shutil.rmtree(path, ignore_errors=True)
    stores.source.mkdir(parents=True)
    turbidity = files.read_turbidity(packages)
    land = files.read_land(packages)
    airports = files.read_airports(packages)
    _write_world(stores.world, turbidity, land, airports)
    _write_world_v2(stores.world_v2, turbidity)
    turbidity.tofile(stores.source / "turbidity.bin")
    files.on_turbidity_grid(land).tofile(stores.source / "land.bin")
    (stores.source / "cities.json").write_text(json.dumps(airports.cities), encoding="utf-8")
    subprocess.run([masked_writer, stores.source, stores.masked], check=True)
    mark.write_text(key)
    print(f"  done in {time.perf_counter() - start:.0f} s\n", flush=True)
    return stores


def _key() -> str:
    sources = [Path(module).read_bytes() for module in (__file__, files.__file__)]
    return hashlib.sha256(b"".join(sources)).hexdigest()


def _write_world(
    path: Path,
    turbidity: NDArray[np.uint8],
    land: NDArray[np.bool_],
    airports: files.Airports,
) -> None:
    import zarr
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    zstd, place = ZstdCodec(level=1), ("month", "latitude", "longitude")
    real = turbidity * files.TURBIDITY_UNIT
    root = zarr.create_group(path, zarr_format=3)

    def write(name: str, values: Any, names: tuple[str, ...], **layout: Any) -> None:
        root.create_array(name, data=values, dimension_names=names, **layout)

    write("turbidity/zstd", real, place, chunks=(1, 540, 1080), compressors=zstd)
    write("turbidity/sharded", real, place, shards=(1, 1080, 2160), chunks=(1, 270, 540), compressors=zstd)
    counts, chunks = turbidity, (1, 1080, 2160)
    write("turbidity_counts/uncompressed", counts, place, chunks=chunks, compressors=None)
    write("turbidity_counts/gzip", counts, place, chunks=chunks, compressors=GzipCodec(level=1))
    blosc = BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle")
    write("turbidity_counts/blosc_lz4", counts, place, chunks=chunks, compressors=blosc)
    write("land_mask", land, place[1:], chunks=(2160, 4320), compressors=zstd)
    write(
        "airports/name", np.array(airports.names, dtype=np.dtypes.StringDType()), ("airport",), chunks=(4096,)
    )
    write("airports/latitude", airports.latitude, ("airport",), chunks=(8192,))
    write("airports/longitude", airports.longitude, ("airport",), chunks=(8192,))
    _consolidate(path)


def _write_world_v2(path: Path, turbidity: NDArray[np.uint8]) -> None:
    import numcodecs
    import zarr

    root = zarr.create_group(path, zarr_format=2)
    compressor = numcodecs.Zlib(level=1)
    root.create_array("turbidity_counts", data=turbidity, chunks=(1, 1080, 2160), compressors=compressor)
    _consolidate(path)


def _consolidate(path: Path) -> None:
    import zarr

    with warnings.catch_warnings():
        # zarr-python warns that its consolidated metadata of v3 are in no specification yet.
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(path)
