"""Arrays of batches as tensors of the same memory, and samples as parts of batches."""

from __future__ import annotations

from typing import Any

import numpy as np

import zarrow
from zarrow._zarrow import DeviceTensor
from zarrow.data.plan import Plan
from zarrow.data.prefetch import Batch
from zarrow.data.tensor_sources import check_fixed_sizes


def tensors(batch: Batch) -> Any:
    """Return a batch as tensors that share its memory."""
    if isinstance(batch, dict):
        return {name: tensors(rows) for name, rows in batch.items()}
    shared = batch if isinstance(batch, DeviceTensor) else zarrow.asarray(batch)
    assert isinstance(shared, zarrow.Tensor | DeviceTensor)
    return shared.torch()


def check_dtypes(plan: Plan) -> None:
    """Raise `ExchangeError` if PyTorch has no data type of a source, before anything is read."""
    check_fixed_sizes(plan, "PyTorch")
    for source in plan.sources.values():
        tensors(np.empty(0, source.array.dtype))


def part(batch: Any, at: int, count: int) -> Any:
    """Return one sample of a batch of `count`: its row of each tensor in dicts, tuples and lists."""
    if isinstance(batch, dict):
        return {name: part(member, at, count) for name, member in batch.items()}
    if isinstance(batch, tuple | list):
        members = [part(member, at, count) for member in batch]
        return type(batch)(*members) if hasattr(batch, "_fields") else type(batch)(members)
    try:
        rows = len(batch)
    except TypeError:
        rows = None
    if rows != count:
        found = type(batch).__name__ if rows is None else f"{type(batch).__name__} with {rows} rows"
        raise ValueError(f"the transform of {count} samples must return a row for each, found {found}")
    return batch[at]
