"""The place of a process among the ranks of `torch.distributed`."""

from __future__ import annotations

import torch.distributed


def place(rank: int | None, world: int | None) -> tuple[int, int]:
    """Return the given rank and world, else the ranks of `torch.distributed`, else one process."""
    if (rank is None) != (world is None):
        raise ValueError(f"pass rank and world together, found rank {rank} and world {world}")
    if rank is not None and world is not None:
        return rank, world
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())
    return 0, 1
