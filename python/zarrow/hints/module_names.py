"""Hints for unknown names of modules, as attributes and in `from zarrow import name`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from zarrow import _zarrow, codecs, errors
from zarrow.hints.close_names import close_name
from zarrow.hints.unknown_names import to_type


def add_to_modules() -> None:
    """Give the modules that zarrow imports at once their `__getattr__`; others define it themselves."""
    for module in (codecs, errors):
        vars(module)["__getattr__"] = getattr_of(module.__name__)


def getattr_of(module: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module: it raises the error for an unknown name."""

    def missing(name: str) -> Any:
        ask = _of_package if module == "zarrow" else _of_module
        hint = "" if name.startswith("_") else ask(name, module)
        # Python falls back to the module of that name, which may be half imported.
        if hint and _is_imported() and f"{module}.{name}" not in sys.modules:
            raise ImportError(f"cannot import name {name!r} from {module!r}: {hint}", name=module)
        text = f"module {module!r} has no attribute {name!r}"
        raise AttributeError(f"{text}: {hint}" if hint else text, name=name)

    return missing


def _is_imported() -> bool:
    """Return whether `from module import name` asks: it would drop the text of an `AttributeError`."""
    from opcode import opmap

    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_name in ("_is_imported", "missing", "__getattr__"):
        frame = frame.f_back
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _of_package(name: str, module: str) -> str:
    """Return what to type for an unknown name of `zarrow`."""
    from zarrow.hints.familiar_modules import MODULE, SUBMODULES
    from zarrow.hints.names_of_others import TORCH_TENSOR

    names = _zarrow._import(module).__dir__()
    blocking = name.removesuffix("_async")
    if name in MODULE:
        return to_type(MODULE[name])
    if name != blocking and blocking in names:
        return f"type await asyncio.to_thread(zarrow.{blocking}, ...)"
    if text := close_name(name, names):
        return text
    if codec := SUBMODULES["zarrow.codecs"].get(name):
        return to_type(codec)
    if callable(getattr(_zarrow._import("numpy"), name, None)):
        return f"type numpy.{name}, which takes zarrow's arrays"
    return f"type array[...].torch().{name}" if name in TORCH_TENSOR else ""


def _of_module(name: str, module: str) -> str:
    """Return what to type for an unknown name of a module below `zarrow`."""
    from zarrow.hints.familiar_modules import MODULE, SUBMODULES

    found, package = sys.modules[module], _zarrow._import("zarrow")
    if text := SUBMODULES.get(module, {}).get(name):
        return to_type(text)
    if text := close_name(name, getattr(found, "__all__", None) or vars(found)):
        return text
    if name in package.__all__:
        return f"type zarrow.{name}"
    return to_type(MODULE[name]) if name in MODULE else ""
