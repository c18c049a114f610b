"""The sweep: some hundred short rows beside the main ones, in which a cliff would show."""

from benches.sweep.data import is_set, writer
from benches.sweep.rows import sweep_rows
from benches.sweep.table import write_table

__all__ = ["is_set", "sweep_rows", "write_table", "writer"]
