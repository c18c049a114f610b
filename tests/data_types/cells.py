"""The columns: each passes a decoded array to a consumer and verifies its verdict.

A cell compares values and addresses: "zero copy" is the same memory, "copies" is other memory with the same
values, "refused" is an exception with a reason. A cell fails if a library misreads values.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import hand_capsule
import zarrow
from data_types.types import DataTypeCase, Values

ZERO_COPY, COPIES, REFUSED, YES = "zero copy", "copies", "refused", "yes"


@dataclass(frozen=True)
class Verdict:
    """Result of a cell, with its reason."""

    word: str
    reason: str = ""


def shared_or(copied: bool, reason: str) -> Verdict:
    """Return "zero copy", or "copies" with the reason."""
    return Verdict(COPIES, reason) if copied else Verdict(ZERO_COPY)


def refused(library: str, error: Exception, x: Any) -> Verdict:
    """Return the verdict for an exception, with the type's name removed from its text."""
    if not isinstance(error, zarrow.ZarrowError):
        return Verdict(REFUSED, f"{library} has no such type")
    shown = repr(x).partition(")")[2].partition(" on cpu")[0].strip() if "(" in repr(x) else ""
    text = str(error)
    for name in (shown, shown.removeprefix("optional[").removesuffix("]")):
        text = text.replace(name, "it") if name else text
    return Verdict(REFUSED, text.partition(": ")[0])


def bits(array: Any) -> bytes:
    """Return the bytes of the elements that are not missing."""
    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array)
        # The mask of a structure has a value for each field.
        array = np.ma.getdata(array)[~(mask if mask.dtype.names is None else mask[mask.dtype.names[0]])]
    array = np.ascontiguousarray(array)
    if array.dtype.kind in "OT":
        return repr([one for one in array.tolist() if one is not None]).encode()
    return array.tobytes()


def given(case: DataTypeCase) -> Values:
    """Return the elements that are not missing."""
    return case.values if case.missing is None else case.values[~case.missing]


def address(x: Any) -> int:
    """Return the address of the elements, or of the bytes of text."""
    inner = x.data if isinstance(x, zarrow.MaskedTensor | zarrow.MaskedVariable | zarrow.Variable) else x
    if isinstance(inner, zarrow.Variable):
        inner = inner.data
    return inner.numpy().ctypes.data


def check(found: Any, case: DataTypeCase) -> None:
    """Assert that the values equal the case's."""
    assert bits(found) == bits(given(case)), (case.name, found)


def numpy_out(case: DataTypeCase, x: Any) -> Verdict:
    array = x.numpy()
    check(array, case)
    if case.is_variable:
        what = (
            "NumPy stores strings in another layout" if "string" in case.name else "NumPy uses objects for it"
        )
        return shared_or(True, what)
    again = x.numpy()
    return shared_or(array.ctypes.data != again.ctypes.data, "it is another array each time")


def numpy_in(case: DataTypeCase, x: Any) -> Verdict:
    values = case.values if case.missing is None else np.ma.MaskedArray(case.values, case.missing)
    if case.is_variable and case.missing is not None:
        values = np.array(
            [None if gone else one for one, gone in zip(case.values, case.missing, strict=True)], object
        )
    try:
        taken = zarrow.asarray(values)
    except Exception as error:
        return refused("NumPy", error, x)
    check(taken.numpy(), case)
    assert taken.dtype == case.values.dtype
    if case.is_variable:
        return shared_or(True, "NumPy stores elements of any length separately")
    return shared_or(address(taken) != case.values.ctypes.data, "it is other memory")


def buffer(case: DataTypeCase, x: Any) -> Verdict:
    try:
        view = memoryview(x)
    except TypeError:
        return Verdict(REFUSED, "a buffer is one block of memory, and this has several")
    except BufferError as error:
        return refused("the buffer protocol", error, x)
    array = np.asarray(view)
    check(array, case)
    assert array.dtype == case.values.dtype
    return shared_or(array.ctypes.data != address(x), "it is other memory")


