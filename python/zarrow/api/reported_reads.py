"""Reads the members of a group for `load(progress=...)`, in an order that can be reported.

1. The hierarchy is opened first, so that the total is known.
2. Small arrays are read many at a time, as without `progress`. A large array of numbers is read part by
   part, in whole chunks or shards, straight into the memory of the result. Any other array is read at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Group, _import, _read_each, _RecycledMemory, asarray
from zarrow.interchange.lazy_arrays import estimated_nbytes, parts

if TYPE_CHECKING:
    from zarrow import DecodedArray
    from zarrow.api.amounts import Amount
    from zarrow.groups.descent import Way

# Elements that are read between two reports.
_READ_NBYTES = 64 << 20

ENCODED_ARRAYS = ("nullable-integer", "nullable-boolean", "nullable-string-array", "categorical")


def load_members(members: list[tuple[str, Any]], way: Way, amount: Amount) -> dict[str, Any]:
    """Read all arrays among the members; groups become nested dicts."""
    places: list[tuple[dict[str, Any], str, Array]] = []
    encoded: list[tuple[dict[str, Any], str, Group]] = []

    def collect(members: list[tuple[str, Any]], way: Way) -> dict[str, Any]:
        found: dict[str, Any] = {}
        # Arrays come first, as without `progress`.
        for name, member in members:
            if isinstance(member, Array):
                found[name] = None
                places.append((found, name, member))
                amount.expect(estimated_nbytes(member))
        for name, member in members:
            if isinstance(member, Group):
                found[name] = None
                if member.attrs.get("encoding-type") in ENCODED_ARRAYS:
                    encoded.append((found, name, member))
                else:
                    found[name] = collect(member.items(), way.to(member))
        return found

    found = collect(members, way)
    batch: list[tuple[dict[str, Any], str, Array]] = []
    waiting = 0

    def read_batch() -> None:
        amount.begin(waiting)
        elements = _read_each([array for *_, array in batch])
        for (owner, name, _), read in zip(batch, elements, strict=True):
            owner[name] = read
        amount.finish()

    for owner, name, array in places:
        nbytes = estimated_nbytes(array)
        if batch and waiting + nbytes > _READ_NBYTES:
            read_batch()
            batch, waiting = [], 0
        if nbytes > _READ_NBYTES:
            owner[name] = read_array(array, amount)
        else:
            batch.append((owner, name, array))
            waiting += nbytes
    if batch:
        read_batch()
    for owner, name, group in encoded:
        owner[name] = group.read()
    amount.finish_all()
    return found


def read_array(array: Array, amount: Amount) -> DecodedArray:
    """Read all elements of an array, which `amount` already expects (step 2)."""
    nbytes = estimated_nbytes(array)
    amount.begin(nbytes)
    unit, dtype = array.write_unit, array.dtype
    kind = array.data_type
    is_masked = not isinstance(kind, str) and kind.get("name") == "zarrs.optional"
    is_plain = dtype.kind in "biufcmM" and dtype.isnative and not is_masked
    if unit is None or not is_plain or nbytes <= _READ_NBYTES:
        whole: DecodedArray = array[...]
        amount.finish()
        return whole
    memory: Any = _RecycledMemory(nbytes)
    values = _import("numpy").ndarray(array.shape, dtype, memory)
    for region in parts(array.shape, unit, unit, dtype.itemsize):
        array.read(region, out=values[region])
        amount.add(dtype.itemsize * math.prod(part.stop - part.start for part in region))
    amount.finish()
    return asarray(values)
