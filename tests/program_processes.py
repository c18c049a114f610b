"""Runs zarr-python on our pipeline, xarray on our engine, and zarrow in many processes at once.

    python program_processes.py write FOLDER SEED
    python program_processes.py read FOLDER LIBRARY METHOD

`PIPELINE` in the environment selects the pipeline. The exit status is 0 if all elements are right.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import zarrow

PIPELINE = {"ZARR_CODEC_PIPELINE__PATH": "zarrow.zarr_python.CodecPipeline"}
# Each process writes a row of the only shard, some elements at a time: none of its writes is a whole chunk.
PROCESSES, COLUMNS, STEP, CHUNK = 8, 48, 4, (2, 8)
READERS, TASKS = 2, 4


def create(folder: Path) -> None:
    """Write metadata that each library opens; there is no shard yet."""
    group = zarr.create_group(folder)
    group.create_array(
        "values",
        shape=(PROCESSES, COLUMNS),
        shards=(PROCESSES, COLUMNS),
        chunks=CHUNK,
        dtype="i4",
        dimension_names=("row", "column"),
    )


def write_with_zarr(folder: Path, row: int, columns: slice, values: np.ndarray) -> None:
    array: Any = zarr.open_array(folder, path="values", mode="r+")
    array[row, columns] = values


def write_with_xarray(folder: Path, row: int, columns: slice, values: np.ndarray) -> None:
    import xarray

    part = xarray.Dataset({"values": (("row", "column"), values[None])})
    region = {"row": slice(row, row + 1), "column": columns}
    part.to_zarr(folder, region=region, consolidated=False)


def write_with_zarrow(folder: Path, row: int, columns: slice, values: np.ndarray) -> None:
    zarrow.open(folder, "values")[row, columns] = values


WRITERS: list[Callable[[Path, int, slice, np.ndarray], None]] = [
    write_with_zarr,
    write_with_xarray,
    write_with_zarrow,
]


def expected(row: int) -> np.ndarray:
    return np.arange(COLUMNS, dtype="i4") + 1000 * (row + 1)


def write_row(folder: Path, row: int, seed: int, start: Any) -> None:
    """Write one row in random order, each part by the next library."""
    parts = list(range(0, COLUMNS, STEP))
    random.Random(seed + row).shuffle(parts)
    start.wait(60)
    for number, begin in enumerate(parts):
        columns = slice(begin, begin + STEP)
        WRITERS[(row + number) % len(WRITERS)](folder, row, columns, expected(row)[columns])


def write(folder: Path, seed: int) -> bool:
    """Write all rows, a process for each; return whether every element is there."""
    import xarray  # noqa: F401  # the children have it then

    create(folder)
    context = multiprocessing.get_context("fork")
    start = context.Barrier(PROCESSES)
    processes = [
        context.Process(target=write_row, args=(folder, row, seed, start)) for row in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = np.asarray(zarrow.open(folder, "values")[...])
    lost = int((found != np.stack([expected(row) for row in range(PROCESSES)])).sum())
    statuses = [process.exitcode for process in processes]
    print(f"{lost} of {found.size} elements are lost; exit statuses {statuses}")
    return lost == 0 and not any(statuses)


def fill(folder: Path) -> None:
    create(folder)
    zarrow.open(folder, "values")[...] = np.stack([expected(row) for row in range(PROCESSES)])


def read_with_zarr(folder: Path) -> np.ndarray:
    array: Any = zarr.open_array(folder, path="values", mode="r")
    return np.asarray(array[...])


def read_with_xarray(folder: Path) -> np.ndarray:
    import xarray

    import zarrow.xarray

    zarrow.xarray.enable()
    return xarray.open_zarr(folder, chunks=None, consolidated=False)["values"].to_numpy()


LIBRARIES = {"zarr": read_with_zarr, "xarray": read_with_xarray}


def read_in(method: str, library: str, folder: Path) -> list[np.ndarray]:
    """Read in other processes or threads, after this process has read."""
    reader = LIBRARIES[library]
    before = reader(folder)
    if method == "dask-threads" or method == "dask-processes":
        import dask.array
        import xarray

        lazy = (
            dask.array.from_zarr(str(folder), component="values")
            if library == "zarr"
            else xarray.open_zarr(folder, chunks={}, consolidated=False)["values"]
        )
        found = [np.asarray(lazy.compute(scheduler=method.removeprefix("dask-"), num_workers=READERS))]
    else:
        with multiprocessing.get_context(method).Pool(READERS) as pool:
            found = pool.map(reader, [folder] * TASKS)
    return [before, *found, reader(folder)]


METHODS = ("fork", "spawn", "forkserver", "dask-threads", "dask-processes")


def read(folder: Path, library: str, method: str) -> bool:
    fill(folder)
    wanted = np.stack([expected(row) for row in range(PROCESSES)])
    return all(np.array_equal(found, wanted) for found in read_in(method, library, folder))


def main(what: str, folder: str, *arguments: str) -> int:
    is_right = write(Path(folder), int(arguments[0])) if what == "write" else read(Path(folder), *arguments)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
