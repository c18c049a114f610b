"""Data sets for PyTorch's loaders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch.utils.data

from zarrow.data.loader import Loader
from zarrow.data.plan import SOLE, Plan
from zarrow.data.prefetch import OnBad
from zarrow.torch.tensors import place, tensors


class Samples(list[Any]):
    """Samples that share the memory of one batch."""

    def __init__(self, batch: Any, samples: list[Any]) -> None:
        super().__init__(samples)
        self.batch = batch


def collate(samples: Sequence[Any]) -> Any:
    """Return the batch of samples of a `Dataset`, without a copy; for `DataLoader(collate_fn=)`.

    Anything else goes to PyTorch's `default_collate`.
    """
    return samples.batch if isinstance(samples, Samples) else torch.utils.data.default_collate(list(samples))


class Dataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """Samples of a plan by number, for samplers of PyTorch. Each batch is one read.

    The sampler chooses order and batches: a `zarrow.torch.DataLoader` decodes fewer chunks. Pass
    `collate_fn=zarrow.torch.collate` to get each batch without a copy.

    Parameters
    ----------
    plan
        Its samples by increasing number. The data set of a part of a split begins at 0, too.
    transform
        Called with each sample of `dataset[i]`, and with each batch of `__getitems__` before it is divided.
    """

    def __init__(self, plan: Plan, *, transform: Callable[[Any], Any] | None = None) -> None:
        self.plan, self.transform = plan, transform
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Let random crops be those of an epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Read samples at once; chunks that they share are decoded once."""
        wanted = np.asarray(indices, np.int64)
        outside = wanted[(wanted < -len(self)) | (wanted >= len(self))]
        if len(outside):
            raise IndexError(f"sample {outside[0]} is out of range for {len(self)} samples")
        places = self.plan.places_by_number(wanted % max(len(self), 1))
        arrays = {}
        for name, source in self.plan.sources.items():
            arrays[name] = np.empty((len(places), *source.sample_shape), source.array.dtype)
            source._read(places, arrays[name], (self.plan.seed, self._epoch))
        batch = tensors(arrays[SOLE] if set(arrays) == {SOLE} else arrays)
        if self.transform is not None:
            batch = self.transform(batch)
        if isinstance(batch, dict):
            return Samples(
                batch, [{name: rows[at] for name, rows in batch.items()} for at in range(len(places))]
            )
        return Samples(batch, [batch[at] for at in range(len(places))])


class IterableDataset(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Batches of a plan, for `torch.utils.data.DataLoader(dataset, batch_size=None)`.

    With worker processes, each reads every n-th batch: the loader yields the same batches in the same order
    as without. Each worker decodes the chunks of its batches, so that several workers decode a chunk; without
    workers it is decoded once. PyTorch starts workers anew for each epoch: call `set_epoch` before.

    Parameters
    ----------
    plan, memory_nbytes, on_bad, transform, numbers
        As in `zarrow.data.Loader`. Batches are tensors. Spawned workers pickle the transform.
    rank, world
        Of `torch.distributed`, if it is initialized and none are given.
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
    ) -> None:
        rank, world = place(rank, world)
        self.loader = Loader(
            plan,
            rank=rank,
            world=world,
            memory_nbytes=memory_nbytes,
            on_bad=on_bad,
            transform=transform,
            numbers=numbers,
        )
        self.loader._options.convert = tensors

    @classmethod
    def _of(cls, loader: Loader) -> IterableDataset:
        """Return the batches of a loader."""
        made = cls.__new__(cls)
        made.loader = loader
        return made

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be an epoch from its beginning."""
        self.loader.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        self.loader._turn = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(self.loader)
