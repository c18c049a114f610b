"""Arrays of batches as arrays of JAX: of the same memory where JAX can, else copied."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import zarrow
from zarrow.data.plan import Plan
from zarrow.data.prefetch import Batch
from zarrow.errors import ExchangeError


def arrays(batch: Batch, sharding: Any = None) -> Any:
    """Return a batch as arrays of JAX, on the default device or by a sharding of the global batch."""
    if isinstance(batch, dict):
        return {name: arrays(rows, sharding) for name, rows in batch.items()}
    if sharding is not None:
        return jax.make_array_from_process_local_data(sharding, batch)
    made = jax.numpy.from_dlpack(zarrow.asarray(batch))
    # DLPack keeps the memory's device.
    return made if jax.default_backend() == "cpu" else jax.device_put(made, jax.devices()[0])


def check_dtypes(plan: Plan) -> None:
    """Raise `ExchangeError` if JAX has no data type of a source, before anything is read."""
    for name, source in plan.sources.items():
        if not source.has_fixed_size:
            raise ExchangeError(
                f"source {name!r} has text, sparse rows or elements that may be missing, but JAX has no such "
                "arrays: type zarrow.data.Loader(plan, transform=function) and make arrays in the function",
                kind="no_such_type",
            )
        arrays(np.empty(0, source.array.dtype))