def dlpack_out(case: DataTypeCase, x: Any) -> Verdict:
    try:
        capsule = x.__dlpack__(max_version=(1, 3))
    except Exception as error:
        return refused("DLPack", error, x)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    described = ctypes.cast(
        pointer(capsule, b"dltensor_versioned"), ctypes.POINTER(hand_capsule.Versioned)
    ).contents
    tensor = described.tensor
    assert tensor.bits * tensor.lanes == 8 * case.values.dtype.itemsize
    return shared_or(tensor.data + tensor.byte_offset != address(x), "it is other memory")


def dlpack_in(case: DataTypeCase, x: Any) -> Verdict:
    try:
        taken = zarrow.from_dlpack(x)
    except Exception as error:
        return refused("DLPack", error, x)
    check(taken.numpy(), case)
    assert taken.dtype == case.values.dtype
    return shared_or(address(taken) != address(x), "it is other memory")


def jax(case: DataTypeCase, x: Any) -> Verdict:
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        array = x.jax()
    except AttributeError:
        return Verdict(REFUSED, "JAX has no such layout")
    except Exception as error:
        return refused("JAX", error, x)
    finally:
        jax.config.update("jax_enable_x64", before)
    check(np.asarray(array), case)
    return shared_or(array.unsafe_buffer_pointer() != address(x), "it is other memory")


def arrow_out(case: DataTypeCase, x: Any) -> Verdict:
    import pyarrow as pa

    try:
        array = pa.array(x)
    except Exception as error:
        return refused("pyarrow", error, x)
    missing = [False] * 4 if case.missing is None else case.missing.tolist()
    nat = case.values.dtype.kind in "mM"
    assert array.is_null().to_pylist() == [gone or (nat and at == 3) for at, gone in enumerate(missing)]
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    if case.is_variable:
        assert storage.to_pylist() == [
            None if gone else one for one, gone in zip(case.values.tolist(), missing, strict=True)
        ]
        last = storage.buffers()[-1]
        return shared_or(last.address != address(x), "it is other memory")
    buffers = [one for one in storage.buffers() if one is not None]
    if address(x) in (one.address for one in buffers):
        return Verdict(ZERO_COPY)
    if pa.types.is_date32(array.type):
        assert bits(np.array(array.to_pylist(), case.values.dtype)) == bits(case.values)
        return Verdict(COPIES, "Arrow's dates have 32 bits")
    back = zarrow.from_arrow(array).numpy()
    assert [str(one) for one in back.tolist()] == [str(one) for one in case.values.tolist()]
    return Verdict(COPIES, "Arrow's text is UTF-8")


def arrow_in(case: DataTypeCase, x: Any) -> Verdict:
    import pyarrow as pa

    try:
        array = pa.array(x)
    except Exception as error:
        return refused("pyarrow", error, x)
    try:
        taken = zarrow.from_arrow(array)
    except Exception as error:
        return refused("zarrow", error, x)
    there = taken.numpy()
    if case.values.dtype.kind in "mM":
        # NaT comes back as a missing element.
        assert bits(np.ma.getdata(there)[:3]) == bits(case.values[:3]) or case.missing is not None
        if pa.types.is_date32(array.type):
            return Verdict(COPIES, "Arrow's dates have 32 bits")
    elif taken.dtype == case.values.dtype:
        check(there, case)
    elif address(taken) == address(x):
        return Verdict(f"{ZERO_COPY} as {'raw bytes' if taken.dtype.kind == 'V' else taken.dtype}")
    else:
        assert [str(one) for one in there.tolist()] == [str(one) for one in case.values.tolist()]
        return Verdict(COPIES, "Arrow's text is UTF-8")
    return shared_or(address(taken) != address(x), "it is other memory")


def polars(case: DataTypeCase, x: Any) -> Verdict:
    try:
        series = x.polars()
    # A panic of polars is not an Exception.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return refused("polars", error if isinstance(error, Exception) else TypeError(), x)
    expected = [None if gone else one for one, gone in zip(plain(case), gaps(case), strict=True)]
    found = series.to_list()
    assert [one is None for one in found] == [one is None for one in expected]
    same = case.values.dtype.kind in "mM" or repr(found) == repr(expected)
    buffers = series.to_arrow().buffers()
    copied = address(x) not in [one.address for one in buffers if one is not None]
    if same:
        return shared_or(copied, "polars stores it in another layout")
    # polars shows the stored bytes or integers of the type, so the elements are compared by memory.
    extension = re.match(r"Extension\('(.*?)'", str(series.dtype))
    kind = extension[1] if extension else re.sub(r"shape=\((\d+),\)", r"\1", str(series.dtype))
    if not copied:
        return Verdict(f"{ZERO_COPY} as {kind}")
    stored = np.array([b"" if one is None else one for one in found], f"S{case.values.dtype.itemsize}")
    assert stored[~np.array(gaps(case))].tobytes() == bits(given(case)), (case.name, found, expected)
    return Verdict(f"{COPIES} as {kind}", "polars stores it in another layout")


