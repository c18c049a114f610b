"""The loader for PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch.utils.data

from zarrow.data.loader import Loader
from zarrow.data.plan import Plan
from zarrow.data.prefetch import OnBad
from zarrow.data.stats import Stats
from zarrow.torch.datasets import IterableDataset
from zarrow.torch.tensors import place, tensors


class DataLoader(Loader):
    """Batches of a plan as tensors, which share the memory that zarrow decodes into.

    Everything of `zarrow.data.Loader` applies: each iteration is the next epoch, `state_dict()` resumes on
    any number of ranks, and `stats()` names the limiting stage. Threads of this process read ahead, so worker
    processes are not needed. They help a transform that holds the GIL for long: they yield the same batches
    in the same order, and states do not depend on their number; `stats()` then only counts batches.

    Parameters
    ----------
    plan, memory_nbytes, on_bad, transform, numbers
        As in `zarrow.data.Loader`. The transform gets tensors; spawned workers pickle it.
    rank, world
        Of `torch.distributed`, if it is initialized and none are given.
    num_workers, multiprocessing_context
        As in `torch.utils.data.DataLoader`.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        rank: int | None = None,
        world: int | None = None,
        memory_nbytes: int = 256 << 20,
        on_bad: OnBad = "raise",
        transform: Callable[[Any], Any] | None = None,
        numbers: bool = False,
        num_workers: int = 0,
        multiprocessing_context: Any = None,
    ) -> None:
        rank, world = place(rank, world)
        super().__init__(
            plan,
            rank=rank,
            world=world,
            memory_nbytes=memory_nbytes,
            on_bad=on_bad,
            transform=transform,
            numbers=numbers,
        )
        self._options.convert = tensors
        self.num_workers, self._context = num_workers, multiprocessing_context

    def __iter__(self) -> Iterator[Any]:
        """Begin the next epoch, or go on after `load_state_dict`."""
        if not self.num_workers:
            return super().__iter__()
        self._begin()
        return self._from_workers(self._stats)

    def _from_workers(self, stats: Stats) -> Iterator[Any]:
        """Yield the batches of worker processes, and count them here."""
        own = Loader.__new__(Loader)
        own.__dict__.update(self.__getstate__())
        loader = torch.utils.data.DataLoader(
            IterableDataset._of(own),
            batch_size=None,
            num_workers=self.num_workers,
            multiprocessing_context=self._context,
        )
        for batch in loader:
            if stats is not self._stats:
                # A later iteration has begun.
                return
            stats.batches += 1
            self._step += 1
            yield batch
