"""Messages for unknown options of functions: what to type, with the values that were given.

1. All unknown options of a call are in one message, so that the call needs one change.
2. A text of `zarrow.hints.familiar_options` such as `attributes=...` stands for the same value under another
   name: a short value of Python is shown in place of the dots.
3. Options of compression are answered together, by `zarrow.hints.compression`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from zarrow.hints.close_names import close_name, to_type

_MOST_LETTERS = 60


def for_option(name: str, known: Collection[str], whose: str) -> str:
    """Return the message for an unknown option, with the replacement."""
    return for_options({name: ...}, known, whose)


def for_options(unknown: Mapping[str, Any], known: Collection[str], whose: str) -> str:
    """Return the message for unknown options, with their replacements; `...` is a value that is not shown."""
    from zarrow.hints.compression import for_compression
    from zarrow.hints.familiar_options import CALLS, OPTIONS

    replaced, codec = for_compression(unknown) if "compressors" in known else ([], "")
    texts = {**OPTIONS, **CALLS.get(whose.removeprefix("of "), {})}
    hints: dict[str, str] = {}
    for name, value in unknown.items():
        if codec and name in replaced:
            hints[", ".join(map(repr, replaced))] = f"type {codec}"
        elif name in texts:
            hints[repr(name)] = to_type(_with_value(texts[name], value))
        else:
            hints[repr(name)] = close_name(name, known)
    if known and "" in hints.values():
        last = [name for name, hint in hints.items() if not hint][-1]
        hints[last] = f"its options are {', '.join(name for name in known if name != 'self')}"
    parts = [f"{name}: {hint}" if hint else name for name, hint in hints.items()]
    parts[0] = parts[0].replace(": ", f" {whose}: ", 1) if ": " in parts[0] else f"{parts[0]} {whose}"
    return f"unknown option{'s' if len(unknown) > 1 else ''} {'; '.join(parts)}"


def _with_value(text: str, value: Any) -> str:
    """Show the value in a text such as `attributes=...` (step 2)."""
    name, dots, rest = text.partition("=...")
    if value is ... or not name.isidentifier() or dots == "" or rest:
        return text
    is_plain = isinstance(value, str | int | float | tuple | list | dict)
    shown = repr(value) if is_plain else ""
    return f"{name}={shown}" if 0 < len(shown) <= _MOST_LETTERS else text
