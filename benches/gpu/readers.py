"""Who reads an array to a device, each by its own means; what is not installed says so."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

import zarrow

Reader = Callable[[Path], object]


class MissingError(Exception):
    """A reader that cannot run here, with the reason."""


def needs(*packages: str) -> None:
    """Say which packages are missing, if any is."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise MissingError(f"{', '.join(missing)} is not installed")


def zarrow_reader(decompress: Literal["host", "device", "auto"]) -> Reader:
    """Read by zarrow, decompressing on the host, on the device, or on both by what was measured."""

    def read(path: Path) -> object:
        tensor = zarrow.open_array(path).read(device="cuda:0", decompress=decompress)
        zarrow.gpu.synchronize("cuda:0")
        return tensor

    if decompress != "host" and zarrow.gpu.devices._nvcomp_libraries() == []:
        raise MissingError("nvidia-libnvcomp is not installed")
    return read


def zarr_python_with_our_buffers() -> Reader:
    """Read by zarr-python, with the buffers of zarrow."""
    needs("zarr")
    import zarr

    def read(path: Path) -> object:
        with zarrow.gpu.enable():
            tensor = zarr.open_array(path, mode="r")[...]
        zarrow.gpu.synchronize("cuda:0")
        return tensor

    return read


def zarr_python_with_cupy() -> Reader:
    """Read by zarr-python, with its own buffers, which are CuPy's."""
    needs("zarr", "cupy")
    import cupy
    import zarr

    def read(path: Path) -> object:
        with zarr.config.enable_gpu():
            array = zarr.open_array(path, mode="r")[...]
        cupy.cuda.Device(0).synchronize()
        return array

    return read


def kvikio_store() -> Reader:
    """Read by zarr-python from the store of kvikio, which reads to the device."""
    needs("zarr", "cupy", "kvikio")
    import cupy
    import kvikio.zarr
    import zarr

    def read(path: Path) -> object:
        with zarr.config.enable_gpu():
            array = zarr.open_array(kvikio.zarr.GDSStore(path), mode="r")[...]
        cupy.cuda.Device(0).synchronize()
        return array

    return read


def decoded_and_copied() -> Reader:
    """Decode on the host with zarrow, and copy by PyTorch: what a program does without any of this."""
    needs("torch")
    import torch

    def read(path: Path) -> object:
        tensor = zarrow.open_array(path).read().torch().to("cuda:0")
        torch.cuda.synchronize()
        return tensor

    return read


def pinned_copy(nbytes: int) -> Reader:
    """Copy as many bytes from pinned memory: the limit of the link."""
    needs("torch")
    import torch

    source = torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(nbytes, dtype=torch.uint8, device="cuda:0")

    def read(path: Path) -> object:
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        return target

    return read


def all_readers(nbytes: int) -> dict[str, Reader | MissingError]:
    """Give every reader that can run here, and the reason why another cannot."""
    makers: dict[str, Callable[[], Reader]] = {
        "zarrow": lambda: zarrow_reader("host"),
        "zarrow, decompressed on the device": lambda: zarrow_reader("device"),
        "zarrow, split by its rates": lambda: zarrow_reader("auto"),
        "zarr-python + zarrow.gpu": zarr_python_with_our_buffers,
        "zarr-python + zarr.buffer.gpu": zarr_python_with_cupy,
        "zarr-python + kvikio": kvikio_store,
        "zarrow on the host, then torch.to": decoded_and_copied,
        "a pinned copy of the elements": lambda: pinned_copy(nbytes),
    }
    readers: dict[str, Reader | MissingError] = {}
    for name, make in makers.items():
        try:
            readers[name] = make()
        except MissingError as missing:
            readers[name] = missing
    return readers


def elements(result: object) -> Any:
    """Give what was read as a NumPy array, to compare it."""
    for method in ("cpu", "get"):
        if hasattr(result, method):
            result = getattr(result, method)()
    return np.asarray(result)
