"""All rows that read local files."""

from benches.programs import program_rows
from benches.row import Row
from benches.rows import all_rows
from benches.scale import Scale
from benches.sweep import sweep_rows


def every_row(scale: Scale) -> list[Row]:
    """Return the rows of the report, of the sweep and of the programs at this scale."""
    return [*all_rows(scale), *sweep_rows(), *program_rows(scale)]
