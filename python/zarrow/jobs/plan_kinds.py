"""Makes plans: `copy`, `map`, `write`, `append` and `collect`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from zarrow._zarrow import Array, Group
from zarrow.api.array_options import Store
from zarrow.groups.places import store_of
from zarrow.jobs.appending import Appended
from zarrow.jobs.common_options import MEMORY_NBYTES, checked_memory, ledger_of, planned
from zarrow.jobs.copied_items import (
    check_dtype,
    check_extents,
    check_selection,
    copied_item,
    group_description,
    new_like,
    nodes_below,
)
from zarrow.jobs.data_variables import chosen
from zarrow.jobs.lengthened_arrays import common_extent, growing
from zarrow.jobs.members import (
    check_target,
    members_of,
    sources_of,
    together,
)
from zarrow.jobs.plan import Location, Plan, Work
from zarrow.jobs.raw import check_raw, raw_items
from zarrow.jobs.selecting import Selection
from zarrow.jobs.two_passes import FirstPass, divided
from zarrow.jobs.work import Item, located


def copy(
    source: Array | Group,
    target: Store,
    path: str = "",
    *,
    select: Selection | None = None,
    raw: bool = False,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    consolidate: bool = False,
    ledger: Store | None = None,
    passes: Literal[1, 2] | None = None,
    **options: Any,
) -> Plan:
    """Return a plan that copies an array, or all arrays and groups below a group.

    Parameters
    ----------
    source
        An opened array or group. It must not change until the plan is finished.
    target, path
        Where the copy is created: a store, and a path in it. Groups that exist there keep their other members
        and attributes.
    select
        Copy only these elements: slices of an array's axes with a positive step, or slices by names of
        dimensions, such as `{"day": slice(0, 31)}`. In a group, by names: arrays without these dimensions are
        copied whole.
    raw
        Copy documents and stored chunks byte for byte, without decoding them. Then there are no other options
        of the copy. Foreign files are not copied.
    memory_nbytes
        How many bytes of elements a process may hold at a time. With other chunks than the source, more
        memory means fewer repeated reads: `Plan.describe` says how many there are.
    attributes
        More attributes of the copy, written at the end.
    consolidate
        Consolidate the metadata of a group at the end.
    ledger
        A store for the ledger. By default the target with `.jobs` at the end of its name.
    passes
        How often elements are copied. In two passes, they are first stored in an array with `.intermediate`
        and a hash at the end of the target's name, which `finish` erases. By default, each array is copied in
        two passes if one would read the source repeatedly, and move more bytes: `Plan.describe` compares
        them.
    options
        Options of `create_array` for each array: `chunks`, `shards`, `compressors`, `zarr_format`, ...
        `chunks` and `shards` can be dicts by names of dimensions. In a group, they are for the arrays with
        these dimensions, or with as many axes: other arrays keep their own. `dtype` is then for the arrays of
        the same kind: floats, or integers with or without sign. Other properties are copied from the source.
        Version 2 has no shards: their chunks become chunks.
        Codecs stay in the other version, and with other chunks; pass other ones if it lacks them.

    Raises
    ------
    MetadataError, CodecError
        An option does not fit the array.
    DataTypeError
        Elements are not converted to `dtype` without loss of their kind, as floats to integers (a
        `TypeError`): `map` does that with a function.
    UnsupportedError
        The chunks of the copy would differ in shape.
    ValueError
        The copy would replace its source, its ledger would be in an array, or no array has a dimension of
        `chunks` or `select`.
    TypeError
        An option is unknown, or the store needs `ledger`.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import jobs
    >>> zarrow.save("days.zarr", [[1, 2], [3, 4]])
    >>> plan = jobs.copy(zarrow.open("days.zarr"), "compressed.zarr", compressors="blosc")
    >>> plan.setup()
    >>> plan.run(plan.job(0, 1)).done
    1
    >>> plan.finish()
    >>> zarrow.open("compressed.zarr")[...].tolist()
    [[1, 2], [3, 4]]
    """
    memory_nbytes = checked_memory(memory_nbytes)
    arrays, groups = nodes_below(source, target, path)
    if passes not in (None, 1, 2):
        raise ValueError(f"passes is {passes!r}, expected 1 or 2")
    first: FirstPass | None = None
    items: Mapping[str, Item]
    if raw:
        given = {"select": select, "attributes": attributes, "consolidate": consolidate or None}
        check_raw(located(target), path, {**options, **given, "passes": passes})
        items = raw_items(arrays, groups, located(target), path.strip("/"))
    else:
        for option in ("chunks", "shards"):
            check_extents(arrays.values(), option, options.get(option))
        check_selection(source, arrays.values(), select)
        check_dtype(source, arrays.values(), options.get("dtype"))
        copied = {
            below: copied_item(array, target, path, below, select, options) for below, array in arrays.items()
        }
        name, place, items_before, items = divided(copied, target, ledger, memory_nbytes, passes)
        if place is not None and items_before:
            first = FirstPass(
                Work(
                    kind="copy",
                    items=items_before,
                    function=None,
                    passes_unit=False,
                    target=Location(place, path.strip("/")),
                    groups={},
                    ledger=ledger_of(located(target)) if ledger is None else located(ledger),
                    # Encoded shards are in memory, too.
                    memory_nbytes=max(1, memory_nbytes // 2),
                ),
                name,
            )
    remake = functools.partial(
        copy,
        source,
        located(target),
        path,
        select=select,
        raw=raw,
        memory_nbytes=memory_nbytes,
        attributes=attributes,
        consolidate=consolidate,
        ledger=_located(ledger),
        passes=passes,
        **options,
    )
    return planned(
        "copy",
        items,
        target,
        path,
        ledger,
        memory_nbytes,
        groups={} if raw else {below: group_description(group, options) for below, group in groups.items()},
        attributes=attributes,
        consolidate=consolidate,
        remake=remake,
        first=first,
        source=source,
    )


def map(
    function: Callable[..., Any],
    sources: Array | Group | Sequence[Array] | Sequence[Group],
    target: Store,
    path: str = "",
    *,
    arrays: Sequence[str] | None = None,
    with_unit: bool = False,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    consolidate: bool = False,
    ledger: Store | None = None,
    **options: Any,
) -> Plan:
    """Return a plan that computes a new array from the elements of others at the same places.

    Of a group, it computes each array, as `xarray.Dataset.map` does, and copies coordinates and attributes.

    Parameters
    ----------
    function
        Called with a NumPy array for each source, and returns an array of the same shape. It is pickled by
        its name, as functions are.
    sources
        One array, or several of the same shape. The new array is like the first, except for `options`. Or
        one group, or several: the function gets their arrays of the same path.
    arrays
        The paths of the arrays below a group that the function computes; others are copied. By default, all
        but coordinates: arrays with the name of their only dimension, and those that the attributes
        `coordinates` and `grid_mapping` name.
    with_unit
        Whether the function also gets the `Unit`, as the last argument.
    target, path, memory_nbytes, attributes, consolidate, ledger, options
        As in `copy`; `dtype` is the type of the new elements.

    Raises
    ------
    ShapeError
        The sources differ in shape.
    ValueError
        A group has no array of a name in `arrays`, or lacks an array of the first group.
    MetadataError, CodecError, UnsupportedError, TypeError
        As `copy`.

    Examples
    --------
    >>> import numpy, zarrow
    >>> from zarrow import jobs
    >>> zarrow.save("celsius.zarr", numpy.array([0.0, 100.0]))
    >>> plan = jobs.map(numpy.sqrt, zarrow.open("celsius.zarr"), "roots.zarr")
    >>> plan.setup()
    >>> plan.run(plan.job(0, 1)).done
    1
    >>> zarrow.open("roots.zarr")[...].tolist()
    [0.0, 10.0]
    """
    first, *others = nodes = sources_of(sources)
    remake = functools.partial(
        map,
        function,
        nodes,
        located(target),
        path,
        arrays=arrays,
        with_unit=with_unit,
        memory_nbytes=memory_nbytes,
        attributes=attributes,
        consolidate=consolidate,
        ledger=_located(ledger),
        **options,
    )
    found, groups = nodes_below(first, target, path)
    for option in ("chunks", "shards"):
        check_extents(found.values(), option, options.get(option))
    computed, copied = chosen(found, groups, arrays)
    items: dict[str, Item] = {
        below: Item(each, new_like(each[0], target, path, below, options))
        for below, each in together(others, computed).items()
    }
    options.pop("dtype", None)
    items |= {
        below: copied_item(array, target, path, below, None, options) for below, array in copied.items()
    }
    return planned(
        "map",
        items,
        target,
        path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=with_unit,
        groups={below: group_description(group, options) for below, group in groups.items()},
        attributes=attributes,
        consolidate=consolidate,
        remake=remake,
        source=first,
    )


def write(
    function: Callable[[Any], Any],
    target: Array | Group,
    *,
    arrays: Sequence[str] | None = None,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    ledger: Store | None = None,
) -> Plan:
    """Return a plan that writes all elements of an existing array, or of the arrays below a group.

    Parameters
    ----------
    function
        Called with a `Unit`, and returns the elements of its region. In a group, `unit.path` is the array.
        It is pickled by its name.
    target
        The array, which `create_array` made, or a group. Until the plan is finished, `setup` of another plan
        that writes it raises `ConflictError`.
    arrays
        The paths of the arrays below a group that are written; by default, all but coordinates, as in `map`.
    memory_nbytes, attributes, ledger
        As in `copy`.

    Raises
    ------
    UnsupportedError
        The chunks differ in shape.
    ReadOnlyError
        The array or group was opened with mode `"r"`, or its store is read-only.
    ValueError
        The group has no array of a name in `arrays`.
    TypeError
        The store needs `ledger`.

    Examples
    --------
    >>> import numpy, zarrow
    >>> from zarrow import jobs
    >>> def row_numbers(unit):
    ...     rows, columns = unit.region
    ...     return numpy.arange(rows.start, rows.stop)[:, None].repeat(columns.stop - columns.start, 1)
    >>> rows = zarrow.create_array("rows.zarr", shape=(4, 2), chunks=(1, 2), dtype="i8")
    >>> plan = jobs.write(row_numbers, rows)
    >>> plan.setup()
    >>> plan.run(plan.job(0, 1)).done
    1
    >>> rows[:, 0].tolist()
    [0, 1, 2, 3]
    """
    check_target(target)
    remake = functools.partial(
        write,
        function,
        target,
        arrays=arrays,
        memory_nbytes=memory_nbytes,
        attributes=attributes,
        ledger=_located(ledger),
    )
    wanted, _ = chosen(*members_of(target), arrays)
    return planned(
        "write",
        {below: Item((), array) for below, array in wanted.items()},
        store_of(target),
        target.path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=True,
        attributes=attributes,
        remake=remake,
    )


def append(
    function: Callable[[Any], Any],
    target: Array | Group,
    count: int,
    *,
    axis: int | str = 0,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    ledger: Store | None = None,
) -> Plan:
    """Return a plan that appends elements to an array. Readers see all of them after `finish`, or none.

    In a group, it appends to all arrays with a dimension: `finish` makes one after the other longer, the
    coordinate of this dimension last.

    Parameters
    ----------
    function
        Called with a `Unit`, and returns the elements of its region, in places of the longer array. In a
        group, `unit.path` is the array. It is pickled by its name.
    target
        The array, or a group. Until the plan is finished, nothing else may change its shape, and `setup` of
        another plan that appends to it raises `ConflictError`.
    count
        How many elements it gets along the axis.
    axis
        The axis, or the name of its dimension; negative numbers count from the last one. In a group, the
        name of a dimension.
    memory_nbytes, attributes, ledger
        As in `copy`.

    Raises
    ------
    IndexingError
        The array has no such axis, or no array of the group (an `IndexError`).
    ShapeError
        The arrays of a group have different extents along the dimension, or an array has it twice.
    ValueError
        The count is negative.
    UnsupportedError
        The chunks differ in shape.
    ReadOnlyError
        The array or group was opened with mode `"r"`, or its store is read-only.
    TypeError
        The store needs `ledger`, or `axis` is a number for a group.

    Examples
    --------
    >>> import numpy, zarrow
    >>> from zarrow import jobs
    >>> days = zarrow.create_array("days.zarr", data=numpy.arange(5), chunks=2)
    >>> plan = jobs.append(lambda unit: numpy.r_[unit.region[0]] * 10, days, 3)
    >>> plan.setup()
    >>> plan.run(plan.job(0, 1)).done
    1
    >>> zarrow.open("days.zarr").shape
    (5,)
    >>> plan.finish()
    >>> zarrow.open("days.zarr")[...].tolist()
    [0, 1, 2, 3, 4, 50, 60, 70]
    """
    check_target(target)
    if count < 0:
        raise ValueError(f"an array does not shrink by an append: count is 0 or more, got {count}")
    start = common_extent(growing(target, axis), count)
    return _appended(function, target, count, axis, start, memory_nbytes, attributes, _located(ledger))


def _appended(
    function: Callable[[Any], Any],
    target: Array | Group,
    count: int,
    axis: int | str,
    start: int,
    memory_nbytes: int,
    attributes: Mapping[str, Any] | None,
    ledger: Store | None,
) -> Plan:
    """Return the plan of an append to arrays with `start` elements. Some may have the new ones already."""
    given = (function, target, count, axis, start, memory_nbytes, attributes, ledger)
    return planned(
        "append",
        {path: Appended((), array, at, start, count) for path, (array, at) in growing(target, axis).items()},
        store_of(target),
        target.path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=True,
        attributes=attributes,
        remake=functools.partial(_appended, *given),
    )


def collect(
    function: Callable[..., Any],
    sources: Array | Group | Sequence[Array] | Sequence[Group],
    *,
    arrays: Sequence[str] | None = None,
    with_unit: bool = False,
    memory_nbytes: int = MEMORY_NBYTES,
    ledger: Store | None = None,
) -> Plan:
    """Return a plan that computes a value for each unit of an array. `Plan.results` has the values.

    Parameters
    ----------
    function
        Called with a NumPy array for each source, and returns a value that JSON has: the ledger keeps it.
    sources, arrays, with_unit
        As in `map`. In a group, `plan.units[number].path` is the array of a result.
    memory_nbytes, ledger
        As in `copy`; by default, the ledger is beside the first source.

    Raises
    ------
    ShapeError, ValueError, UnsupportedError, TypeError
        As `map`.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import jobs
    >>> zarrow.save("heights.zarr", [1.5, 2.5, 0.5])
    >>> plan = jobs.collect(lambda heights: float(heights.max()), zarrow.open("heights.zarr"))
    >>> plan.setup()
    >>> plan.run(plan.job(0, 1)).done
    1
    >>> max(plan.results().values())
    2.5
    """
    first, *others = nodes = sources_of(sources)
    computed, _ = chosen(*members_of(first), arrays)
    remake = functools.partial(
        collect,
        function,
        nodes,
        arrays=arrays,
        with_unit=with_unit,
        memory_nbytes=memory_nbytes,
        ledger=_located(ledger),
    )
    return planned(
        "collect",
        {below: Item(each, None) for below, each in together(others, computed).items()},
        store_of(first),
        first.path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=with_unit,
        remake=remake,
    )


def _located(ledger: Store | None) -> Store | None:
    return ledger and located(ledger)
