"""Hints in `import zarrow.name` for modules of other libraries that zarrow lacks.

Python asks this finder last, so it sees only modules that all other finders lack. It raises the error in
place of Python, and returns None to `importlib.util.find_spec`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from zarrow.hints.close_names import close_name


class _Hints:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Raise a ModuleNotFoundError that says what to type, for a module below zarrow or zarrow.api."""
        package, _, name = fullname.rpartition(".")
        if (
            package not in ("zarrow", "zarrow.api")
            or sys._getframe(2).f_code.co_name != "_find_and_load_unlocked"
        ):
            return
        if hint := _of_module(name):
            raise ModuleNotFoundError(f"No module named {fullname!r}: {hint}", name=fullname)


def add_finder() -> None:
    """Make `import` say what to type."""
    if not any(isinstance(finder, _Hints) for finder in sys.meta_path):
        sys.meta_path.append(_Hints())


def _of_module(name: str) -> str:
    from zarrow import __all__, _zarrow
    from zarrow.hints.close_names import to_type
    from zarrow.hints.familiar_module_names import MODULE, MODULES

    if name in MODULES:
        return to_type(MODULES[name])
    if name in __all__:
        return f"type from zarrow import {name}"
    package = _zarrow._import("zarrow")
    modules = [*package._MODULES, "codecs", "errors", "torch", "jax"]
    return close_name(name, modules) or (to_type(MODULE[name]) if name in MODULE else "")
