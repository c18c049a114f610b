"""The selections of the rows that read parts of an array: the same ones for every peer."""

import numpy as np

from benches.scale import COLUMNS, SMALL_CHUNK, SMALL_READS, Scale

Selection = tuple[slice, ...]
CROP = 128
CROPS = 20
BATCH = 16
TABLE_READS = 200


def each_chunk() -> list[Selection]:
    """Return one chunk after the other."""
    return [(slice(at * SMALL_CHUNK, (at + 1) * SMALL_CHUNK),) for at in range(SMALL_READS)]


def crops(scale: Scale, count: int = CROPS) -> list[Selection]:
    """Return cubes at random places."""
    starts = np.random.default_rng(2).integers(0, scale.side - CROP, (count, 3)).tolist()
    return [tuple(slice(start, start + CROP) for start in corner) for corner in starts]


def overlapping_crops(scale: Scale) -> list[Selection]:
    """Return cubes so close together that they share chunks, as augmented samples do."""
    starts = np.random.default_rng(3).integers(0, CROP // 4, (BATCH, 3)).tolist()
    return [tuple(slice(start, start + CROP) for start in corner) for corner in starts]


def table_rows(scale: Scale) -> list[Selection]:
    """Return two rows at random places."""
    starts = np.random.default_rng(4).integers(0, scale.table_rows - 2, TABLE_READS).tolist()
    return [(slice(start, start + 2), slice(0, COLUMNS)) for start in starts]
