"""Have zarr-python read to a GPU, and where its buffers are.

The setting is one for the process, as those of `zarr.config` are: zarr-python reads on threads of its own.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from zarrow._zarrow import DeviceTensor

_device = "cuda:0"

SETTINGS = {"buffer": "zarrow.gpu.Buffer", "ndbuffer": "zarrow.gpu.NDBuffer"}


def current_device() -> str:
    """Give the device to which buffers go."""
    return _device


def enable(device: Any = "cuda:0") -> Enabled:
    """Have zarr-python read to a GPU and write from it, from now on or in a `with` block.

    zarr-python decodes on the CPU. Bytes stay there until they are elements, so that each crosses to the GPU
    once; `array.read(selection, device="cuda:0")` of zarrow reads the same without zarr-python's detours.

    Arrays of text, `array.vindex` and xarray do not work with it: zarr-python and xarray make arrays of NumPy
    there, which memory of a GPU refuses. Read those to the CPU, or points by zarrow's own `vindex.read`.

    Without `with`, `zarr.config.reset()` ends it, and resets all other settings of zarr-python.

    Parameters
    ----------
    device
        Where buffers are made: `"cuda:0"`, a number or a `torch.device`.

    Returns
    -------
    Enabled
        A context manager, which sets back what was set before.

    Raises
    ------
    DeviceError
        There is no GPU to use, or no such device (a `RuntimeError`).
    ImportError
        zarr-python is not installed.
    ValueError
        `device` names no GPU.

    Examples
    --------
    >>> import zarr, zarrow
    >>> if zarrow.gpu.is_available():
    ...     with zarrow.gpu.enable():
    ...         tensor = zarr.open_array("data.zarr/temperature", mode="r")[0]
    """
    return Enabled(device)


class Enabled:
    """What `enable` set, to be set back at the end of a `with` block."""

    def __init__(self, device: Any) -> None:
        from zarrow import gpu

        global _device
        gpu.Buffer  # noqa: B018  # registers the classes, or says that zarr-python is missing
        import zarr

        # A tensor of no elements: it asks the driver for the device, and has the device's name.
        name = DeviceTensor._empty((0,), "uint8", device).device
        self._before = _device
        self._settings: Any = zarr.config.set(SETTINGS)
        _device = name

    def __enter__(self) -> Self:
        self._settings.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _device
        _device = self._before
        self._settings.__exit__(kind, error, trace)
