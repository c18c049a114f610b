"""Arrays that are not in memory, on their way into a store: they are read part by part.

1. An array or a group of zarr-python is opened here; what zarrow cannot open is read by zarr-python.
2. A part is some 64 MiB, or one chunk: whole chunks of the new array, and of the source where that fits.
3. In a store that cannot build an array in a hidden place, an array that replaces another one, or a group,
   might be read from there: then it is read whole first.
4. An object that stores itself, such as an AnnData, is refused: the error says what to type.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

from zarrow._zarrow import Array, Group, open
from zarrow.errors import ZarrowError

_PART_NBYTES = 1 << 26

# A guess for elements of any length.
_TEXT_NBYTES = 64


def opened(data: Any) -> Any:
    """Return data as they can be stored: a node of zarr-python is opened (steps 1 and 4).

    Raises
    ------
    TypeError
        The object stores itself.
    """
    # Looked up in the class: an instance of zarrow would compute a hint.
    if callable(getattr(type(data), "write_zarr", None)):
        raise TypeError(
            f"{type(data).__name__} is not an array and stores itself: type x.write_zarr(path), and "
            "zarrow.open(path) to read the result"
        )
    if type(data).__module__.partition(".")[0] == "zarr" and hasattr(data, "store_path"):
        with contextlib.suppress(ZarrowError, TypeError, ValueError, OSError):
            return open(data.store, data.path, mode="r")
    return data


def is_read_in_parts(data: Any) -> bool:
    """Return whether the elements are not in memory, and can be read part by part."""
    if isinstance(data, Array) or getattr(type(data), "_is_read_in_parts", False):
        return True
    is_hdf5 = type(data).__module__.partition(".")[0] == "h5py" and hasattr(data, "dims")
    return is_hdf5 and bool(data.shape) and not data.dtype.hasobject


def is_divided(data: Any) -> bool:
    """Return whether an array in memory is large enough to be stored part by part for `progress=`."""
    if type(data).__module__ != "numpy" or type(data).__name__ != "ndarray":
        return False
    return data.dtype.kind in "biufcmM" and data.dtype.isnative and data.nbytes > _PART_NBYTES


def may_be_replaced(source: Array, target: Any, path: str, overwrite: bool | str) -> bool:
    """Return whether creating an array at a path may erase the source before it is read (step 3)."""
    is_remote = "://" in source.store or source.store.startswith("<")
    if not overwrite or not is_remote:
        return False
    if isinstance(target, Group):
        place = "/".join(filter(None, (target.path, path)))
        return source.store == target.store and f"{source.path}/".startswith(f"{place}/" if place else "")
    return "://" in target if isinstance(target, str) else not isinstance(target, os.PathLike)


def estimated_nbytes(source: Array) -> int:
    """Return the size in memory of the elements; of text, an estimate."""
    return source.size * _TEXT_NBYTES if source.nbytes is None else source.nbytes


def parts_of(
    source: Any, report: Callable[[int], object] | None = None
) -> Callable[[list[int]], Iterator[tuple[tuple[slice, ...], Any]]]:
    """Return the function that reads a source in whole chunks of a shape, each with its place.

    `report` is called with the bytes of each part after it was stored.
    """
    own_unit = source.write_unit if isinstance(source, Array) else getattr(source, "chunks", None)
    item_nbytes = source.dtype.itemsize if source.dtype.kind not in "TO" else _TEXT_NBYTES

    def each(unit: list[int]) -> Iterator[tuple[tuple[slice, ...], Any]]:
        for place in parts(source.shape, tuple(unit), own_unit or tuple(unit), item_nbytes):
            part = source[place]
            nbytes = item_nbytes * math.prod(part.shape)
            yield place, part
            if report is not None:
                # The caller has stored the part.
                del part
                report(nbytes)

    return each


def parts(
    shape: tuple[int, ...], unit: tuple[int, ...], other_unit: tuple[int, ...], item_nbytes: int
) -> Iterator[tuple[slice, ...]]:
    """Divide an array into regions of whole units, and also of whole other units if large enough."""
    if not shape:
        yield ()
        return
    row_nbytes = max(item_nbytes * math.prod(shape[1:]), 1)
    own = max(unit[0], 1)
    step = max(_PART_NBYTES // row_nbytes // own, 1) * own
    common = math.lcm(own, max(other_unit[0], 1))
    step -= step % common if step >= common else 0
    is_divided_further = step * row_nbytes > _PART_NBYTES
    for start in range(0, shape[0], step):
        along = slice(start, min(start + step, shape[0]))
        if is_divided_further:
            for rest in parts(shape[1:], unit[1:], other_unit[1:], item_nbytes * step):
                yield (along, *rest)
        else:
            yield (along, *(slice(0, extent) for extent in shape[1:]))
