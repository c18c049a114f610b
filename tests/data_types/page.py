"""The page: rows that say the same together, and each reason once.

1. Verdicts become a table, its reasons numbered in the order in which they come.
2. The page can be read back, so that a column that cannot be proven (PyTorch is installed apart) is kept.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from data_types.cells import COLUMNS, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "data-types.md"
HEAD = """# Data types

What each data type of Zarr does in each protocol. This page is written by the tests that prove it: each
cell hands an array of the type over, compares the values, and compares the addresses (`tests/data_types`).
It is written anew by `make data-types`.

- **zero copy**: the consumer has the array's own memory, and keeps it alive. "as" says what the consumer
  calls the elements where it has no name for their type.
- **copies**: the values arrive in other memory.
- **refused**: an exception says why, before anything is handed over.
- **yes**: read or written. Reading is *zero copy* where an uncompressed chunk can be mapped (`mmap=True`).

*out* is what takes a decoded array (`numpy()`, `memoryview()`, `__dlpack__()`, `torch()`, `jax()`,
`__arrow_c_array__()`, `polars()`), *in* is `zarrow.asarray`, `from_dlpack` and `from_arrow`. NumPy's types
for bfloat16, floats of 8 bits and fewer, integers of 2 and 4 bits and complex numbers of 16-bit floats come
from `ml_dtypes`; a complex number of smaller floats is a structure of `real` and `imag` there. Numbers of
fewer bits than a byte have a byte each in memory. JAX narrows 64-bit types unless it is told not to
(`jax_enable_x64`), which `jax()` refuses; here it is told. NaT is null to Arrow and polars. The rows
`optional ...` stand for optional types of the types that behave like theirs.
"""
Rows = dict[str, dict[str, Verdict]]


def render(rows: Rows) -> str:
    """The text of the page (step 1)."""
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
    """The rows of a page (step 2)."""
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
