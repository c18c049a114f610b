"""Reads for `load(progress=...)` and `Array.read(progress=...)`, in an order that can be reported.

1. The hierarchy is opened first, so that the total is known.
2. Small arrays are read many at a time, as without `progress`. A large array of numbers is read part by
   part, in whole chunks or shards, straight into the memory of the result. Any other array is read at once.
3. So is a selection, unless it is a block: integers, and slices of step 1. `out` is filled at once, unless it
   is an array of NumPy, PyTorch or zarrow without overlap: other slices may be copies, or may not exist.
4. A mask is read with each part, and copied with its elements into the memory of the result.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Group, _import, _masked, _read_each, _RecycledMemory, _shapes_of, asarray
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount
from zarrow.arrays.casting import read_type
from zarrow.interchange.lazy_arrays import estimated_nbytes, parts

if TYPE_CHECKING:
    from zarrow import DecodedArray
    from zarrow.groups.descent import Way

# Elements that are read between two reports.
READ_NBYTES = 64 << 20

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
        if batch and waiting + nbytes > READ_NBYTES:
            read_batch()
            batch, waiting = [], 0
        if nbytes > READ_NBYTES:
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
    block = divided(array, ...) if nbytes > READ_NBYTES else None
    elements: DecodedArray = array[...] if block is None else read_block(array, block, amount)
    amount.finish()
    return elements


def read_selection(
    array: Array, selection: Any, out: Any, dtype: Any, mask: Any, order: str, progress: Progress | bool
) -> DecodedArray | Any:
    """Read a selection for `Array.read` (step 3)."""
    options: dict[str, Any] = {"out": out, "dtype": dtype, "mask": mask, "order": order}
    is_valid = order == "C" or (order in ("F", "A") and out is mask is None)
    with reporting(progress, "read") as report:
        block = divided(array, selection) if report is not None and is_valid else None
        if block is None or (out is not None and not has_parts(out, shape_of(block))):
            nbytes = _selected_nbytes(array, selection, dtype) if is_valid else 0
            if report is not None and nbytes:
                report(0, nbytes)
            found: Any = array.read(selection, **options)
            if report is not None:
                nbytes = nbytes or getattr(found, "nbytes", 0)
                report(nbytes, nbytes)
            return found
        item_nbytes = (array.dtype if dtype is None else read_type(array.dtype, dtype)).itemsize
        amount = Amount(report, math.prod(shape_of(block)) * item_nbytes)
        amount.begin(math.prod(shape_of(block)) * item_nbytes)
        elements: DecodedArray | Any = read_block(array, block, amount, **options)
        amount.finish()
        return elements


def _selected_nbytes(array: Array, selection: Any, dtype: Any) -> int:
    """Return the size of the selected elements; 0 if it is unknown, or the selection is refused."""
    with contextlib.suppress(Exception):
        [shape] = _shapes_of([(array, selection)])
        item_nbytes = estimated_nbytes(array) // max(array.size, 1)
        if dtype is not None:
            item_nbytes = read_type(array.dtype, dtype).itemsize
        return math.prod(shape) * item_nbytes
    return 0


def has_parts(out: Any, shape: tuple[int, ...]) -> bool:
    """Return whether `out` has this shape, its slices are views, and no elements overlap."""
    name = f"{type(out).__module__}.{type(out).__name__}"
    if name == "torch.Tensor" and str(out.layout) == "torch.strided":
        span = out.element_size()
        strides = [step * span for step in out.stride()]
    elif name in ("numpy.ndarray", "zarrow.Tensor"):
        memory = out if name == "numpy.ndarray" else out.numpy()
        span, strides = memory.itemsize, memory.strides
    else:
        return False
    if tuple(out.shape) != shape:
        return False
    for stride, extent in sorted(zip(map(abs, strides), shape, strict=True)):
        if extent > 1 and stride < span:
            return False
        span += stride * (extent - 1)
    return True


def divided(array: Array, selection: Any) -> list[range | int] | None:
    """Return the block that a selection is, as `block_of` does; None if it is not read part by part."""
    can_be_divided = array.write_unit is not None and has_numbers(array)
    return block_of(array, selection) if can_be_divided else None


def read_block(
    array: Array,
    block: list[range | int],
    amount: Amount,
    *,
    out: Any = None,
    dtype: Any = None,
    mask: Any = None,
    order: str = "C",
) -> DecodedArray | Any:
    """Read a block of numbers part by part (steps 2 and 4); `amount` has begun with it."""
    unit = array.write_unit
    assert unit is not None
    wanted = array.dtype if dtype is None else read_type(array.dtype, dtype)
    values, missing, shape = out, None, shape_of(block)
    if out is None:
        memory: Any = _RecycledMemory(math.prod(shape) * wanted.itemsize)
        is_column_major = order == "F" or (order == "A" and array._is_column_major())
        values = _import("numpy").ndarray(shape, wanted, memory, order="F" if is_column_major else "C")
    if mask is not None:
        missing = _import("numpy").empty(shape, bool)
    for source, target in parts_of_block(block, unit, array.dtype.itemsize):
        if missing is None:
            array.read(source, out=values[target], dtype=dtype)
        else:
            part: Any = array.read(source, mask=mask)
            values[target], missing[target] = part.data, part.mask
        amount.add(wanted.itemsize * math.prod(part.stop - part.start for part in target))
    if out is not None:
        return out
    tensor: Any = asarray(values)
    return tensor if missing is None else _masked(tensor, [missing])


def has_numbers(array: Array) -> bool:
    """Return whether elements are numbers or times, and none can be missing."""
    kind = array.data_type
    is_masked = not isinstance(kind, str) and kind.get("name") == "zarrs.optional"
    return array.dtype.kind in "biufcmM" and array.dtype.isnative and not is_masked


def block_of(array: Array, selection: Any) -> list[range | int] | None:
    """Return the positions along each axis, a number where the axis is dropped; None if it is no block."""
    items = list(selection) if isinstance(selection, tuple) else [selection]
    if (dots := sum(item is Ellipsis for item in items)) > 1 or len(items) - dots > array.ndim:
        return None
    at = next((at for at, item in enumerate(items) if item is Ellipsis), len(items))
    rest = [slice(None)] * (array.ndim - len(items) + dots)
    items = [*items[:at], *rest, *items[at + 1 :]]
    block: list[range | int] = []
    for item, extent in zip(items, array.shape, strict=True):
        if isinstance(item, slice):
            places = range(*item.indices(extent))
            if places.step != 1 or not places:
                return None
            block.append(places)
        else:
            try:
                place = operator.index(item)
            except TypeError:
                return None
            if isinstance(item, bool) or not -extent <= place < extent:
                return None
            block.append(place % extent)
    return block if any(isinstance(places, range) for places in block) else None


def shape_of(block: list[range | int]) -> tuple[int, ...]:
    """Return the shape of a block's elements."""
    return tuple(len(places) for places in block if isinstance(places, range))


def parts_of_block(
    block: list[range | int], unit: tuple[int, ...], item_nbytes: int
) -> Iterator[tuple[tuple[slice | int, ...], tuple[slice, ...]]]:
    """Divide a block at edges of units: yield the places in the array, and those in the result."""
    starts = [places.start if isinstance(places, range) else places for places in block]
    stops = [places.stop if isinstance(places, range) else places + 1 for places in block]
    # Parts are counted from the edge of a unit before the block.
    edges = [start - start % max(step, 1) for start, step in zip(starts, unit, strict=True)]
    extents = tuple(stop - edge for stop, edge in zip(stops, edges, strict=True))
    for region in parts(extents, unit, unit, item_nbytes):
        source: list[slice | int] = []
        target: list[slice] = []
        for places, part, edge, start in zip(block, region, edges, starts, strict=True):
            low, high = max(part.start + edge, start), part.stop + edge
            if isinstance(places, int):
                source.append(places)
            else:
                source.append(slice(low, high))
                target.append(slice(low - start, high - start))
            if low >= high:
                break
        else:
            yield tuple(source), tuple(target)
