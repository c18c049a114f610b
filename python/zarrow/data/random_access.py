"""Samples of a plan by number, for samplers of other libraries."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from zarrow.data.current_arrays import CurrentArrays
from zarrow.data.fields import Fields, Sources
from zarrow.data.permutation import Numbers
from zarrow.data.plan import Plan
from zarrow.data.plan_options import planned
from zarrow.data.prefetch import Batch
from zarrow.hints.parameters import says_parameters


@says_parameters
class RandomAccess:
    """Samples of a plan by number: a `Sequence` for samplers, and a data source of grain.

    `grain.MapDataset.source` and `grain.DataLoader` take it. The sampler chooses order and batches; a
    `zarrow.data.Loader` decodes fewer chunks. Threads may share it, and workers pickle it.

    Parameters
    ----------
    plan
        Its samples by increasing number. The samples of a split also begin at 0. Or the sources of a plan: a
        path, a group, an array and so on.
    fields
        With sources: as in `zarrow.data.Plan`.
    epoch
        The epoch of random crops.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import data
    >>> plan = data.Plan(zarrow.open("data.zarr")["temperature"], batch_size=4)
    >>> samples = data.RandomAccess(plan)
    >>> len(samples), samples[-1].shape, samples.batch([3, 1, 3]).shape
    (48, (6, 8), (3, 6, 8))
    """

    def __init__(self, plan: Plan | Sources, *, fields: Fields | None = None, epoch: int = 0) -> None:
        self.plan, _ = planned(plan, {} if fields is None else {"fields": fields})
        self.epoch = operator.index(epoch)
        # Places by number, unless they are computed at once.
        self._places: Numbers | None = None
        self._current = CurrentArrays(self.plan._arrays())

    def __repr__(self) -> str:
        """Return a text that is equal for equal plans: grain compares it when it resumes."""
        return f"<zarrow.data.RandomAccess {self.plan.fingerprint} of {len(self)} samples>"

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.plan)

    def __getitem__(self, index: SupportsIndex) -> Any:
        """Read one sample: an array, or a dict or tuple of arrays."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """Read samples at once; chunks that they share are decoded once. Samples share memory."""
        batch = self.batch(indices)
        if isinstance(batch, dict):
            return [{name: rows[at] for name, rows in batch.items()} for at in range(len(indices))]
        if isinstance(batch, tuple):
            return [tuple(rows[at] for rows in batch) for at in range(len(indices))]
        return [batch[at] for at in range(len(indices))]

    def batch(self, indices: Sequence[SupportsIndex]) -> Batch:
        """Read samples at once, as a batch in new memory.

        Raises
        ------
        IndexError
            A number is out of range.
        StaleHandleError
            An array was made smaller, replaced or erased: noticed within about a second.
        NotFoundError
            An array was erased, and the read has found a chunk missing.
        """
        wanted = np.array([operator.index(index) for index in indices], np.int64)
        outside = wanted[(wanted < -len(self)) | (wanted >= len(self))]
        if len(outside):
            raise IndexError(f"sample {outside[0]} is out of range for {len(self)} samples")
        places = self._places_at(wanted % max(len(self), 1))
        draw, arrays = (self.plan.seed, self.epoch), {}
        for name, source in self.plan.sources.items():
            shape = (len(places), *source.sample_shape)
            out = np.empty(shape, source.array.dtype) if source.has_fixed_size else None
            found = source._read(places, out, draw)
            arrays[name] = found if out is None else out
        self._current.check_now_and_then()
        batch: Batch = self.plan._batch(arrays)
        return batch

    def _places_at(self, ranks: Numbers) -> Numbers:
        if self.plan._numbers is None:
            return self.plan.places_by_number(ranks)
        if self._places is None:
            self._places = self.plan.places_by_number(np.arange(len(self)))
        return self._places[ranks]
