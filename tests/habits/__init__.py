"""Code that people type from habit: each line works, or fails with a message that says what to type.

1. A file `*.txt` has the habits of one library's users. Its first line names the library.
2. `code  =>  value` works: the last expression has that value, arrays as lists.
3. `code  !!  text` fails, or warns, and the message contains that text.
4. `code  =>  file` is a habit of Rust: the code is in a program or page that `cargo test` runs.
5. `make habits` generates `docs/habits.md`, by library, `docs/habits-by-field.md` and
   `docs/habits-by-profession.md`, by kind of user, from these lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LIBRARIES = (
    "numpy",
    "python",
    "pandas",
    "polars",
    "arrow",
    "torch",
    "jax",
    "xarray",
    "science",
    "matplotlib",
    "duckdb",
    "h5py",
    "zarr-python",
)
FIELDS = ("learning", "earth", "imaging", "tables", "systems")
PROFESSIONS = ("microscopy", "climate", "biology", "training", "pipelines")
SOURCES = LIBRARIES + FIELDS + PROFESSIONS
PAGES = {"habits.md": LIBRARIES, "habits-by-field.md": FIELDS, "habits-by-profession.md": PROFESSIONS}


@dataclass(frozen=True)
class Habit:
    """One line of the table."""

    source: str
    code: str
    value: str | None
    message: str | None

    @property
    def name(self) -> str:
        return f"{self.source}: {self.code}"


def title(source: str) -> str:
    return (FOLDER / f"{source}.txt").read_text(encoding="utf-8").splitlines()[0]


def habits(source: str) -> list[Habit]:
    """Return the habits of one file."""
    found = []
    for line in (FOLDER / f"{source}.txt").read_text(encoding="utf-8").splitlines()[1:]:
        if "  =>  " in line:
            code, value = line.split("  =>  ")
            found.append(Habit(source, code, value, None))
        elif line:
            code, message = line.split("  !!  ")
            found.append(Habit(source, code, None, message))
    return found


def page(name: str) -> str:
    """Return the text of a page in `docs`."""
    lines = [
        "# Habits by field" if name == "habits-by-field.md" else "# Habits by profession",
        "",
        "The same as [habits.md](habits.md), by kind of user instead of library; the names are the same.",
    ]
    if name == "habits.md":
        lines = [(FOLDER / "introduction.md").read_text(encoding="utf-8").rstrip()]
    for source in PAGES[name]:
        lines += ["", f"## {title(source)}", "", "| You type | You get |", "|---|---|"]
        for habit in habits(source):
            code = habit.code.replace("|", "\\|")
            result = f"`{habit.value}`" if habit.message is None else f"a message that says `{habit.message}`"
            lines.append(f"| `{code}` | {result.replace('|', chr(92) + '|')} |")
    if name == "habits.md":
        lines += ["", "## Rust", "", "| You type | Tested in |", "|---|---|"]
        lines += [f"| `{habit.code}` | `{habit.value}` |" for habit in habits("rust")]
    return "\n".join(lines) + "\n"


def plain(value: Any) -> Any:
    """Convert arrays and columns of any library to lists, and scalars to Python's."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return [plain(item) for item in value]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(value, method):
            return getattr(value, method)()
    if type(value).__module__.startswith("xarray"):
        return value.values.tolist()
    return value
