"""The size of a run's data."""

from dataclasses import dataclass
from pathlib import Path

SMALL_READS = 1_000
SMALL_CHUNK = 4_096  # elements of float32: 16 KiB
COUNTED_CHUNK = 16  # elements along each axis of the counted chunks
COLUMNS = 16  # of the table
PERIOD = 99_991  # strings until they repeat


@dataclass(frozen=True)
class Scale:
    """Sizes of the data sets, and their folder."""

    name: str
    side: int
    """Elements along each axis of the main array of float32."""
    table_rows: int
    strings: int
    sides: tuple[int, ...]
    """Elements along each axis of the arrays from small to large."""
    chunk_counts: tuple[int, ...]
    """Numbers of chunks, from few to many: squares."""

    def folder(self, root: Path) -> Path:
        """Return the folder of the data, below the folder for all data."""
        return root / f"data-{'quick' if self.name == 'quick' else 'normal'}"

    @property
    def transformed(self) -> int:
        """Return the elements along the axes but the first of the arrays that programs transform."""
        return {"quick": 128, "normal": 512, "full": 1024}[self.name]

    @property
    def mebibytes(self) -> int:
        """Return the size of the main array."""
        return self.side**3 * 4 >> 20


def string_bytes(count: int) -> int:
    """Return the bytes of the strings in Arrow's form, including 64-bit offsets."""
    digits = sum(len(str(number)) for number in range(PERIOD)) / PERIOD
    return int(count * (8 + len("name-") + digits))


NORMAL = Scale("normal", 512, 1_000_000, 10_000_000, (64, 128, 256, 512), (1, 100, 10_000, 1_000_000))
FULL = Scale("full", 512, 1_000_000, 10_000_000, (64, 128, 256, 512, 1024), (1, 100, 10_000, 1_000_000))
QUICK = Scale("quick", 256, 100_000, 200_000, (64, 128, 256), (1, 100, 2_500))
SCALES = {scale.name: scale for scale in (NORMAL, FULL, QUICK)}
