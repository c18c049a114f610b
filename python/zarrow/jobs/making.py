"""Makes plans: `copy`, `map`, `write`, `append` and `collect`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from zarrow._zarrow import Array, Group
from zarrow.api.array_options import Store
from zarrow.errors import IndexingError, ShapeError, UnsupportedError
from zarrow.groups.places import refuse_read_only, store_of
from zarrow.jobs.appending import Appended
from zarrow.jobs.copied_items import (
    check_dtype,
    check_extents,
    check_selection,
    copied_item,
    group_description,
    new_like,
    nodes_below,
)
from zarrow.jobs.ledger import beside
from zarrow.jobs.plan import Location, Plan, Work
from zarrow.jobs.raw import raw_items
from zarrow.jobs.replaced_sources import check_apart
from zarrow.jobs.selecting import Selection
from zarrow.jobs.two_passes import FirstPass, TwoPassPlan, divided
from zarrow.jobs.work import Item, located
from zarrow.store_objects.icechunk_sessions import session_of

# Half of what a process of a cluster usually has for each core.
MEMORY_NBYTES = 256 << 20


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
        if session_of(located(target)) is not None:
            raise UnsupportedError(
                "icechunk has no copies byte for byte: leave out raw", kind="unsupported", path=path
            )
        given = {**options, "select": select, "attributes": attributes, "consolidate": consolidate or None}
        given["passes"] = passes
        for name in [name for name, value in given.items() if value is not None]:
            raise ValueError(f"a copy byte for byte takes no {name}: leave out {name}, or raw")
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
                    ledger=_ledger_of(located(target)) if ledger is None else located(ledger),
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
        ledger=None if ledger is None else located(ledger),
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
    sources: Array | Sequence[Array],
    target: Store,
    path: str = "",
    *,
    with_unit: bool = False,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    ledger: Store | None = None,
    **options: Any,
) -> Plan:
    """Return a plan that computes a new array from the elements of others at the same places.

    Parameters
    ----------
    function
        Called with a NumPy array for each source, and returns an array of the same shape. It is pickled by
        its name, as functions are.
    sources
        One array, or several of the same shape. The new array is like the first, except for `options`.
    with_unit
        Whether the function also gets the `Unit`, as the last argument.
    target, path, memory_nbytes, attributes, ledger, options
        As in `copy`; `dtype` is the type of the new elements.

    Raises
    ------
    ShapeError
        The sources differ in shape.
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
    arrays = _same_shape(sources)
    remake = functools.partial(
        map,
        function,
        arrays,
        located(target),
        path,
        with_unit=with_unit,
        memory_nbytes=memory_nbytes,
        attributes=attributes,
        ledger=None if ledger is None else located(ledger),
        **options,
    )
    items = {"": Item(arrays, new_like(arrays[0], target, path, "", options))}
    return planned(
        "map",
        items,
        target,
        path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=with_unit,
        attributes=attributes,
        remake=remake,
    )


def write(
    function: Callable[[Any], Any],
    target: Array,
    *,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    ledger: Store | None = None,
) -> Plan:
    """Return a plan that writes all elements of an existing array.

    Parameters
    ----------
    function
        Called with a `Unit`, and returns the elements of its region. It is pickled by its name.
    target
        The array, which `create_array` made. Until the plan is finished, `setup` of another plan that writes
        it raises `ConflictError`.
    memory_nbytes, attributes, ledger
        As in `copy`.

    Raises
    ------
    UnsupportedError
        The chunks differ in shape.
    ReadOnlyError
        The array was opened with mode `"r"`, or its store is read-only.
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
    _check_target(target)
    return planned(
        "write",
        {"": Item((), target)},
        store_of(target),
        target.path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=True,
        attributes=attributes,
    )


def append(
    function: Callable[[Any], Any],
    target: Array,
    count: int,
    *,
    axis: int = 0,
    memory_nbytes: int = MEMORY_NBYTES,
    attributes: Mapping[str, Any] | None = None,
    ledger: Store | None = None,
) -> Plan:
    """Return a plan that appends elements to an array. Readers see all of them after `finish`, or none.

    Parameters
    ----------
    function
        Called with a `Unit`, and returns the elements of its region, in places of the longer array. It is
        pickled by its name.
    target
        The array. Until the plan is finished, nothing else may change its shape, and `setup` of another plan
        that appends to it raises `ConflictError`.
    count
        How many elements it gets along the axis.
    axis
        The axis; negative numbers count from the last one.
    memory_nbytes, attributes, ledger
        As in `copy`.

    Raises
    ------
    IndexingError
        The array has no such axis (an `IndexError`).
    ValueError
        The count is negative.
    UnsupportedError
        The chunks differ in shape.
    ReadOnlyError
        The array was opened with mode `"r"`, or its store is read-only.
    TypeError
        The store needs `ledger`.

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
    _check_target(target)
    if count < 0:
        raise ValueError(f"an array does not shrink by an append: count is 0 or more, got {count}")
    if not -target.ndim <= axis < target.ndim:
        raise IndexingError(
            f"axis {axis} is out of bounds for an array with {target.ndim} axes", kind="out_of_bounds"
        )
    axis %= target.ndim
    return planned(
        "append",
        {"": Appended((), target, axis, target.shape[axis], count)},
        store_of(target),
        target.path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=True,
        attributes=attributes,
    )


