"""The loader for PyTorch."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import Any, Unpack

import torch.utils.data

from zarrow.data.fields import Sources
from zarrow.data.loader import Loader
from zarrow.data.loader_options import LoaderOptions
from zarrow.data.plan import Plan
from zarrow.data.plan_options import planned
from zarrow.hints.parameters import says_parameters
from zarrow.torch.datasets import IterableDataset
from zarrow.torch.ranks import place
from zarrow.torch.tensors import check_dtypes, tensors


@says_parameters
class DataLoader(Loader):
    """Batches of a plan as tensors: shuffled, unless you pass `order="sequential"`.

    Tensors share the memory that zarrow decodes into.
    Everything of `zarrow.data.Loader` applies: each iteration is the next epoch, `state_dict()` resumes on
    any number of ranks, and `stats()` names the limiting stage. Threads of this process read ahead, so worker
    processes are not needed. They help a transform that holds the GIL for long: they yield the same batches
    in the same order, and states do not depend on their number; `stats()` then only counts batches.

    Parameters
    ----------
    plan, memory_nbytes, cache_nbytes, on_bad, transform, numbers, trace
    fields, batch_size, order, window_nbytes, last, seed
        As in `zarrow.data.Loader`. The transform gets tensors; spawned workers pickle it.
    rank, world
        Of `torch.distributed`, if it is initialized and none are given.
    num_workers, multiprocessing_context
        As in `torch.utils.data.DataLoader`.
    device
        Where tensors are: `"cuda:0"` or a `torch.device`, which needs `num_workers=0`. Each batch is copied
        there once, beside the consumer's work. The consumer's thread calls the transform in its current
        stream, and may use and drop the batch in that stream without waiting.

    Raises
    ------
    ValueError
        The samples fill no batch on each rank, or an argument is out of range.
    DeviceError
        There is no such device.
    ExchangeError
        PyTorch has no such data type.

    Examples
    --------
    >>> import zarrow.torch
    >>> for x, y in zarrow.torch.DataLoader("cells.zarr", fields=["weight", "kind"], batch_size=2):
    ...     print(x.dtype, y.shape)
    torch.float64 torch.Size([2])
    torch.float64 torch.Size([2])
    """

    def __init__(
        self,
        plan: Plan | Sources,
        *,
        rank: int | None = None,
        world: int | None = None,
        num_workers: int = 0,
        multiprocessing_context: Any = None,
        device: Any = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        if num_workers < 0:
            raise ValueError(f"num_workers must be at least 0, found {num_workers}")
        if num_workers and device is not None:
            raise ValueError("processes give no batches on a device: pass num_workers=0 with device=")
        plan, rest = planned(plan, options)
        check_dtypes(plan)
        rank, world = place(rank, world)
        super().__init__(plan, rank=rank, world=world, device=device, **rest)
        self._options.convert = tensors
        self.num_workers, self._context = num_workers, multiprocessing_context

    def __iter__(self) -> Iterator[Any]:
        """Begin the next epoch, or go on after `load_state_dict`. An earlier iterator is closed."""
        if not self.num_workers:
            return super().__iter__()
        self._begin()
        iterator = _Workers(self)
        self._running = weakref.ref(iterator)
        return iterator


class _Workers:
    """One iteration over the batches of worker processes."""

    def __init__(self, loader: DataLoader) -> None:
        own = Loader.__new__(Loader)
        own.__dict__.update(loader.__getstate__())
        self._loader, self._stats, self._pid = loader, loader.stats(), os.getpid()
        self._batches: Any = iter(
            torch.utils.data.DataLoader(
                IterableDataset._of(own),
                batch_size=None,
                num_workers=loader.num_workers,
                multiprocessing_context=loader._context,
                collate_fn=_unchanged,
            )
        )

    def __iter__(self) -> _Workers:
        return self

    def __next__(self) -> Any:
        if self._batches is None:
            raise StopIteration
        try:
            batch = next(self._batches)
        except BaseException:
            self.close()
            raise
        self._stats.batches += 1
        self._loader._step += 1
        self._loader._begun = True
        return batch

    def close(self) -> None:
        """End the processes. A forked child does not touch its parent's workers."""
        if os.getpid() != self._pid:
            return
        batches, self._batches = self._batches, None
        if batches is not None:
            batches._shutdown_workers()


def _unchanged(batch: Any) -> Any:
    """Return the batch; PyTorch's default turns arrays into tensors, and tuples into lists."""
    return batch
