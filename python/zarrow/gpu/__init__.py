"""Zarr on a GPU: device tensors, and buffers for zarr-python. Neither CuPy nor PyTorch is needed.

>>> import zarrow
>>> array = zarrow.open("data.zarr")["temperature"]
>>> if zarrow.gpu.is_available():
...     tensor = array.read(device="cuda:0")  # a zarrow.gpu.Tensor
...     shared = tensor.torch()  # the same memory

Devices
    is_available, why_unavailable  whether there is a GPU, and why not
    device_count                   how many
    synchronize                    wait for one
    explain                        where a read would decompress, and why
    release_memory                 free the memory kept for the next read

Tensors
    Tensor                         what `array.read(..., device="cuda:0")` gives
    asarray                        any array as one, without a copy on the device

zarr-python
    enable                         zarr-python reads to the GPU from now on
    Buffer, NDBuffer,
    buffer_prototype               for `zarr.config.set` and `prototype=`
"""

from __future__ import annotations

import typing as _typing

from zarrow._zarrow import DeviceTensor as Tensor
from zarrow.gpu.devices import (
    asarray,
    device_count,
    explain,
    is_available,
    release_memory,
    synchronize,
    why_unavailable,
)
from zarrow.gpu.enabling import enable
from zarrow.hints.module_names import getattr_of as _getattr_of

if _typing.TYPE_CHECKING:
    from zarrow.gpu.buffers import Buffer, NDBuffer, buffer_prototype

__all__ = [
    "Buffer",
    "NDBuffer",
    "Tensor",
    "asarray",
    "buffer_prototype",
    "device_count",
    "enable",
    "explain",
    "is_available",
    "release_memory",
    "synchronize",
    "why_unavailable",
]


if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> _typing.Any:
        """Import the buffers when they are first looked at: they are classes of zarr-python's."""
        if name in ("Buffer", "NDBuffer", "buffer_prototype"):
            try:
                from zarrow.gpu import buffers
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != "zarr":
                    raise
                raise ImportError(
                    f"zarrow.gpu.{name} is for zarr-python, which is not installed: pip install 'zarr>=3.1'"
                ) from error
            return getattr(buffers, name)
        return _getattr_of(__name__)(name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