def gaps(case: DataTypeCase) -> list[bool]:
    """Return which elements are missing; NaT counts, because consumers without NaT see null."""
    missing = np.zeros(4, bool) if case.missing is None else case.missing.copy()
    if case.values.dtype.kind in "mM":
        missing |= np.isnat(case.values)
    return [bool(gone) for gone in missing]


def plain(case: DataTypeCase) -> list[Any]:
    """Return the elements as Python objects."""
    values: list[Any] = case.values.tolist()
    if case.values.dtype.names:
        return [dict(zip(case.values.dtype.names, one, strict=True)) for one in values]
    return values


def torch(case: DataTypeCase, x: Any) -> Verdict:
    import torch

    try:
        tensor = x.torch()
    except AttributeError:
        return Verdict(REFUSED, "PyTorch has no such layout")
    except Exception as error:
        return refused("PyTorch", error, x)
    assert tensor.view(torch.uint8).numpy().tobytes() == case.values.tobytes()
    return shared_or(tensor.data_ptr() != address(x), "it is other memory")


def zarr_read(version: Literal[2, 3]) -> Callable[[DataTypeCase, Any], Verdict]:
    def read(case: DataTypeCase, x: Any) -> Verdict:
        if version == 2 and case.v2 is None:
            return Verdict(REFUSED, "Zarr v2 has no such type")
        with tempfile.TemporaryDirectory() as folder:
            case.write(Path(folder) / "array", version, case.chunk)
            array = zarrow.open(Path(folder) / "array")
            decoded = array[...]
            check(decoded.numpy(), case)
            assert array.dtype == decoded.dtype == case.values.dtype
            if case.is_variable or case.missing is not None:
                return Verdict(YES)
            # Small chunks are not mapped.
            large = replace(case, values=np.tile(case.values, 1 << 17))
            large.write(Path(folder) / "large", version, large.chunk)
            mapped = zarrow.open(Path(folder) / "large").read(mmap=True)
            check(mapped.numpy(), large)
        return Verdict(ZERO_COPY if mapped.is_mapped else YES)

    return read


def zarr_write(version: Literal[2, 3]) -> Callable[[DataTypeCase, Any], Verdict]:
    def write(case: DataTypeCase, x: Any) -> Verdict:
        if version == 2 and case.v2 is None:
            return Verdict(REFUSED, "Zarr v2 has no such type")
        with tempfile.TemporaryDirectory() as folder:
            key = case.write(Path(folder) / "array", version, None)
            try:
                zarrow.open(Path(folder) / "array")[...] = x
            except zarrow.ZarrowError as error:
                return refused("zarrow", error, x)
            assert key.read_bytes() == case.chunk
        return Verdict(YES)

    return write


COLUMNS: dict[str, Callable[[DataTypeCase, Any], Verdict]] = {
    "NumPy out": numpy_out,
    "NumPy in": numpy_in,
    "buffer": buffer,
    "DLPack out": dlpack_out,
    "DLPack in": dlpack_in,
    "PyTorch": torch,
    "JAX": jax,
    "Arrow out": arrow_out,
    "Arrow in": arrow_in,
    "polars": polars,
    "Zarr v2 read": zarr_read(2),
    "Zarr v3 read": zarr_read(3),
    "Zarr v2 write": zarr_write(2),
    "Zarr v3 write": zarr_write(3),
}
TORCH = "PyTorch"


def prove(case: DataTypeCase, columns: list[str]) -> dict[str, Verdict]:
    """Return the verdicts of a row."""
    with tempfile.TemporaryDirectory() as folder:
        x = case.read(Path(folder) / "array")
        return {column: COLUMNS[column](case, x) for column in columns}
