"""Hints for unknown names of modules, as attributes and in `from zarrow import name`."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from typing import Any

from zarrow import _zarrow, api, codecs, errors
from zarrow.api import asynchronous
from zarrow.hints.close_names import close_name, to_type


def add_to_modules() -> None:
    """Give the modules that zarrow imports at once their `__getattr__`; others define it themselves."""
    for module in (api, asynchronous, codecs, errors):
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
    names = _zarrow._import(module).__dir__()
    blocking = name.removesuffix("_async")
    if text := _of_tables(name):
        return text
    if name != blocking and blocking in names:
        return f"type await asyncio.to_thread(zarrow.{blocking}, ...)"
    from zarrow.hints.familiar_loading import for_class
    from zarrow.hints.functions_by_verb import for_function

    return for_function(name) or for_class(name) or close_name(name, names) or _of_others(name)


def _of_module(name: str, module: str) -> str:
    """Return what to type for an unknown name of a module below `zarrow`."""
    from zarrow.hints.familiar_module_names import SUBMODULES

    if text := SUBMODULES.get(module, {}).get(name):
        return to_type(text)
    if name in _zarrow._import("zarrow").__all__:
        return f"type zarrow.{name}"
    if text := _of_library(name, module):
        return text
    from zarrow.hints.familiar_loading import for_class

    if text := for_class(name):
        return text
    found = sys.modules[module]
    if text := close_name(name, getattr(found, "__all__", None) or vars(found)):
        return text
    return _of_tables(name) or _of_others(name)


def _of_tables(name: str) -> str:
    from zarrow.hints.familiar_module_names import MODULE, MODULES

    return to_type(MODULE.get(name) or MODULES[name]) if name in MODULE or name in MODULES else ""


# Libraries that are searched for a name if the program has imported them.
_IMPORTED = ("polars", "pyarrow", "pyarrow.compute", "anndata", "duckdb", "h5py", "tensorstore", "datasets")


def _of_others(name: str) -> str:
    """Return what to type for a codec, or a name of NumPy, PyTorch, pandas and so on."""
    from zarrow.hints import functions_of_others as others
    from zarrow.hints.familiar_module_names import SUBMODULES
    from zarrow.hints.names_of_others import TORCH_TENSOR

    if codec := SUBMODULES["zarrow.codecs"].get(name):
        return to_type(codec)
    if text := _of_numpy(name):
        return text
    if name in TORCH_TENSOR:
        return f"type array[...].torch().{name}"
    functions = {
        "pandas": others.PANDAS,
        "polars": others.POLARS,
        "pyarrow": others.ARROW,
        "xarray": others.XARRAY,
        "torch": others.TORCH,
        "jax": others.JAX,
    }
    found = [library for library, names in functions.items() if name in names]
    if found:
        return f"type {min(found, key=lambda library: library not in sys.modules)}.{name}"
    return next((f"type {one}.{name}" for one in _IMPORTED if hasattr(sys.modules.get(one), name)), "")


def _of_numpy(name: str) -> str:
    np = _zarrow._import("numpy")
    if name not in np.__all__:
        return ""
    found = getattr(np, name)
    if isinstance(found, type):
        return f'type numpy.{name}, or "{name}"' if issubclass(found, np.generic) else f"type numpy.{name}"
    return f"type numpy.{name}" + (", which takes zarrow's arrays" if callable(found) else "")


# Libraries that modules serve, each with the way to its arrays.
_LIBRARIES = {
    "zarrow.torch": (("torch",), "array[...].torch()"),
    "zarrow.jax": (("jax", "jax.numpy"), "array[...].jax()"),
    "zarrow.dask": (("dask.array", "dask"), "array.to_dask()"),
    "zarrow.xarray": (("xarray",), "zarrow.xarray.open_zarr(path)"),
}
_CLASSES = {"zarrow.torch": "Tensor", "zarrow.dask": "Array", "zarrow.xarray": "Dataset"}


def _of_library(name: str, module: str) -> str:
    """Return what to type for a name of the library that a module below `zarrow` serves."""
    import inspect

    libraries, way = _LIBRARIES.get(module, ((), ""))
    for library in libraries:
        with contextlib.suppress(ImportError):
            owner = importlib.import_module(library)
            if hasattr(owner, name):
                is_of_arrays = inspect.isroutine(getattr(owner, name))
                return f"type {library}.{name}" + (f", which takes {way}" if is_of_arrays else "")
            if hasattr(getattr(owner, _CLASSES.get(module, ""), None), name):
                return f"type {way}.{name}"
    return ""
