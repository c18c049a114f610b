"""The readers to a device; each reports missing packages."""

import contextlib
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

import zarrow
from benches.gpu import cufile, nvcomp
from benches.gpu.data import NAME
from zarrow.gpu import nvcomp_libraries

Reader = Callable[[Path], object]


class MissingError(Exception):
    """A reader that cannot run here, with the reason."""


def needs(*packages: str) -> None:
    """Return the missing packages, if any, and whether PyTorch and CuPy have a GPU."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        names = " and ".join(missing)
        raise MissingError(f"{names} {'is' if len(missing) == 1 else 'are'} not installed")
    if "torch" in packages and not importlib.import_module("torch").cuda.is_available():
        raise MissingError("PyTorch has no GPU here")
    if "cupy" in packages and not importlib.import_module("cupy").cuda.is_available():
        raise MissingError("CuPy has no GPU here")


def zarrow_reader(decompress: Literal["host", "device", "auto"]) -> Reader:
    """Read by zarrow, decompressing on the host, on the device, or on both as its rates decide."""

    def read(path: Path) -> object:
        tensor = zarrow.open_array(path).read(device="cuda:0", decompress=decompress)
        zarrow.gpu.synchronize("cuda:0")
        return tensor

    if decompress != "host" and nvcomp_libraries.found_in_wheels() == []:
        raise MissingError("nvidia-libnvcomp is not installed")
    return read


def zarr_python_with_our_buffers(*, with_pipeline: bool = False) -> Reader:
    """Read by zarr-python, with the buffers of zarrow, and its codec pipeline if wanted."""
    needs("zarr")
    import zarr

    def read(path: Path) -> object:
        with zarrow.gpu.enable(), zarrow.zarr_python.enable() if with_pipeline else contextlib.nullcontext():
            tensor = zarr.open_array(path, mode="r")[...]
        zarrow.gpu.synchronize("cuda:0")
        return tensor

    return read


def zarr_python_with_cupy(store: Callable[[Path], Any] = Path) -> Reader:
    """Read by zarr-python, with its own CuPy buffers, from the store of a path."""
    needs("zarr", "cupy")
    import cupy
    import zarr

    def read(path: Path) -> object:
        with zarr.config.enable_gpu():
            array = zarr.open_array(store(path), mode="r")[...]
        cupy.cuda.Device(0).synchronize()
        return array

    return read


def kvikio_store() -> Reader:
    """Read by zarr-python from the store of kvikio, which reads to the device."""
    needs("zarr", "cupy", "kvikio")
    return zarr_python_with_cupy(importlib.import_module("kvikio.zarr").GDSStore)


def tensordict_reader() -> Reader:
    """Read by tensordict; zarr-python reads its stored tensors and PyTorch copies them."""
    needs("zarr", "torch", "tensordict")
    return tensordict_on("cuda:0")


def tensordict_on(device: str) -> Reader:
    """Read by tensordict to a PyTorch device."""
    from tensordict import PersistentTensorDict

    def read(path: Path) -> object:
        stored = PersistentTensorDict(
            filename=str(path.parent), backend="zarr", mode="r", batch_size=[], device=device
        )
        return synchronized(stored[NAME])

    return read


def insitubatch_reader() -> Reader:
    """Read by insitubatch, in batches of its default size, joined on the device."""
    needs("zarr", "obstore", "xarray", "torch", "insitubatch")
    return insitubatch_on("cuda:0")


def insitubatch_on(device: str) -> Reader:
    """Read by insitubatch to a PyTorch device."""
    import insitubatch
    import torch

    def read(path: Path) -> object:
        store = insitubatch.obstore_store(path.parent.absolute().as_uri())
        geometries = insitubatch.open_geometries(store, variables=[NAME])
        split = insitubatch.split_by_chunk(geometries[NAME], fractions=(1.0, 0.0, 0.0))
        batches = insitubatch.InSituDataset(store, split, geometries=geometries, shuffle=False)
        parts = [part[NAME] for part in insitubatch.as_torch(batches.all, device=device)]
        return synchronized(torch.cat(parts))

    return read


def synchronized(tensor: Any) -> Any:
    """Wait until the device of a PyTorch tensor is done."""
    if tensor.is_cuda:
        importlib.import_module("torch").cuda.synchronize()
    return tensor


def damacy_reader() -> Reader:
    """Read by damacy."""
    raise MissingError("it is not in any package index, and converts all elements to bfloat16 or float32")


def nvcomp_alone() -> Reader:
    """Decompress, by nvCOMP, frames already on the device."""
    if nvcomp_libraries.found_in_wheels() == []:
        raise MissingError("nvidia-libnvcomp is not installed")
    return nvcomp.decompressor()


def cufile_reader(is_asked_for: bool) -> Reader:
    """Read uncompressed chunks by cuFile."""
    if not is_asked_for:
        raise MissingError("it is opened only with --cufile, since opening it may hang")
    found = cufile.libraries()
    if not found:
        raise MissingError("nvidia-cufile is not installed")
    try:
        return cufile.reader(cufile.opened(found[0]))
    except RuntimeError as error:
        raise MissingError(str(error)) from error


def decoded_and_copied() -> Reader:
    """Decode on the host with zarrow, and copy by PyTorch: the baseline."""
    needs("torch")

    def read(path: Path) -> object:
        return synchronized(zarrow.open_array(path).read().torch().to("cuda:0"))

    return read


def pinned_copy(nbytes: int) -> Reader:
    """Copy the same number of bytes from pinned memory: the limit of the link."""
    needs("torch")
    import torch

    source = torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(nbytes, dtype=torch.uint8, device="cuda:0")

    def read(path: Path) -> object:
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        return target

    return read


# Rows of the table that do not read an array.
LIMITS = ("a pinned copy of the elements", "nvCOMP alone, on the device")


def all_readers(nbytes: int, with_cufile: bool = False) -> dict[str, Reader | MissingError]:
    """Return every reader that can run here, and the reasons for the others."""
    makers: dict[str, Callable[[], Reader]] = {
        "zarrow": lambda: zarrow_reader("host"),
        "zarrow, decompressed on the device": lambda: zarrow_reader("device"),
        "zarrow, split by its rates": lambda: zarrow_reader("auto"),
        "zarr-python + zarrow.gpu": zarr_python_with_our_buffers,
        "zarr-python + zarrow.gpu and its pipeline": lambda: zarr_python_with_our_buffers(with_pipeline=True),
        "zarr-python + zarr.buffer.gpu": zarr_python_with_cupy,
        "zarr-python + kvikio": kvikio_store,
        "zarrow on the host, then torch.to": decoded_and_copied,
        "tensordict": tensordict_reader,
        "insitubatch": insitubatch_reader,
        "damacy": damacy_reader,
        "cuFile": lambda: cufile_reader(with_cufile),
        "a pinned copy of the elements": lambda: pinned_copy(nbytes),
        "nvCOMP alone, on the device": nvcomp_alone,
    }
    readers: dict[str, Reader | MissingError] = {}
    for name, make in makers.items():
        try:
            readers[name] = make()
        except MissingError as missing:
            readers[name] = missing
    return readers


def elements(result: object) -> Any:
    """Convert a result to a NumPy array, to compare it."""
    for method in ("cpu", "get"):
        if hasattr(result, method):
            result = getattr(result, method)()
    return np.asarray(result)
