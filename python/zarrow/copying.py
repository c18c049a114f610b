"""Copies of arrays and groups, within a store and from one to another.

1. An array keeps its elements, data type, chunks, shards, codecs, fill value, axis names and attributes. Its
   version of the format becomes that of the group it is copied to; `labels` says what moves then.
2. Up to 256 MiB it is read whole, and takes the place of an array that is there in one step. A larger one
   is copied in parts of whole chunks, to a place where nothing is.
3. A group keeps its attributes and members. All are listed before the first is written, so that a group can
   be copied to a place in itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from zarrow import labels
from zarrow._zarrow import Array, Group
from zarrow.array_options import Store
from zarrow.creation import _create, layout_of

_PART_NBYTES = 1 << 28


def copy_array(array: Array, target: Store | Group, path: str, zarr_format: int) -> None:
    """Copy an array to a path of a store or a group (steps 1 and 2).

    Raises
    ------
    NodeExistsError
        There is a group; or anything, where the array is large.
    """
    options = {**layout_of(array, zarr_format), **labels.carried(array, zarr_format)}
    described = {"zarr_format": zarr_format, "has_fill_value": "fill_value" in options}
    # Of text nobody knows how long it is: a guess.
    item_nbytes = 16 if array.nbytes is None else array.nbytes // max(array.size, 1)
    if item_nbytes * array.size <= _PART_NBYTES:
        _create(target, path, "none", described, data=array[...], overwrite="array", **options)
        return
    copy = _create(target, path, "none", described, shape=array.shape, **options)
    try:
        for part in _parts(array.shape, array.write_unit or array.shape, item_nbytes):
            copy[part] = array[part]
    except BaseException as error:
        error.add_note(f"the copy at {copy.name!r} has only some of the elements: erase it")
        raise


def copy_group(group: Group, target: Group, path: str) -> None:
    """Copy all that is below a group to a group at a path, which keeps what else it has (step 3)."""
    below = group.members(max_depth=None)
    copy = target.require_group(path) if path else target
    copy.attrs.update(group.attrs)
    for name, member in below:
        if isinstance(member, Array):
            copy_array(member, copy, name, copy.zarr_format)
        else:
            copy.require_group(name).attrs.update(member.attrs)


def _parts(shape: tuple[int, ...], unit: tuple[int, ...], item_nbytes: int) -> Iterator[tuple[slice, ...]]:
    """Divide an array into regions of whole units, each of some 256 MiB or one unit long."""
    if not shape:
        yield ()
        return
    row_nbytes = max(item_nbytes * math.prod(shape[1:]), 1)
    step = max(_PART_NBYTES // row_nbytes // unit[0], 1) * unit[0]
    is_divided_further = step * row_nbytes > _PART_NBYTES
    for start in range(0, shape[0], step):
        along = slice(start, min(start + step, shape[0]))
        if is_divided_further:
            for rest in _parts(shape[1:], unit[1:], item_nbytes * step):
                yield (along, *rest)
        else:
            yield (along,)
