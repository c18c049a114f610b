"""Arrays of batches as arrays of JAX: of the same memory where JAX can, else copied."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpy.typing as npt

import zarrow
from zarrow.data.nodes import called
from zarrow.data.plan import Plan
from zarrow.data.prefetch import Batch
from zarrow.errors import ExchangeError


def arrays(batch: Batch, sharding: Any = None) -> Any:
    """Return a batch as arrays of JAX, on the default device or by a sharding of the global batch."""
    if isinstance(batch, dict):
        return {name: arrays(rows, sharding) for name, rows in batch.items()}
    if isinstance(batch, tuple):
        return tuple(arrays(rows, sharding) for rows in batch)
    batch = narrowed(batch)
    if sharding is not None:
        return jax.make_array_from_process_local_data(sharding, batch)
    made = jax.numpy.from_dlpack(zarrow.asarray(batch))
    # DLPack keeps the memory's device.
    return made if jax.default_backend() == "cpu" else jax.device_put(made, jax.devices()[0])


def narrowed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values as numbers of JAX: of 32 bits in place of 64, unless `jax_enable_x64` is on.

    Raises
    ------
    ExchangeError
        An integer does not fit, or a float would become infinite. JAX would change it silently.
    """
    wanted = jax.dtypes.canonicalize_dtype(values.dtype)
    if wanted == values.dtype or not values.size:
        return values.astype(wanted, copy=False)
    if values.dtype.kind in "iu":
        limits = np.iinfo(wanted)
        lost = [value for value in (values.min(), values.max()) if not limits.min <= value <= limits.max]
        made = values.astype(wanted)
    else:
        with np.errstate(over="ignore"):
            made = values.astype(wanted)
        lost = list(values[np.isinf(made) & np.isfinite(values)].ravel()[:1])
    if lost:
        raise ExchangeError(
            f"JAX would narrow {values.dtype} to {wanted}, which {lost[0]} does not fit: call "
            "jax.config.update('jax_enable_x64', True)"
        )
    return made


def check_dtypes(plan: Plan) -> None:
    """Raise `ExchangeError` if JAX has no data type of a source, before anything is read."""
    for name, source in plan.sources.items():
        if not source.has_fixed_size:
            others = [name for name, source in plan.sources.items() if source.has_fixed_size]
            fields = f"fields={others} without it, or " if others else ""
            raise ExchangeError(
                f"{called(name)} has text, sparse rows or elements that may be missing, but JAX has no such "
                f"arrays: type {fields}zarrow.data.Loader(plan, transform=function) and make arrays in the "
                "function"
            )
        arrays(np.empty(0, source.array.dtype))
