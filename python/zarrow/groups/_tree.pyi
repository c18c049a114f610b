"""The class Tree."""

from typing import final

@final
class Tree:
    """A drawing of a hierarchy, which prompts and notebooks show directly."""
