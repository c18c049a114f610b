"""The data of the remote rows, written once by zarr-python."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec

SIDE = 256  # of the cube that the crops are read from
SHARD_SIDE = 128
CROP = 64
CROPS = 20
COORDINATES = 12
NODES = 200
MEMBERS = 60  # of the listed group


@dataclass(frozen=True)
class ArraySet:
    """An array of float32."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None = None
    compressor: Any = None

    @property
    def nbytes(self) -> int:
        """Count the bytes of the elements."""
        return int(np.prod(self.shape)) * 4

    @property
    def shards_of_crops(self) -> int:
        """Count the shards that the crops touch, separately for each crop."""
        boxes = [
            [(part.start // SHARD_SIDE, (part.stop - 1) // SHARD_SIDE) for part in crop] for crop in crops()
        ]
        return int(sum(np.prod([last - first + 1 for first, last in box]) for box in boxes))

    def create(self, store: Any, **options: Any) -> Any:
        """Create the empty array with zarr-python."""
        layout: dict[str, Any] = {"shape": self.shape, "chunks": self.chunks, "shards": self.shards}
        return zarr.create_array(
            store, **layout, dtype="float32", compressors=self.compressor, filters=None, **options
        )

    def values(self) -> NDArray[np.float32]:
        """Make waves with some noise, rounded to three digits like measurements."""
        count = int(np.prod(self.shape))
        waves = np.sin(np.arange(count, dtype=np.float32) / 50) * 100
        waves += np.random.default_rng(3).normal(0, 0.1, count).astype(np.float32)
        return np.round(waves, 3).reshape(self.shape).astype(np.float32)


KIB, MIB = 1 << 8, 1 << 18  # elements of float32
ZSTD = ZstdCodec(level=1)
SETS = {
    "small": ArraySet((256 * 64 * KIB,), (64 * KIB,)),
    "tiny": ArraySet((2048 * 16 * KIB,), (16 * KIB,)),
    "raw": ArraySet((256 * MIB,), (MIB,)),
    "large": ArraySet((512 * MIB,), (4 * MIB,)),
    "shards": ArraySet((64 * 16 * 16 * KIB,), (16 * KIB,), (16 * 16 * KIB,)),
    "cube": ArraySet((SIDE,) * 3, (32,) * 3, (SHARD_SIDE,) * 3, ZSTD),
    "write-raw": ArraySet((512 * MIB,), (4 * MIB,)),
    "write-zstd": ArraySet((512 * MIB,), (4 * MIB,), None, ZSTD),
    "write-late": ArraySet((256, 64 * KIB), (1, 64 * KIB)),
    "write-late-parts": ArraySet((256, 64 * KIB), (1, 64 * KIB)),
    "write-sharded": ArraySet((512 * MIB,), (MIB,), (64 * MIB,), ZSTD),
}
"""The arrays; the targets of writes are made by their rows."""


def crops() -> list[tuple[slice, ...]]:
    """Return cubes at random places."""
    starts = np.random.default_rng(2).integers(0, SIDE - CROP, (CROPS, 3)).tolist()
    return [tuple(slice(start, start + CROP) for start in corner) for corner in starts]


def write(folder: Path, names: set[str]) -> None:
    """Write the missing sets."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(names):
        done = folder / f"{name}.done"
        if done.exists() or name.startswith("write-"):
            continue
        print(f"writing {name}", flush=True)
        path = folder / f"{name}.zarr"
        shutil.rmtree(path, ignore_errors=True)
        writer(name)(path)
        done.touch()


def writer(name: str) -> Callable[[Path], None]:
    """Return a function that writes the named set."""
    members = {"members": MEMBERS, "nodes": NODES}
    if name in members:
        return lambda path: write_members(path, members[name])
    return {"coordinates": write_coordinates, "tree": write_tree}.get(
        name, lambda path: write_array(path, name)
    )


def write_members(path: Path, count: int) -> None:
    """Write a group of arrays of one chunk each."""
    group = zarr.create_group(path)
    for number in range(count):
        group.create_array(f"a{number}", data=np.arange(1000.0) + number, chunks=(1000,))


def write_array(path: Path, name: str) -> None:
    """Write an array."""
    SETS[name].create(path)[...] = SETS[name].values()


def write_coordinates(path: Path) -> None:
    """Write a group of coordinates, each of one chunk, as xarray does, without consolidated metadata."""
    group = zarr.create_group(path)
    for number in range(COORDINATES):
        data = np.linspace(number, number + 1, 1000)
        group.create_array(f"coordinate{number}", data=data, dimension_names=[f"coordinate{number}"])


def write_tree(path: Path) -> None:
    """Write groups of arrays with consolidated metadata."""
    root = zarr.create_group(path)
    groups = 10
    for number in range(groups):
        group = root.create_group(f"group{number}")
        for member in range(NODES // groups - 1):
            group.create_array(f"array{member}", shape=(1000, 1000), chunks=(100, 100), dtype="float32")
    zarr.consolidate_metadata(path)
