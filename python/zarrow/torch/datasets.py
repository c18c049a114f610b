"""Data sets for PyTorch's loaders."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import torch.utils.data

from zarrow.data.fields import Fields, Sources
from zarrow.data.loader import Loader
from zarrow.data.loader_options import LoaderOptions
from zarrow.data.plan import Plan
from zarrow.data.plan_options import planned
from zarrow.data.random_access import RandomAccess
from zarrow.data.stats import Stats
from zarrow.errors import ZarrowWarning
from zarrow.hints.parameters import says_parameters
from zarrow.torch.ranks import place
from zarrow.torch.shared_epoch import SharedEpoch
from zarrow.torch.tensors import check_dtypes, part, tensors


class Samples(list[Any]):
    """Samples that share the memory of one batch."""

    def __init__(self, batch: Any, samples: list[Any]) -> None:
        super().__init__(samples)
        self.batch = batch


def collate(samples: Sequence[Any]) -> Any:
    """Return the batch of samples of a `Dataset`, without a copy; for `DataLoader(collate_fn=)`.

    Anything else goes to PyTorch's `default_collate`.

    Examples
    --------
    >>> import zarrow.torch
    >>> dataset = zarrow.torch.Dataset("data.zarr/temperature")
    >>> zarrow.torch.collate(dataset.__getitems__([5, 1, 7])).shape
    torch.Size([3, 6, 8])
    """
    return samples.batch if isinstance(samples, Samples) else torch.utils.data.default_collate(list(samples))


@says_parameters
class Dataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """Samples of a plan by number, for samplers of PyTorch. Each batch is one read.

    The sampler chooses order and batches: a `zarrow.torch.DataLoader` decodes fewer chunks. Pass
    `collate_fn=zarrow.torch.collate` to get each batch without a copy.

    Parameters
    ----------
    plan
        Its samples by increasing number. The data set of a part of a split begins at 0, too. Or the sources
        of a plan: a path, a group, an array and so on.
    fields
        With sources: as in `zarrow.data.Plan`.
    transform
        Called with the tensors of a batch before it is divided into samples; `dataset[i]` is a batch of one.
        It returns a tensor, or a dict, tuple or list of them, with one row for each sample.

    Raises
    ------
    ExchangeError
        PyTorch has no such data type.

    Examples
    --------
    >>> import torch.utils.data
    >>> import zarrow.torch
    >>> dataset = zarrow.torch.Dataset("data.zarr/temperature")
    >>> loader = torch.utils.data.DataLoader(dataset, 16, shuffle=True, collate_fn=zarrow.torch.collate)
    >>> [len(batch) for batch in loader]
    [16, 16, 16]
    """

    def __init__(
        self,
        plan: Plan | Sources,
        *,
        fields: Fields | None = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self._epoch, self._samples = SharedEpoch(), RandomAccess(plan, fields=fields)
        self.plan, self.transform = self._samples.plan, transform
        check_dtypes(self.plan)

    def set_epoch(self, epoch: int) -> None:
        """Draw the random crops of an epoch, also in persistent workers."""
        self._epoch.set(epoch)

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Read samples at once; chunks that they share are decoded once."""
        self._samples.epoch = self._epoch.value
        batch, count = tensors(self._samples.batch(indices)), len(indices)
        if self.transform is not None:
            batch = self.transform(batch)
        return Samples(batch, [part(batch, at, count) for at in range(count)])


