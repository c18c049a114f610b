"""Makes zarr-python read to a GPU, into zarrow's buffers.

The settings, including the device, are in `zarr.config`. They apply to the whole process, because zarr-python
reads on its own threads, and are reset together.
"""

from __future__ import annotations

import sys
from typing import Any

from zarrow._zarrow import DeviceTensor
from zarrow.interchange.zarr_settings import ZarrSettings

SETTINGS = {"buffer": "zarrow.gpu.Buffer", "ndbuffer": "zarrow.gpu.NDBuffer"}
DEVICE = "zarrow.gpu.device"


def current_device() -> Any:
    """Return the device that buffers are allocated on."""
    import zarr

    return zarr.config.get(DEVICE, "cuda:0")


def is_enabled() -> bool:
    """Return whether zarr-python reads to a GPU by zarrow's buffers."""
    zarr = sys.modules.get("zarr")
    return zarr is not None and zarr.config.get("ndbuffer", None) == SETTINGS["ndbuffer"]


def enable(device: Any = "cuda:0") -> Enabled:
    """Have zarr-python read to a GPU and write from it, from now on or in a `with` block.

    zarr-python decodes on the CPU. Compressed bytes stay there, and only elements cross to the GPU;
    `array.read(selection, device="cuda:0")` of zarrow reads the same without zarr-python's detours.

    Text, `array.vindex` and xarray do not work with it: zarr-python and xarray make arrays of NumPy there,
    which cannot be on a GPU. Read those outside, or points by zarrow's own `vindex.read`.

    Without `with`, call `.disable()` of the result to end it.

    Parameters
    ----------
    device
        Where buffers are made: `"cuda:0"`, a number or a `torch.device`.

    Returns
    -------
    Enabled
        A context manager that restores the previous settings. It may be entered again, and enables again.

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


class Enabled(ZarrSettings):
    """The settings of `enable`, to be restored at the end of a `with` block.

    It is set at once. A block sets it again if that setting already has a block, or was restored.
    """

    def __init__(self, device: Any) -> None:
        from zarrow import gpu

        gpu.Buffer  # noqa: B018  # registers the classes, or says that zarr-python is missing
        # A tensor of no elements: it asks the driver for the device, and has the device's name.
        device = DeviceTensor._empty((0,), "uint8", device).device
        super().__init__({**SETTINGS, DEVICE: device})
