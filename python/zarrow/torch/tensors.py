"""Arrays of batches as tensors of the same memory, and samples as parts of batches.

PyTorch has no text: strings and byte strings are lists, as its `default_collate` makes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

import zarrow
from zarrow._zarrow import DeviceTensor
from zarrow.data.nodes import called
from zarrow.data.plan import Plan
from zarrow.data.prefetch import Batch
from zarrow.errors import ExchangeError

# Kinds of text in NumPy: of any length, objects, byte strings and text of one length.
_TEXT = "TOSU"


class Masked(NamedTuple):
    """Elements that may be missing, as in a masked array of NumPy.

    The mask is true where an element is missing. `torch.masked.masked_tensor` takes the opposite:
    `masked_tensor(rows.values, ~rows.mask)`.
    """

    values: torch.Tensor
    mask: torch.Tensor


def tensors(batch: Batch) -> Any:
    """Return a batch as tensors that share its memory; text is a list."""
    if isinstance(batch, dict):
        return {name: tensors(rows) for name, rows in batch.items()}
    if isinstance(batch, tuple):
        return tuple(map(tensors, batch))
    if isinstance(batch, DeviceTensor):
        return batch.torch()
    if not isinstance(batch, np.ndarray):
        return _sparse(batch)
    if batch.dtype.kind in _TEXT:
        return batch.tolist()
    if isinstance(batch, np.ma.MaskedArray):
        return Masked(_tensor(batch.data), _tensor(np.ma.getmaskarray(batch)))
    return _tensor(batch)


def _tensor(values: Any) -> torch.Tensor:
    shared = zarrow.asarray(values)
    assert isinstance(shared, zarrow.Tensor)
    return shared.torch()


def _sparse(matrix: Any) -> torch.Tensor:
    """Return a CSR matrix of SciPy as a tensor. PyTorch needs sorted, distinct columns in each row."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    rows, columns, values = (_tensor(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    # The engine has checked the positions already.
    return torch.sparse_csr_tensor(rows, columns, values, matrix.shape, check_invariants=False)


def check_dtypes(plan: Plan) -> None:
    """Raise `ExchangeError` if PyTorch has no data type of a source, before anything is read."""
    for name, source in plan.sources.items():
        empty = source._filled(0)
        try:
            tensors(empty)
        except (ExchangeError, BufferError):
            raise ExchangeError(
                f"{called(name)} has the data type {empty.dtype}, which "
                "PyTorch lacks: type zarrow.data.Loader(plan, transform=function) and make tensors in the "
                "function"
            ) from None


def part(batch: Any, at: int, count: int) -> Any:
    """Return one sample of a batch of `count`: its row of each tensor or text in dicts, tuples and lists."""
    if isinstance(batch, dict):
        return {name: part(member, at, count) for name, member in batch.items()}
    if isinstance(batch, tuple | list) and not _is_text(batch):
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


def _is_text(member: Any) -> bool:
    """Return whether a member is text, or a list of text for each sample."""
    while isinstance(member, list) and member:
        member = member[0]
    return member is None or isinstance(member, str | bytes | list)
