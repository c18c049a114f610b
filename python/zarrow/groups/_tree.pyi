"""The class Tree."""

from typing import final

@final
class Tree:
    """The drawing of a hierarchy, which a prompt and a notebook show as it is."""