def collect(
    function: Callable[..., Any],
    sources: Array | Sequence[Array],
    *,
    with_unit: bool = False,
    memory_nbytes: int = MEMORY_NBYTES,
    ledger: Store | None = None,
) -> Plan:
    """Return a plan that computes a value for each unit of an array. `Plan.results` has the values.

    Parameters
    ----------
    function
        Called with a NumPy array for each source, and returns a value that JSON has: the ledger keeps it.
    sources, with_unit
        As in `map`.
    memory_nbytes, ledger
        As in `copy`; by default, the ledger is beside the first source.

    Raises
    ------
    ShapeError, UnsupportedError, TypeError
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
    arrays = _same_shape(sources)
    return planned(
        "collect",
        {"": Item(arrays, None)},
        store_of(arrays[0]),
        arrays[0].path,
        ledger,
        memory_nbytes,
        function=function,
        passes_unit=with_unit,
    )


def planned(
    kind: str,
    items: Mapping[str, Item],
    store: Store,
    path: str,
    ledger: Store | None,
    memory_nbytes: int,
    *,
    function: Callable[..., Any] | None = None,
    passes_unit: bool = False,
    groups: Mapping[str, tuple[int, Mapping[str, Any]]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    consolidate: bool = False,
    remake: functools.partial[Plan] | None = None,
    first: FirstPass | None = None,
    source: Array | Group | None = None,
) -> Plan:
    """Return a plan of these items, after checking that it replaces nothing that it reads."""
    if kind in ("map", "write", "append", "collect") and not callable(function):
        raise TypeError(f"expected a function that is called for each unit, got {type(function).__name__}")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError(f"expected attributes as a mapping, got {type(attributes).__name__}")
    memory_nbytes = checked_memory(memory_nbytes)
    store = located(store)
    ledger = _ledger_of(store) if ledger is None else located(ledger)
    check_apart([*items.values(), *(() if first is None else first.items)], ledger, source)
    work = Work(
        kind=kind,
        items=items,
        function=function,
        passes_unit=passes_unit,
        target=Location(store, path.strip("/")),
        groups=groups or {},
        ledger=ledger,
        memory_nbytes=memory_nbytes,
        attributes=dict(attributes or {}),
        consolidate=consolidate,
        remake=remake,
    )
    if first is not None:
        return TwoPassPlan(work, first)
    return _type_of(kind, store, consolidate)(work)


def checked_memory(memory_nbytes: Any) -> int:
    """Return a number of bytes.

    Raises
    ------
    TypeError
        It is no integer.
    ValueError
        It is below 1.
    """
    try:
        found = operator.index(memory_nbytes)
    except TypeError:
        raise TypeError(
            f"memory_nbytes is a number of bytes, such as 256 << 20, got {memory_nbytes!r}"
        ) from None
    if found < 1:
        raise ValueError(f"memory_nbytes is at least 1, got {found}")
    return found


def _type_of(kind: str, store: Store, consolidate: bool) -> type[Plan]:
    """Return the type of a plan, by the store that it writes."""
    if kind == "collect" or session_of(store) is None:
        return Plan
    if consolidate:
        raise UnsupportedError("icechunk has no consolidated metadata", kind="unsupported")
    from zarrow.jobs.versioned import VersionedPlan

    return VersionedPlan


def _ledger_of(store: Store) -> Store:
    """Return the store of the ledgers for a store: its name with `.jobs` at the end."""
    found = beside(store, ".jobs")
    if found is None:
        raise TypeError(
            f"the ledger of a plan is stored beside its target, and {type(store).__name__} has no place for "
            "it: pass ledger=, another store that all processes reach"
        )
    return found


def _check_target(target: Any) -> None:
    """Refuse a target other than a writable array of a store."""
    if not isinstance(target, Array):
        found = "a group" if isinstance(target, Group) else type(target).__name__
        raise TypeError(
            f"expected an array of a store as the target, got {found}: type zarrow.open(path, mode='r+')"
        )
    refuse_read_only(target)


def _same_shape(sources: Array | Sequence[Array]) -> tuple[Array, ...]:
    arrays = (sources,) if isinstance(sources, Array) else tuple(sources)
    if not arrays:
        raise ValueError("a plan reads at least one array, got none")
    for array in arrays:
        if not isinstance(array, Array):
            raise TypeError(f"the sources of a plan are arrays of a store, got {type(array).__name__}")
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"the sources of a plan have one shape, got {arrays[0].shape} and {array.shape}", kind="shape"
            )
    return arrays
