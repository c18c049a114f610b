"""The rows of programs: zarr-python and xarray on their own code, on other pipelines, and on zarrow.

`make bench FLAGS=--programs` runs them.
"""

from benches.programs.data import is_set, writer
from benches.programs.rows import program_rows

__all__ = ["is_set", "program_rows", "writer"]
