"""Reads of batches into the buffers of `zarrow.gpu`.

1. Elements are decoded into pinned memory and copied to their places on the device: each crosses once. No
   chunk is allocated on the device in between.
2. Memory of another library, such as CuPy, is viewed as a Tensor. A read into it runs after the work that the
   library has queued, and before its later work.
3. Elements on a device are native-endian, whatever their byte order in the store.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrow._zarrow import Array, DeviceTensor
    from zarrow.zarr_python.batches import Plan
    from zarrow.zarr_python.chunks import Chunks


def tensor_of(buffer: Any, chosen: type) -> DeviceTensor | None:
    """Return the memory of a buffer of `zarrow.gpu`; None for others, or if another class was chosen."""
    module = sys.modules.get("zarrow.gpu.buffers")
    if module is None or type(buffer) is not module.NDBuffer or chosen is not module.NDBuffer:
        return None
    found: DeviceTensor = module._tensor(buffer.as_ndarray_like())
    return found


def read(
    chunks: Chunks,
    shape: tuple[int, ...],
    found: Plan,
    result: DeviceTensor,
    coalescing: tuple[int, int] | None,
) -> list[tuple[int, ...]]:
    """Read the selections of a batch to their places; return the indices of the missing chunks."""
    array = chunks.engine.array(shape, coalescing=coalescing)
    for index, place in found.parts:
        reader(array, found.kind).read(index, out=result[(*place, ...)])
    return chunks.engine.take_missing(array)


def reader(array: Array, kind: str) -> Any:
    """Return what reads selections of a kind."""
    return {"basic": array, "orthogonal": array.oindex, "vectorized": array.vindex}[kind]