@says_parameters
class IterableDataset(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Batches of a plan, for `torch.utils.data.DataLoader(dataset, batch_size=None)`.

    Batches are shuffled, unless you pass `order="sequential"`: PyTorch's `shuffle=` does not apply.

    With worker processes, each reads every n-th batch: the loader yields the same batches in the same order
    as without. Each worker decodes the chunks of its batches, so that several workers decode a chunk; without
    workers it is decoded once. Without workers, and with persistent ones, each iteration is the next epoch.
    Otherwise PyTorch starts workers anew, at the same epoch: call `set_epoch` before each.

    torchdata's `StatefulDataLoader` resumes it exactly, with the same number of workers.

    Parameters
    ----------
    plan, memory_nbytes, cache_nbytes, on_bad, transform, numbers, trace
    fields, batch_size, order, window_nbytes, last, seed
        As in `zarrow.data.Loader`. Batches are tensors. Spawned workers pickle the transform.
    rank, world
        Of `torch.distributed`, if it is initialized and none are given.

    Raises
    ------
    ExchangeError
        PyTorch has no such data type.

    Examples
    --------
    >>> import torch.utils.data
    >>> import zarrow.torch
    >>> batches = zarrow.torch.IterableDataset("data.zarr/temperature", batch_size=16)
    >>> [len(batch) for batch in torch.utils.data.DataLoader(batches, batch_size=None)]
    [16, 16, 16]
    """

    def __init__(
        self,
        plan: Plan | Sources,
        *,
        rank: int | None = None,
        world: int | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        plan, rest = planned(plan, options)
        check_dtypes(plan)
        rank, world = place(rank, world)
        loader = Loader(plan, rank=rank, world=world, **rest)
        loader._options.convert = tensors
        self._take(loader)

    @classmethod
    def _of(cls, loader: Loader) -> IterableDataset:
        """Return the batches of a loader."""
        made = cls.__new__(cls)
        made._take(loader)
        return made

    def _take(self, loader: Loader) -> None:
        self.loader, self._epoch = loader, SharedEpoch()
        self._turn = (0, 1)
        self._go_on(loader.state_dict(), 0)

    def _go_on(self, begin: Mapping[str, Any], batches: int) -> None:
        """Let the next iteration begin at a state of the loader, after batches of this process."""
        self._begin, self._before = begin, batches
        # Counts of the iteration that has begun.
        self._stats: Stats | None = None

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be an epoch from its beginning, also in persistent workers."""
        self._epoch.set(epoch)
        self._follow()

    def _follow(self) -> None:
        """Go to an epoch that was set."""
        if (epoch := self._epoch.changed()) is not None:
            self.loader.set_epoch(epoch)
            self._go_on(self.loader.state_dict(), 0)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        self._follow()
        turn, turns = _turn()
        if self.loader._begun:
            # The loader begins the next epoch.
            self._before = 0
        if self._before and self._turn != (turn, turns):
            if self._turn != (0, 1):
                raise ValueError(
                    f"the state is of worker {self._turn[0]} of {self._turn[1]}: pass as many workers"
                )
            self.loader.load_state_dict({**self._begin, "step": self._begin["step"] + self._before})
            self._before = 0
        self._turn = (turn, turns)
        self.loader._turn = (turn + self._before * turns, turns)
        iterator = iter(self.loader)
        self._begin, self._stats = self.loader.state_dict(), self.loader.stats()
        if torch.utils.data.get_worker_info() is None:
            return iterator
        return _warning(iterator, self._stats, f"worker {turn} of {turns}")

    def state_dict(self) -> dict[str, Any]:
        """Return the place of this process, or of this worker, in the epoch."""
        batches = self._before + (0 if self._stats is None else self._stats.batches)
        return {"begin": self._begin, "batches": batches, "turn": list(self._turn)}

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Let the next iteration go on after a state: in a worker, after that of the same worker.

        A state from a loader without workers, or of `zarrow.torch.DataLoader`, resumes on another number of
        ranks or with another batch size, as `zarrow.data.Loader.load_state_dict` says.

        Raises
        ------
        TypeError
            It is no state.
        ValueError
            The state is of another plan, or of one of several workers on another number of ranks or with
            another batch size.
        """
        states = [state] if isinstance(state, Mapping) else state
        if isinstance(states, str | bytes) or not isinstance(states, Sequence):
            raise TypeError(f"a state is the dict of state_dict(), found {type(state).__name__}")
        if not states:
            raise ValueError("there is no state: pass one state, or the states of all ranks")
        plan = self.loader.plan
        own = {"world": self.loader.world, "batch_size": plan.batch_size, "last": plan.last}
        try:
            begins = [each.get("begin", each) for each in states]
            batches = [operator.index(each.get("batches", 0)) for each in states]
            steps = [
                operator.index(begin["step"]) + count for begin, count in zip(begins, batches, strict=True)
            ]
            workers = [_worker(each.get("turn", (0, 1))) for each in states]
            others = [name for name in own if any(begin[name] != own[name] for begin in begins)]
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"the state is damaged: {error!r}; pass the result of state_dict()") from error
        if len(states) == 1 and not others:
            self.loader.load_state_dict(begins[0])
            self._go_on(begins[0], batches[0])
            self._turn = workers[0]
            return
        if any(worker != (0, 1) for worker in workers):
            other = others[0] if others else "number of states"
            raise ValueError(
                f"the state is of one of {workers[0][1]} workers, with another {other}: only loaders "
                "without workers, and zarrow.torch.DataLoader, have states that resume so"
            )
        found = [{**begin, "step": step} for begin, step in zip(begins, steps, strict=True)]
        self.loader.load_state_dict(found if len(found) > 1 else found[0])
        self._go_on(self.loader.state_dict(), 0)
        self._turn = (0, 1)


def _warning(batches: Iterator[Any], stats: Stats, worker: str) -> Iterator[Any]:
    """Warn of damaged samples after the last batch: the statistics stay in the worker."""
    yield from batches
    if stats.bad:
        warnings.warn(
            f"{worker} found damaged chunks, with the samples {', '.join(map(str, stats.bad[:10]))}"
            f"{', ...' if len(stats.bad) > 10 else ''}; without workers, stats().bad lists all",
            ZarrowWarning,
            stacklevel=2,
        )


def _worker(turn: Sequence[int]) -> tuple[int, int]:
    number, count = map(operator.index, turn)
    return number, count


def _turn() -> tuple[int, int]:
    """Return the number of this worker and the number of workers; (0, 1) without workers."""
    worker = torch.utils.data.get_worker_info()
    return (0, 1) if worker is None else (worker.id, worker.num_workers)
