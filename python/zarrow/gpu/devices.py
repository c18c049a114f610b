"""The devices of this machine."""

from __future__ import annotations

from typing import Any, cast

from zarrow import _zarrow
from zarrow._zarrow import Array
from zarrow._zarrow import DeviceTensor as Tensor
from zarrow.errors import DeviceError, IndexingError, UnsupportedError


def is_available() -> bool:
    """Return whether there is a GPU to read to; `why_unavailable` gives the reason if not.

    Returns
    -------
    bool
        False without a driver or a device, in a process that was forked after CUDA was used, and after a
        failure on the device that the driver does not recover from. This call uses CUDA itself: processes
        that are forked after it cannot use a GPU.

    Examples
    --------
    >>> import zarrow
    >>> device = "cuda:0" if zarrow.gpu.is_available() else "cpu"
    """
    return why_unavailable() is None


def why_unavailable() -> str | None:
    """Return why no GPU can be used.

    Returns
    -------
    str or None
        The missing part or the failure, as a sentence; None if a GPU can be used.
    """
    try:
        return None if device_count() else "this machine has no CUDA device"
    except DeviceError as error:
        return str(error)


def device_count() -> int:
    """Count the CUDA devices.

    Raises
    ------
    DeviceError
        There is no driver, or it cannot be used.
    """
    return Tensor._count()


def synchronize(device: Any = None) -> None:
    """Wait until a device has finished zarrow's work, and unused memory is given back.

    Parameters
    ----------
    device
        `"cuda:0"`, a number or a `torch.device`; the first device by default.

    Raises
    ------
    DeviceError
        Work on the device failed, or there is no such device.
    """
    Tensor._synchronize(device)


def release_memory() -> None:
    """Give the memory that is kept for later reads back to the driver: of devices, and pinned memory.

    `zarrow.release_memory` does so too, and gives back memory of the CPU.

    Raises
    ------
    DeviceError
        Work on a device failed.
    """
    Tensor._release_memory()


def asarray(x: Any, device: Any = None) -> Tensor:
    """Return any array as a tensor on a GPU.

    Arrays of PyTorch, CuPy, JAX, Numba and any other library with DLPack, `__cuda_array_interface__` or
    `__arrow_c_device_array__` share their memory with the tensor, read-only for JAX and Arrow. Arrays on the
    CPU are copied once.

    Parameters
    ----------
    x
        The array. A stored array is read.
    device
        Where to: `"cuda:0"`, a number or a `torch.device`. By default the device that has the array, and for
        one of the CPU the first device. A tensor on another GPU is copied there.

    Returns
    -------
    Tensor
        Of the same memory, unless the array was elsewhere.

    Raises
    ------
    DeviceError
        There is no such device.
    TypeError
        `x` is not an array.
    UnsupportedError
        The elements have no layout on a device, such as text.
    ExchangeError
        An Arrow array on a device may have nulls, or has a type that tensors do not have.
    """
    if isinstance(x, Array):
        read: Any = x.read(device="cuda" if device is None else device)
        return cast("Tensor", read)
    if x is None:
        raise TypeError("got None: pass zarrow.gpu.asarray an array, a number or a list of numbers")
    try:
        return Tensor._of(x, device)
    except UnsupportedError:
        if not Tensor._is_on_device(x):
            _refuse_layout(_zarrow.asarray(x))
        raise


def _refuse_layout(array: Any) -> None:
    """Refuse arrays without a layout on a device."""
    if isinstance(array, _zarrow.MaskedTensor):
        raise UnsupportedError(
            "elements may be missing, and a tensor on a GPU has no mask: type "
            "zarrow.asarray(x).filled(value), or copy .data and .mask of zarrow.asarray(x)"
        )
    if isinstance(array, _zarrow.Variable | _zarrow.MaskedVariable):
        raise UnsupportedError(
            "text of any length has no layout on a GPU: type zarrow.asarray(x), which is on the CPU"
        )


def explain(array: Array, selection: Any = None, device: Any = None) -> dict[str, Any]:
    """Say where `array.read(selection, device=..., decompress="auto")` would decompress, and why.

    A GPU decompresses each frame with one block of threads, slower than a core of the CPU does, but runs
    hundreds of blocks. It needs many small frames: hundreds of chunks, or blosc, which has a frame per block.
    Rates decide how many of the chunks each side gets. They begin as estimates, and reads that decompress on
    that GPU replace them by measured rates. Nothing is read.

    Parameters
    ----------
    array
        An array.
    selection
        As for `Array.read`; all of the array by default.
    device
        The device to compute for: `"cuda:0"`, a number or a `torch.device`; the first device by default, and
        estimates without a device.

    Returns
    -------
    dict
        `decompress` (`"host"`, `"device"` or `"both"`), `why` (a sentence), `compressor`, `chunks` (at most
        as many are touched), `chunk_nbytes` (decoded), `frames` (about as many), `threads` (of the CPU);
        `chunks_on_device` and `chunks_on_host`; `seconds`, and `seconds_on_device` and `seconds_on_host` for
        one side alone, which are None if only the CPU can do it; `rates`, in decoded bytes a second:
        `device` (of hundreds of frames), `device_frame` (of one), `link` (of a copy), `host_thread`, and
        `ratio` (of decoded to stored bytes); `measured`, the names of the rates that are not estimates.

    Raises
    ------
    DeviceError
        There is no such device.
    IndexingError
        `selection` names a field of structures, or lies outside (an `IndexError`).
    TypeError
        `array` is not an Array of zarrow, but of another library, or is a Group.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> zarrow.gpu.explain(temperature)["decompress"]
    'host'
    """
    if not isinstance(array, Array):
        kind = f"{type(array).__module__.partition('.')[0]}.{type(array).__name__}"
        raise TypeError(f"expected an array of zarrow.open, found {kind}: type explain(zarrow.open(path))")
    parts = selection if isinstance(selection, tuple | list) else (selection,)
    if any(isinstance(part, str) for part in parts):
        raise IndexingError(
            "explain() takes no field of structures: leave its name out (array.read takes it)"
        )
    return _zarrow._explain(array, selection, device)
