"""Tables of hints: what to type, each with the names that it replaces."""

from __future__ import annotations


def by_name(texts: dict[str, str]) -> dict[str, str]:
    """Return the text for each of the names, which spaces separate; `{name}` in it stands for the name."""
    return {name: text.replace("{name}", name) for text, names in texts.items() for name in names.split()}
