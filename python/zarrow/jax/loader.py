"""The loader for JAX."""

from __future__ import annotations

import functools
from typing import Any, Unpack

import jax

from zarrow.data.fields import Sources
from zarrow.data.loader import Loader
from zarrow.data.loader_options import LoaderOptions
from zarrow.data.plan import Plan
from zarrow.data.plan_options import planned
from zarrow.hints.parameters import says_parameters
from zarrow.jax.batches import arrays, check_dtypes


@says_parameters
class DataLoader(Loader):
    """Batches of a plan as arrays of JAX: shuffled, unless you pass `order="sequential"`.

    Everything of `zarrow.data.Loader` applies: each iteration is the next epoch, `state_dict()` resumes on
    any number of ranks, and `stats()` names the limiting stage.

    On the CPU an array shares the memory that zarrow decodes into, if it begins at a multiple of 64 bytes:
    each batch does if its samples together are such a multiple. Otherwise JAX copies. Numbers of 64 bits
    become numbers of 32 bits, as everywhere in JAX, unless `jax_enable_x64` is on. One that does not fit is
    an error, where JAX would change it silently.

    Parameters
    ----------
    plan, memory_nbytes, cache_nbytes, on_bad, transform, numbers, trace
    fields, batch_size, order, window_nbytes, last, seed
        As in `zarrow.data.Loader`. The transform gets arrays of JAX.
    rank, world
        By default `jax.process_index()` and `jax.process_count()`.
    sharding
        A sharding of the global batch, which has the batches of all ranks: arrays are global ones, and this
        process puts its batch on its devices. The plan must have `last="pad"` or `last="drop"`.

    Raises
    ------
    ValueError
        The samples fill no batch on each rank, batches differ in size and cannot be sharded, or an argument
        is out of range.
    ExchangeError
        JAX has no such data type, or a number does not fit.

    Examples
    --------
    >>> import zarrow
    >>> import zarrow.jax
    >>> plan = zarrow.jax.Plan(zarrow.open("data.zarr")["temperature"], batch_size=16)
    >>> batch = next(iter(zarrow.jax.DataLoader(plan)))
    >>> type(batch).__name__, batch.shape
    ('ArrayImpl', (16, 6, 8))
    """

    def __init__(
        self,
        plan: Plan | Sources,
        *,
        rank: int | None = None,
        world: int | None = None,
        sharding: Any = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        if (rank is None) != (world is None):
            raise ValueError(f"pass rank and world together, found rank {rank} and world {world}")
        if rank is None or world is None:
            rank, world = jax.process_index(), jax.process_count()
        plan, rest = planned(plan, options)
        check_dtypes(plan)
        if sharding is not None:
            if plan.last not in ("pad", "drop"):
                raise ValueError(
                    'the last batch is smaller and cannot be sharded: pass last="drop" to the plan'
                )
            if rest.get("on_bad") == "skip":
                raise ValueError('batches without damaged samples cannot be sharded: pass on_bad="fill"')
            for source in plan.sources.values():
                # JAX raises an error if the batch cannot be divided.
                sharding.shard_shape((plan.batch_size * world, *source.sample_shape))
        super().__init__(plan, rank=rank, world=world, **rest)
        self._options.convert = functools.partial(arrays, sharding=sharding)
