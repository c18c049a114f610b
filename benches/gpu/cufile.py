"""cuFile: from a file to the device by NVIDIA's library, opened only on request.

`cuFileDriverOpen` may never return, for example in some containers: it runs on a separate thread, with a
time limit of some seconds.

Source: the cuFile API reference, and `cufile.h` of CUDA 13.
"""

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zarrow

SECONDS = 20


class Error(ctypes.Structure):
    """`CUfileError_t`."""

    _fields_ = (("code", ctypes.c_int), ("driver", ctypes.c_int))


class Description(ctypes.Structure):
    """`CUfileDescr_t` of a file descriptor."""

    _fields_ = (("kind", ctypes.c_int), ("file", ctypes.c_void_p), ("operations", ctypes.c_void_p))


OPAQUE_FD = 1


def libraries() -> list[Path]:
    """Find the library in the wheels of this environment."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    return [path for folder in folders for path in sorted(Path(folder).glob("*/lib/libcufile.so.0"))]


def opened(path: Path, seconds: float = SECONDS) -> Any:
    """Open the library and its driver; raise a RuntimeError with the reason if that fails."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise RuntimeError(f"libcufile cannot be loaded: {error}") from error
    for name in ("cuFileDriverOpen", "cuFileHandleRegister"):
        getattr(library, name).restype = Error
    library.cuFileRead.restype = ctypes.c_ssize_t
    answers: list[Error] = []
    thread = threading.Thread(target=lambda: answers.append(library.cuFileDriverOpen()), daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise RuntimeError(f"cuFileDriverOpen did not return within {seconds} seconds")
    if answers[0].code:
        raise RuntimeError(f"cuFileDriverOpen failed with {answers[0].code} (CUfileOpError)")
    return library


def reader(library: Any) -> Callable[[Path], object]:
    """Read uncompressed chunks straight into the result."""
    _use_primary_context()

    def read(path: Path) -> object:
        array = zarrow.open_array(path)
        if array.compressors or array.shards:
            raise ValueError("cuFile decompresses nothing")
        tensor = zarrow.gpu.Tensor._empty(array.shape, array.dtype, "cuda:0")
        zarrow.gpu.synchronize("cuda:0")
        base, row_nbytes = tensor.__cuda_array_interface__["data"][0], tensor.nbytes // len(tensor)
        for number in range(len(tensor)):
            _read_file(library, path / "c" / str(number) / "0", base + number * row_nbytes, row_nbytes)
        return tensor

    return read


def _use_primary_context() -> None:
    """Make the shared primary context current on this thread, as cuFile requires."""
    driver = ctypes.CDLL(os.environ.get("ZARROW_CUDA_DRIVER", "libcuda.so.1"))
    context = ctypes.c_void_p()
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or driver.cuCtxSetCurrent(context):
        raise RuntimeError("the driver gives no context for cuda:0")


def _read_file(library: Any, file: Path, address: int, nbytes: int) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    handle = ctypes.c_void_p()
    try:
        description = Description(OPAQUE_FD, descriptor, None)
        error = library.cuFileHandleRegister(ctypes.byref(handle), ctypes.byref(description))
        if error.code:
            raise RuntimeError(f"cuFileHandleRegister failed with {error.code} (CUfileOpError)")
        try:
            offset = ctypes.c_int64(0)
            count = library.cuFileRead(
                handle, ctypes.c_void_p(address), ctypes.c_size_t(nbytes), offset, offset
            )
            if count != nbytes:
                raise RuntimeError(f"cuFileRead gave {count} of {nbytes} bytes of {file}")
        finally:
            library.cuFileHandleDeregister(handle)
    finally:
        os.close(descriptor)
