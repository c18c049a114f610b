"""Batches on a GPU: the thread that has read a batch copies it there, through pinned memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrow._zarrow import DeviceTensor
from zarrow.data.nodes import called
from zarrow.data.plan import Plan
from zarrow.errors import ExchangeError


def checked(plan: Plan, device: Any) -> str:
    """Return the name of a device, which has a type for the elements of each source.

    Raises
    ------
    DeviceError
        There is no such device.
    ExchangeError, UnsupportedError
        A source has no tensors on a device.
    """
    for name, source in plan.sources.items():
        if not source.has_fixed_size:
            raise ExchangeError(
                f"{called(name)} has text, sparse rows or elements that may be missing, which have no "
                "tensors on a GPU: leave out device=, and copy tensors there in a transform"
            )
    name = str(DeviceTensor._empty((0,), "uint8", device).device)
    for source in plan.sources.values():
        on_device(np.empty(0, source.array.dtype), name)
    return name


def on_device(batch: Any, device: str) -> Any:
    """Return a copy of a batch on a device; the copy to the device is not waited for."""
    if isinstance(batch, dict):
        return {name: on_device(rows, device) for name, rows in batch.items()}
    if isinstance(batch, tuple):
        return tuple(on_device(rows, device) for rows in batch)
    return DeviceTensor._of(batch, device)
