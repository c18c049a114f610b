"""`zarrow demo`: real arrays of all four layouts travel from Zarr stores into the array libraries.

1. Six lines of user code, shown as they run (with PyTorch).
2. The whole 933 MB land mask, read beside zarr-python.
3. A map of the world, written from the very tensor.
4. The table: what was read, how it was handed over, what was copied, and how long zarr-python takes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

LIBRARIES = ("numpy", "torch", "jax", "arrow", "polars")
_PACKAGES = {"arrow": "pyarrow"}


def installed() -> list[str]:
    """List those of the demo's libraries that can be imported."""
    return [name for name in LIBRARIES if importlib.util.find_spec(_PACKAGES.get(name, name))]


def run(data: Path, folder: Path, masked_writer: Path, libraries: Sequence[str]) -> None:
    """Prepare the stores, unless they are there, and show the demo.

    Parameters
    ----------
    data
        Where the packages that carry the real data are unpacked.
    folder
        Where the stores and the map go; kept for the next run.
    masked_writer
        The built Rust example `write_masked`, which writes the arrays with missing values.
    libraries
        The libraries to hand arrays to, of `LIBRARIES`.

    Raises
    ------
    FileNotFoundError
        The data or the writer is not there.
    """
    from zarrow.demo import land_mask, six_lines, stores, table, world_map

    written = stores.prepare(data, folder, masked_writer)
    if "torch" in libraries:
        _heading("Six lines: one memory, seen by zarrow, PyTorch and NumPy")
        six_lines.show(written)
    _heading("The land mask of the world")
    land_mask.show(written)
    _heading("A map from the tensor")
    world_map.show(written)
    _heading(f"What was copied on the way to {', '.join(libraries)}")
    table.show(written, libraries)


def _heading(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)
