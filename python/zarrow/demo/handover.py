"""Hands an array to another library and looks at where the bytes are afterwards.

The expressions below are both shown and run, word for word; `a` is the array that zarrow read.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import zarrow
from zarrow.demo.counter import Growth, measure

# The name that each library has in the expressions.
MODULES = {"numpy": "np", "torch": "torch", "jax": "jax", "arrow": "pa", "polars": "pl"}
_IMPORTS = {"arrow": "pyarrow"}

_TENSOR = {
    "numpy": "np.asarray(a)",
    "torch": "torch.from_dlpack(a)",
    "jax": "jax.numpy.from_dlpack(a)",
    "arrow": "pa.array(a)",
    "polars": "pl.Series(a)",
}
_STRINGS = {"numpy": "a.numpy()", "arrow": "pa.array(a)", "polars": "pl.Series(a)"}
_EXPRESSIONS: dict[type, dict[str, str]] = {
    zarrow.Tensor: _TENSOR,
    zarrow.Variable: _STRINGS,
    zarrow.MaskedTensor: {
        "numpy": "a.numpy()",
        "torch": "torch.from_dlpack(a.data)",
        "jax": "jax.numpy.from_dlpack(a.data)",
        "arrow": "pa.array(a)",
    },
    zarrow.MaskedVariable: _STRINGS,
}

# (address, number of bytes) of one piece of memory.
Buffer = tuple[int, int]


@dataclass(frozen=True)
class Handover:
    """One array in another library: how it was shared, and the cost."""

    expression: str
    before: int
    after: int
    copied: int
    growth: Growth


def load(libraries: Sequence[str]) -> dict[str, Any]:
    """Import the libraries, under the names that the expressions use."""
    modules = {MODULES[name]: importlib.import_module(_IMPORTS.get(name, name)) for name in libraries}
    if "jax" in modules:
        # Else JAX makes 32-bit numbers of 64-bit ones, in a copy.
        modules["jax"].config.update("jax_enable_x64", True)
    return modules


def handovers(array: Any, libraries: Sequence[str], modules: dict[str, Any]) -> Iterator[Handover]:
    """Share the array with each library that supports its layout.

    Each does so twice, so that its first-use allocations are not counted.
    """
    # What earlier reads left behind must not be freed while something is measured.
    gc.collect()
    source = list(_source_buffers(array))
    for library, expression in _EXPRESSIONS[type(array)].items():
        if library not in libraries or (library == "polars" and array.ndim != 1):
            continue
        names = {**modules, "a": array}
        code = compile(expression, library, "eval")
        eval(code, names)
        result, growth = measure(partial(eval, code, names))
        after = list(_result_buffers(result))
        copied = sum(size for address, size in after if not _within(address, size, source))
        yield Handover(expression, source[0][0], _counterpart(after, source), copied, growth)


def _counterpart(after: list[Buffer], source: list[Buffer]) -> int:
    """Return the address to show: that of the values if present, else that of the largest piece."""
    shared = [address for address, _ in after if address == source[0][0]]
    return shared[0] if shared else max(after, key=lambda buffer: buffer[1])[0]


def _within(address: int, size: int, source: list[Buffer]) -> bool:
    """Say whether the memory begins in one of the source's pieces (consumers may round its size up)."""
    return size == 0 or any(start <= address < start + length for start, length in source)


def _source_buffers(array: Any) -> Iterator[Buffer]:
    """Yield the pieces of a decoded array: the values, then offsets, then the mask."""
    if isinstance(array, zarrow.Tensor):
        yield from _result_buffers(np.asarray(array))
    elif isinstance(array, zarrow.Variable):
        yield from _source_buffers(array.data)
        yield from _source_buffers(array.offsets)
    else:
        yield from _source_buffers(array.data)
        yield from _source_buffers(array.mask)


def _result_buffers(result: Any) -> Iterator[Buffer]:
    """Yield the pieces of memory of another library's array."""
    match type(result).__module__.partition(".")[0]:
        case "numpy" if isinstance(result, np.ma.MaskedArray):
            yield from _result_buffers(np.asarray(result.data))
            yield from _result_buffers(np.asarray(result.mask))
        case "numpy":
            yield result.ctypes.data, result.nbytes
        case "torch":
            yield result.data_ptr(), result.nbytes
        case "pyarrow":
            yield from ((buffer.address, buffer.size) for buffer in result.buffers() if buffer is not None)
        case "polars":
            newest = importlib.import_module("polars").CompatLevel.newest()
            yield from _result_buffers(result.to_arrow(compat_level=newest))
        case _:
            yield result.unsafe_buffer_pointer(), result.nbytes
