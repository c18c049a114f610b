"""The rows of programs: zarr-python, xarray and dask on their own code, on other libraries, and on zarrow.

`make bench FLAGS=--programs` runs them; `FLAGS="--programs --full"` copies and transforms 1 GiB.
"""

from benches.programs.cells import TASKS as CELL_TASKS
from benches.programs.copies import copied
from benches.programs.data import is_set, writer
from benches.programs.geoscience import transformed
from benches.programs.graphs import graphed
from benches.programs.rows import program_rows
from benches.programs.versioned import session_read

TASKS = {
    **CELL_TASKS,
    "copied": copied,
    "graphed": graphed,
    "transformed": transformed,
    "session_read": session_read,
}

__all__ = ["TASKS", "is_set", "program_rows", "writer"]
