"""Writes and reads the page. Equal rows are merged, and each reason is listed once.

1. `render` turns verdicts into a table, with reasons numbered in order of appearance.
2. `load` reads the page back, to keep the column of PyTorch, which is installed separately.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from data_types.cells import COLUMNS, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "data-types.md"
HEAD = """# Data types

Support for each Zarr data type in each protocol. Tests generate this page (`make data-types`): each cell
passes an array of the type to the consumer, and compares values and addresses (`tests/data_types`).

- **zero copy**: the consumer shares the array's memory, and keeps it alive. "as" gives the consumer's name of
  the elements if it has no such type.
- **copies**: the values arrive in other memory.
- **refused**: an exception with the reason, before any data are shared.
- **yes**: read or written. Reading is *zero copy* if an uncompressed chunk can be mapped (`mmap=True`).

*out* columns export a decoded array (`numpy()`, `memoryview()`, `__dlpack__()`, `torch()`, `jax()`,
`__arrow_c_array__()`, `polars()`), *in* columns import it (`zarrow.asarray`, `from_dlpack` and `from_arrow`).
NumPy's types for bfloat16, floats of 8 bits and fewer, integers of 2 and 4 bits and complex numbers of 16-bit
floats come from `ml_dtypes`; a complex number of smaller floats is a structure of `real` and `imag`. Numbers
of less than 8 bits take a byte each in memory. JAX narrows 64-bit types by default, which `jax()` refuses;
this page sets `jax_enable_x64`. NaT is null in Arrow and polars. Each row `optional ...` represents the
optional types with the same behaviour.
"""
Rows = dict[str, dict[str, Verdict]]


def render(rows: Rows) -> str:
    """Return the text of the page (step 1)."""
    reasons: list[str] = []

    def cell(verdict: Verdict) -> str:
        if not verdict.reason:
            return verdict.word
        if verdict.reason not in reasons:
            reasons.append(verdict.reason)
        return f"{verdict.word} ({reasons.index(verdict.reason) + 1})"

    lines = [HEAD, "| Data type | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for verdicts, names in itertools.groupby(
        rows, lambda name: tuple(rows[name][column] for column in COLUMNS)
    ):
        lines.append(
            "| " + ", ".join(f"`{name}`" for name in names) + " | " + " | ".join(map(cell, verdicts)) + " |"
        )
    lines += ["", "## Reasons", ""]
    lines += [f"{number}. because {reason}." for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines) + "\n"


def load(text: str) -> Rows:
    """Return the rows of a page (step 2)."""
    reasons = dict(re.findall(r"^(\d+)\. because (.*)\.$", text, re.MULTILINE))

    def verdict(cell: str) -> Verdict:
        match = re.fullmatch(r"(.*) \((\d+)\)", cell)
        return Verdict(match[1], reasons[match[2]]) if match else Verdict(cell)

    rows: Rows = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            names, *cells = line.strip("| ").split(" | ")
            verdicts = dict(zip(COLUMNS, map(verdict, cells), strict=True))
            rows |= dict.fromkeys(re.findall(r"`([^`]*)`", names), verdicts)
    return rows
