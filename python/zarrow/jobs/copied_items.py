"""Makes the items of a copy: the arrays to create, like their sources except for the options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, open
from zarrow.api.array_options import OPTIONS, Store, check_names
from zarrow.api.creation import create_group
from zarrow.arrays.casting import is_allowed
from zarrow.errors import DataTypeError, NodeExistsError
from zarrow.groups.places import is_within, joined, place, place_of
from zarrow.interchange import labels
from zarrow.jobs.intermediates import ENDING
from zarrow.jobs.selecting import Copied, Selection, slices_of
from zarrow.jobs.work import New, located

# Options that do not change the codecs of the source.
_KEEP_CODECS = frozenset(
    ("chunks", "shards", "attributes", "dimension_names", "chunk_key_encoding", "fill_value", "zarr_format")
)

_STAGES = frozenset(("filters", "serializer", "compressors"))


def check_extents(arrays: Iterable[Array], option: str, extents: Any) -> None:
    """Refuse chunks or shards that are for no array: a misspelled name would change nothing."""
    arrays = list(arrays)
    if isinstance(extents, Mapping):
        names = {name for array in arrays for name in array.dimension_names or () if name}
        unknown = [name for name in extents if name not in names]
        if unknown:
            known = ", ".join(sorted(names)) or f"no names: pass {option} of all axes, such as (100, 100)"
            raise ValueError(f"no array has a dimension {unknown[0]!r} of {option}; the arrays have {known}")
    elif isinstance(extents, list | tuple) and all(array.ndim != len(extents) for array in arrays):
        raise ValueError(f"{option} is {extents!r}, but no array has {len(extents)} axes")


def nodes_below(source: Array | Group, target: Store, path: str) -> tuple[dict[str, Array], dict[str, Group]]:
    """Return the arrays to copy and the groups above them, by their paths below the source.

    A copy into a group below the source does not copy itself.
    """
    if isinstance(source, Array):
        return {"": source}, {}
    if not isinstance(source, Group):
        raise TypeError(f"a plan copies an array or a group of a store, got {type(source).__name__}")
    arrays: dict[str, Array] = {}
    groups = {"": source}
    own, copied = place_of(source), place(located(target), path)
    beside = place(located(target), "")
    for below, node in source.members(max_depth=None):
        if copied != own and is_within(f"{own}/{below}", copied):
            continue
        # Intermediate arrays of an earlier run, where the copy is a store in the folder of the group.
        if beside is not None and f"{own}/{below}".startswith(f"{beside}{ENDING}"):
            continue
        if isinstance(node, Array):
            arrays[below] = node
        else:
            groups[below] = node
    return arrays, groups


def group_description(group: Group, options: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """Return the version and the attributes of a group to create."""
    return options.get("zarr_format", group.zarr_format), dict(group.attrs)


def require_group(store: Store, path: str, made: tuple[int, Mapping[str, Any]]) -> None:
    """Create a group of a plan, or give an existing one its attributes, which then has others, too."""
    zarr_format, attributes = made
    try:
        create_group(store, path, attributes=attributes, zarr_format=3 if zarr_format == 3 else 2)
    except NodeExistsError:
        existing = open(store, path, mode="r+")
        if not isinstance(existing, Group):
            raise
        if attributes:
            existing.attrs.update(attributes)


def copied_item(
    source: Array, store: Store, path: str, below: str, select: Selection | None, options: Mapping[str, Any]
) -> Copied:
    """Return an array that is copied, or a selection of it."""
    if below and options.get("dtype") is not None and not _is_of_kind(source, options["dtype"]):
        options = {name: value for name, value in options.items() if name != "dtype"}
    region = slices_of(source, select) if select is not None else None
    shape = None if region is None else [len(range(part.start, part.stop, part.step)) for part in region]
    new = new_like(source, store, path, below, options, shape)
    found, wanted = source.dtype, new.sample.dtype
    if options.get("dtype") is not None and found != wanted and not is_allowed(found, wanted, "same_kind"):
        raise DataTypeError(
            f"a copy does not convert {found} to {wanted}, which changes the elements: zarrow.jobs.map does "
            "so with a function",
            node=source,
        )
    if region is None:
        return Copied((source,), new)
    return Copied((source,), new, tuple(part.start for part in region), tuple(part.step for part in region))


def check_selection(source: Array | Group, arrays: Iterable[Array], select: Selection | None) -> None:
    """Refuse a selection that fits no array, or by axes of a group."""
    if isinstance(select, Mapping):
        check_extents(arrays, "select", select)
    elif select is not None and isinstance(source, Group):
        raise ValueError('select of a group is by names of dimensions, such as {"day": slice(0, 31)}')


def check_dtype(source: Array | Group, arrays: Iterable[Array], dtype: Any) -> None:
    """Refuse a type of another kind than all arrays of a group."""
    if (
        dtype is not None
        and isinstance(source, Group)
        and not any(_is_of_kind(each, dtype) for each in arrays)
    ):
        raise ValueError(f"dtype is {dtype!r}, but no array has elements of that kind")


def _is_of_kind(array: Array, dtype: Any) -> bool:
    """Return whether elements are of the kind of a type: integers of both kinds are one."""
    try:
        kind = np.dtype(dtype).kind
    except TypeError:  # a name of Zarr's
        return array.dtype.kind == "f"
    return array.dtype.kind == kind or {array.dtype.kind, kind} == {"i", "u"}


def new_like(
    source: Array,
    store: Store,
    path: str,
    below: str,
    options: Mapping[str, Any],
    shape: Sequence[int] | None = None,
) -> New:
    """Return the array to create for a source: like it, with these options."""
    check_names(
        options,
        OPTIONS - {"shape", "data", "missing", "overwrite"} | {"zarr_format"},
        "of a plan",
    )
    # Names and fill value move to their places in another version.
    version = options.get("zarr_format") or source.zarr_format
    chosen: dict[str, Any] = labels.taken(source, version, dict(options))
    is_optional = isinstance(source.data_type, dict) and source.data_type["name"] == "zarrs.optional"
    if options.get("dtype") is not None and is_optional:
        chosen["dtype"] = f"optional[{np.dtype(options['dtype']).name}]"
    if shape is not None:
        chosen["shape"] = shape
    if options.get("zarr_format") == 2 and source.shards is not None:
        chosen = {"chunks": source.chunks, **_stages(source), **chosen, "shards": None}
    for name in ("chunks", "shards"):
        if name in options and not _is_for(source, options[name], is_member=bool(below)):
            del chosen[name]
    if isinstance(chosen.get("chunks"), Mapping):
        chosen["chunks"] = _by_name(source, chosen["chunks"], source.chunks)
    if isinstance(chosen.get("shards"), Mapping):
        # Along other dimensions, a shard has one chunk unless the source has larger ones.
        own = source.shards or chosen.get("chunks") or source.chunks
        chosen["shards"] = _by_name(source, chosen["shards"], own)
    if ("chunks" in chosen or "shards" in chosen) and _KEEP_CODECS.issuperset(options):
        # Other chunks lose the list of codecs, which has the chunks of a shard in it.
        chosen |= _stages(source)
    if chosen.get("dtype") is not None and not _STAGES.intersection(options):
        chosen |= _compressors_for(source, chosen["dtype"])
    return New(source, located(store), joined(path.strip("/"), below), chosen)


def _compressors_for(source: Array, dtype: Any) -> dict[str, Any]:
    """Return the compressors of an array for elements of another type, or nothing.

    Filters and other serializers than `bytes` depend on the type: the copy gets default codecs instead.
    """
    if source.filters or source.serializer.get("name") != "bytes":
        return {}
    try:
        sizes = {source.dtype.itemsize: np.dtype(dtype).itemsize}
    except TypeError:  # a name of Zarr's
        sizes = {}
    compressors = []
    for codec in source.compressors:
        configuration = dict(codec.get("configuration", {}))
        for size in configuration.keys() & {"typesize", "elementsize"}:
            configuration[size] = sizes.get(configuration[size], configuration[size])
        compressors.append({**codec, "configuration": configuration})
    return {"compressors": compressors}


def _stages(source: Array) -> dict[str, Any]:
    """Return the codecs of an array by their stages. Version 2 has the order of elements besides."""
    stages = {"filters": source.filters, "serializer": source.serializer, "compressors": source.compressors}
    return {**stages, "order": source.order} if source.zarr_format == 2 else stages


def _is_for(source: Array, extents: Any, *, is_member: bool) -> bool:
    """Return whether chunks or shards are for an array: other members of a group keep their own."""
    if isinstance(extents, Mapping):
        return not extents.keys().isdisjoint(source.dimension_names or ())
    return not is_member or not isinstance(extents, list | tuple) or len(extents) == source.ndim


def _by_name(source: Array, given: Mapping[str, int], own: Any) -> list[int | None]:
    """Return chunks or shards by axis; a dimension without one has its own."""
    by_axis = tuple(own) if isinstance(own, list | tuple) else (None,) * source.ndim
    names = source.dimension_names or (None,) * source.ndim
    return [given.get(name, extent) if name else extent for name, extent in zip(names, by_axis, strict=True)]
