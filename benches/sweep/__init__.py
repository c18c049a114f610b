"""The sweep: about a hundred short rows, to detect performance cliffs."""

from benches.sweep.data import is_set, writer
from benches.sweep.rows import sweep_rows
from benches.sweep.table import write_table

__all__ = ["is_set", "sweep_rows", "write_table", "writer"]
