"""Parts of hints: the name that a misspelt one may stand for, and what to type."""

from __future__ import annotations

from collections.abc import Iterable


def close_name(name: str, names: Iterable[str]) -> str:
    """Ask whether a name was misspelt; "" if none is close."""
    plain = _plain(name)
    most = 1 if len(plain) < 8 else 2
    close = [
        (distance, other)
        for other in names
        if min(len(plain), len(other)) > 2
        and not other.startswith("_")
        and (distance := _misspellings(plain, _plain(other))) <= most
    ]
    return f"did you mean {min(close)[1]}?" if close else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _misspellings(name: str, other: str) -> int:
    """Count letters that are missing, added, swapped or wrong; a wrong one of a short name counts twice."""
    wrong = 1 if len(name) > 4 else 2
    rows = [list(range(len(other) + 1))]
    for at, letter in enumerate(name):
        row = [at + 1]
        for place, theirs in enumerate(other):
            kept = rows[at][place] + (0 if letter == theirs else wrong)
            row.append(min(kept, rows[at][place + 1] + 1, row[place] + 1))
            if at and place and letter == other[place - 1] and theirs == name[at - 1]:
                row[-1] = min(row[-1], rows[at - 1][place - 1] + 1)
        rows.append(row)
    return rows[-1][-1]


def to_type(text: str) -> str:
    """Return a text of the tables as part of a message."""
    return text.removeprefix("nothing: ") if text.startswith("nothing: ") else f"type {text}"
