"""`zarrow demo`: arrays of all four layouts travel from Zarr stores into the array libraries.

1. Six lines of user code, shown as they run.
2. The whole land mask (933 MB of the real one), read beside zarr-python.
3. A map of the world, written from the very tensor.
4. The table: each read, its handover, what was copied, and how long zarr-python takes.

The data are real where the packages are given that carry them, else invented. zarr-python, Pillow and the
libraries that arrays are handed to may be missing: what needs them is left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

LIBRARIES = ("numpy", "torch", "jax", "arrow", "polars")
_PACKAGES = {"arrow": "pyarrow"}


def installed() -> list[str]:
    """List the installed libraries that the demo uses."""
    return [name for name in LIBRARIES if importlib.util.find_spec(_PACKAGES.get(name, name))]


def run(data: Path | None, folder: Path, masked_writer: Path | None, libraries: Sequence[str]) -> None:
    """Prepare the stores unless they exist, and show the demo.

    Parameters
    ----------
    data
        Where the packages that carry the real data are unpacked; None for an invented world.
    folder
        Where the stores and the map go; kept for the next run.
    masked_writer
        With `data`: the built Rust example `write_masked`, which writes the arrays with missing values.
    libraries
        The libraries to hand arrays to, of `LIBRARIES`.

    Raises
    ------
    FileNotFoundError
        The data or the writer is not there.
    """
    from zarrow.demo import invented_world, land_mask, six_lines, stores, table, world_map

    if data is None or masked_writer is None:
        written = invented_world.prepare(folder)
    else:
        written = stores.prepare(data, folder, masked_writer)
    _heading("Six lines: one memory, seen by several libraries")
    six_lines.show(written, libraries)
    _heading("The land mask of the world")
    land_mask.show(written)
    _heading("A map from the tensor")
    if importlib.util.find_spec("PIL"):
        world_map.show(written)
    else:
        print("left out: pip install pillow")
    _heading(f"What was copied on the way to {', '.join(libraries)}")
    table.show(written, libraries)


def _heading(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)
