"""The real data of the demo, read from the files that packages of the registry carry.

- `pvlib`: the Linke turbidity of the air, month by month (12 x 2160 x 4320, a grid of 1/12 of a degree).
- `global-land-mask`: where there is land (21600 x 43200, a grid of 1/120 of a degree).
- `airportsdata`: names, cities and places of the airports of the world.

Only the files are read: none of the packages is imported.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TURBIDITY_SHAPE = (12, 2160, 4320)
LAND_SHAPE = (21600, 43200)
# The turbidity is stored as an integer, twenty to the unit.
TURBIDITY_UNIT = np.float32(1 / 20)

_TURBIDITY = Path("pvlib/data/LinkeTurbidities.h5")
_LAND = Path("global_land_mask/globe_combined_mask_compressed.npz")
_AIRPORTS = Path("airportsdata/airports.csv")


@dataclass(frozen=True)
class Airports:
    """The airports, by columns; a city is `None` for an airport without one."""

    names: list[str]
    cities: list[str | None]
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]


def missing(folder: Path, *others: Path) -> list[Path]:
    """List which of the folder's data files, and of the other files, are missing."""
    needed = [folder / file for file in (_TURBIDITY, _LAND, _AIRPORTS)]
    return [file for file in (*needed, *others) if not file.is_file()]


def read_turbidity(folder: Path) -> NDArray[np.uint8]:
    """Read the turbidity, (month, latitude from north to south, longitude from west to east)."""
    import h5py

    with h5py.File(folder / _TURBIDITY) as file:
        by_place = file["LinkeTurbidity"][:]
    return np.ascontiguousarray(np.moveaxis(by_place, 2, 0), dtype=np.uint8)


def read_land(folder: Path) -> NDArray[np.bool_]:
    """Read the land mask (latitude from north to south, longitude from west to east)."""
    with np.load(folder / _LAND) as file:
        sea: NDArray[np.bool_] = file["mask"]
    return np.logical_not(sea, out=sea)


def read_airports(folder: Path) -> Airports:
    """Read the airports of the world."""
    with (folder / _AIRPORTS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Airports(
        names=[row["name"] for row in rows],
        cities=[row["city"] or None for row in rows],
        latitude=np.array([row["lat"] for row in rows], dtype=np.float64),
        longitude=np.array([row["lon"] for row in rows], dtype=np.float64),
    )


def on_turbidity_grid(land: Any) -> Any:
    """Look at the land mask in the middle of every cell of the turbidity's coarser grid."""
    step = LAND_SHAPE[0] // TURBIDITY_SHAPE[1]
    return land[step // 2 :: step, step // 2 :: step]
