"""Arrays of batches as tensors of the same memory, and the place of this process among ranks."""

from __future__ import annotations

from typing import Any

import torch.distributed

import zarrow
from zarrow.data.prefetch import Batch


def tensors(batch: Batch) -> Any:
    """Return a batch as tensors that share its memory."""
    if isinstance(batch, dict):
        return {name: tensors(rows) for name, rows in batch.items()}
    shared = zarrow.asarray(batch)
    assert isinstance(shared, zarrow.Tensor)
    return shared.torch()


def place(rank: int | None, world: int | None) -> tuple[int, int]:
    """Return rank and world: those given, those of `torch.distributed`, or one process."""
    if (rank is None) != (world is None):
        raise ValueError(f"pass rank and world together, found rank {rank} and world {world}")
    if rank is not None and world is not None:
        return rank, world
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())
    return 0, 1
