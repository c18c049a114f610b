"""Plans and computes the levels of an OME-Zarr image: `pyramid` and `plan_pyramid`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from zarrow._zarrow import Array, Group, open
from zarrow.api.array_options import Chunks, Codec, Codecs, Store, check_names, says_options
from zarrow.api.creation import _chunks, _shards
from zarrow.api.progress import Progress
from zarrow.errors import NodeTypeError
from zarrow.groups.places import joined, node_at, refuse_read_only, store_of
from zarrow.jobs.common_options import MEMORY_NBYTES, planned
from zarrow.jobs.ledger import for_one_call
from zarrow.jobs.plan import Plan
from zarrow.jobs.work import New, located
from zarrow.ome import saving
from zarrow.ome.blocks import shapes
from zarrow.ome.downscaling import Method, check_type
from zarrow.ome.pyramids import Pyramid
from zarrow.ome.reading import SPACE, Axis, Multiscales, content_of, multiscales

if TYPE_CHECKING:
    from typing import Unpack

    from zarrow.ome.blocks import Shape

# By default, levels are added until no axis that is reduced is longer.
_SMALLEST = 256

# Keys beside `multiscales` that a copy of an image keeps.
_COPIED = ("omero", "image-label")

_VERSIONS: dict[int, Literal["0.4", "0.5"]] = {2: "0.4", 3: "0.5"}


class PyramidOptions(TypedDict, total=False):
    """Options of `pyramid`, which explains each."""

    method: Method
    levels: int | None
    factors: int | Mapping[str, int]
    axes: str | Sequence[str | Axis] | None
    scale: Sequence[float] | None
    translation: Sequence[float] | None
    unit: str | Mapping[str, str] | None
    name: str | None
    version: Literal["0.4", "0.5"] | None
    memory_nbytes: int
    ledger: Store | None
    chunks: Chunks | Mapping[str, int]
    shards: int | Sequence[int] | Literal["auto"] | None
    filters: Codecs
    serializer: Codec | Literal["auto"] | None
    compressors: Codecs


@says_options
def pyramid(
    source: Array | Group | Store,
    target: Store | None = None,
    path: str = "",
    *,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    **options: Unpack[PyramidOptions],
) -> None:
    """Compute the levels of an OME-Zarr image, and store them with its metadata.

    Each chunk of the first level is read once. After a kill, the same call does the rest.

    Parameters
    ----------
    source
        The first level: an array; or a group with an image or with an array `"0"`.
    target, path
        A new image: a store, and the path of the group. The first level is copied there. Without a target,
        the other levels are stored beside the first one.
    overwrite
        Replace existing levels.
    progress
        Called with the number of finished units and of all units; or True for a bar in a terminal or a
        notebook.
    method
        `"mean"`, the default; `"mode"` for labels, the most frequent element, the smallest of several; or
        `"nearest"`, the first element of each window. Means of integers are rounded to the nearest, halves
        to even.
    levels
        The number of levels with the first one. By default, until no reduced axis is longer than 256.
    factors
        How many elements become one from level to level, along all axes of type space or by name: 2 by
        default. At the end of an axis, a window has the elements that exist.
    axes, unit
        As in `save`; by default the axes of the image, or the names of the array's dimensions.
    scale, translation
        The size of a pixel, and the position of the first one, for each axis of the first level.
    name
        The name of the image.
    version
        The version of OME-Zarr: by default that of an existing image, or "0.5".
    memory_nbytes
        How many bytes of elements a process holds at a time, 256 MiB by default.
    ledger
        As in `zarrow.jobs.copy`.
    chunks, shards, filters, serializer, compressors
        As in `create_array`, of the new levels; by default as in the first level. `chunks` can be a dict
        by names of axes.

    Raises
    ------
    NodeExistsError
        A level exists, and `overwrite` is not passed (a `FileExistsError`).
    NodeTypeError, NotFoundError
        The source has no first level.
    ReadOnlyError
        The source was opened with mode `"r"`, or its store is read-only, and there is no `target`.
    DataTypeError
        Elements of this type have no mean, or are no numbers (a `TypeError`).
    ValueError
        Axes, scale, factors and levels do not fit the array, or the memory does not suffice.
    MetadataError, CodecError, UnsupportedError, StoreError
        As `create_array` and `Array.read`.

    Examples
    --------
    >>> import numpy as np, zarrow
    >>> pixels = np.arange(600 * 800, dtype="u2").reshape(600, 800)
    >>> zarrow.save("pixels.zarr", pixels)
    >>> zarrow.ome.pyramid("pixels.zarr", "cells.ome.zarr", axes="yx", scale=[0.5, 0.5], unit="micrometer")
    >>> [level.array.shape for level in zarrow.open("cells.ome.zarr").multiscales]
    [(600, 800), (300, 400), (150, 200)]
    >>> zarrow.open("cells.ome.zarr").multiscales[1].translation
    (0.25, 0.25)
    """
    _refuse_read_only(source, target)
    node = _opened(source)
    store = store_of(node) if target is None else located(target)
    options["ledger"] = for_one_call(store, options.get("ledger"))
    _plan(node, target, path, options).complete(overwrite=overwrite, progress=progress)


@says_options
def plan_pyramid(
    source: Array | Group | Store,
    target: Store | None = None,
    path: str = "",
    **options: Unpack[PyramidOptions],
) -> Plan:
    """Return a plan that computes the levels of an OME-Zarr image, for many processes: see `zarrow.jobs`.

    Parameters and errors are as in `pyramid`.

    Examples
    --------
    >>> import numpy as np, zarrow
    >>> zarrow.save("0.zarr", np.ones((512, 512), "u1"))
    >>> plan = zarrow.ome.plan_pyramid("0.zarr", "ones.ome.zarr", axes="yx")
    >>> plan.setup()
    >>> for index in range(2):  # in two processes
    ...     _ = plan.run(plan.job(index, 2))
    >>> plan.finish()
    >>> len(zarrow.open("ones.ome.zarr").multiscales)
    2
    """
    _refuse_read_only(source, target)
    return _plan(source, target, path, options)


def _refuse_read_only(source: Array | Group | Store, target: Store | None) -> None:
    """Refuse an image that was opened to be read, if its levels go beside it."""
    if target is None and isinstance(source, Array | Group):
        refuse_read_only(source)


def _plan(source: Array | Group | Store, target: Store | None, path: str, options: PyramidOptions) -> Plan:
    item, version, attributes = described(source, target, path, options)
    return planned(
        "pyramid",
        {"": item},
        item.store,
        item.group_path,
        options.get("ledger"),
        item.memory_nbytes,
        groups={} if target is None else {"": (saving.FORMATS[version], {})},
        attributes=attributes,
    )


def described(
    source: Array | Group | Store, target: Store | None, path: str, options: PyramidOptions
) -> tuple[Pyramid, Literal["0.4", "0.5"], dict[str, Any]]:
    """Return the levels of a pyramid, the version of its image, and the attributes of the image's group."""
    check_names(options, PyramidOptions.__annotations__, "of a pyramid")
    found = _first(source)
    base, method = found.array, options.get("method", "mean")
    check_type(base, method)
    if target is None:
        if found.group is None:
            raise ValueError("the array is in no group: pass target=, the store of a new image")
        if found.is_other_level:
            raise ValueError(
                f"{base.path!r} is in an image with another first level: pass that level, or target="
            )
        store, group_path = located(store_of(found.group)), found.group.path
    else:
        store, group_path = located(target), path.strip("/")
    zarr_format = base.zarr_format if target is None else 2 if options.get("version") == "0.4" else 3
    version = options.get("version") or _VERSIONS[zarr_format]
    if version != _VERSIONS[zarr_format]:
        raise ValueError(
            f"version is {version!r}, expected {_VERSIONS[zarr_format]!r}"
            + (" for an image of Zarr version " + str(zarr_format) if target is None else " or '0.4'")
        )
    axes = _axes(found, options)
    factors = _factors(options.get("factors", 2), axes)
    level_shapes = _level_shapes(base.shape, factors, options.get("levels"))
    names = [found.name if target is None else "0", *map(str, range(1, len(level_shapes)))]
    new = range(len(names)) if target is not None else range(1, len(names))
    levels = tuple(
        New(
            base,
            store,
            joined(group_path, names[at]),
            _level_options(base, level_shapes[at], axes, zarr_format, options, is_copy=at == 0),
        )
        for at in new
    )
    image_name = options.get("name") or (found.image and found.image.name) or _name(group_path, store)
    content = saving._content(
        version, image_name, axes, names, *_transformations(found.image, base, factors, len(names), options)
    )
    content["multiscales"][0]["type"] = method
    kept = {} if found.group is None else content_of(found.group)
    if target is not None:
        kept = {key: kept[key] for key in _COPIED if key in kept}
    memory_nbytes = options.get("memory_nbytes", MEMORY_NBYTES)
    item = Pyramid((base,), None, levels, factors, method, memory_nbytes, len(names), store, group_path)
    return item, version, {"ome": {**kept, **content}} if version == "0.5" else {**kept, **content}


@dataclass(frozen=True)
class _First:
    """The first level of an image: its array, and the group and the metadata of the image, if they exist."""

    array: Array
    group: Group | None
    image: Multiscales | None
    name: str
    is_other_level: bool = False


def _opened(source: Array | Group | Store) -> Array | Group:
    return source if isinstance(source, Array | Group) else open(source, mode="r")


def _first(source: Array | Group | Store) -> _First:
    node = _opened(source)
    if isinstance(node, Group):
        if content_of(node).get("multiscales") is not None:
            image = multiscales(node)
            return _First(image[0].array, node, image, image[0].path)
        array = node.get("0")
        if not isinstance(array, Array):
            example = "".join(f", such as '{node.store}{member.name}'" for member in node.array_values()[:1])
            raise NodeTypeError(
                f"{node.name!r} is not an OME-Zarr image and has no array '0': pass the array of the first "
                f"level{example}",
                node=node,
            )
        return _First(array, node, None, "0")
    above, _, name = node.path.rpartition("/")
    if not node.path:
        return _First(node, None, None, name)
    group = node_at(store_of(node), above)
    if not isinstance(group, Group) or content_of(group).get("multiscales") is None:
        return _First(node, group if isinstance(group, Group) else None, None, name)
    image = multiscales(group)
    if image[0].path != name:
        return _First(node, group, None, name, is_other_level=True)
    return _First(node, group, image, name)


def _axes(found: _First, options: PyramidOptions) -> list[Axis]:
    given = options.get("axes")
    if given is None:
        named = found.array.dimension_names or ()
        given = found.image.axes if found.image is not None else [name for name in named if name]
    axes = saving._axes(given, options.get("unit")) if given else []
    if len(axes) != found.array.ndim:
        names = ", ".join(axis.name for axis in axes) or "no names"
        raise ValueError(
            f"the array has shape {found.array.shape}, and its axes have {names}: pass axes=, such as 'zyx'"
        )
    return axes


def _factors(given: int | Mapping[str, int], axes: Sequence[Axis]) -> tuple[int, ...]:
    """Return the factor of each axis: 1 for axes that are not of type space."""
    spaces = [axis.name for axis in axes if axis.type == SPACE]
    by_name = dict(given) if isinstance(given, Mapping) else dict.fromkeys(spaces, given)
    for name, factor in by_name.items():
        if name not in spaces:
            raise ValueError(f"factors has the axis {name!r}, expected axes of type space: {spaces}")
        if type(factor) is not int or not 1 <= factor <= 1 << 16:
            raise ValueError(f"factors is {given!r}, expected integers from 1 to 65536, such as 2")
    if all(factor == 1 for factor in by_name.values()):
        raise ValueError(f"factors is {given!r}, expected a factor above 1 for at least one axis")
    return tuple(by_name.get(axis.name, 1) for axis in axes)


def _level_shapes(shape: Shape, factors: Sequence[int], levels: int | None) -> tuple[Shape, ...]:
    if levels is not None and (type(levels) is not int or levels < 1):
        raise ValueError(f"levels is {levels!r}, expected a number of at least 1")
    found = [shape]
    while levels is None or len(found) < levels:
        reduced = [extent for extent, factor in zip(found[-1], factors, strict=True) if factor > 1]
        if levels is None and max(reduced) <= _SMALLEST:
            break
        if max(reduced) <= 1:
            raise ValueError(
                f"levels is {levels}, but level {len(found) - 1} has the shape {found[-1]} already: pass "
                f"levels={len(found)} or fewer"
            )
        found.append(shapes(found[-1], factors, 2)[1])
    return tuple(found)


def _level_options(
    base: Array,
    shape: Shape,
    axes: Sequence[Axis],
    zarr_format: int,
    given: PyramidOptions,
    *,
    is_copy: bool,
) -> dict[str, Any]:
    """Return the options of a level: as the base has them, with chunks no larger than the level."""
    names = [axis.name for axis in axes]
    options: dict[str, Any] = {
        name: given[name] for name in ("filters", "serializer", "compressors") if name in given
    }
    if not options:
        options = {"filters": base.filters, "serializer": base.serializer, "compressors": base.compressors}
    chunks, shards = given.get("chunks", base.chunks), given.get("shards")
    if "shards" not in given and "chunks" not in given and zarr_format == 3:
        shards = base.shards
    if isinstance(chunks, Mapping):
        unknown = sorted(set(chunks) - set(names))
        if unknown:
            raise ValueError(f"chunks has the axis {unknown[0]!r}, expected some of {names}")
        own = base.chunks or base.shape
        chunks = [chunks.get(name, extent) for name, extent in zip(names, own, strict=True)]
    inner = _chunks(chunks, list(base.shape))
    outer = _shards(shards, list(base.shape))
    if inner is not None:
        # An empty axis grows later.
        inner = [min(step, extent or step) for step, extent in zip(inner, shape, strict=True)]
        if isinstance(outer, list):
            # Whole chunks, and no more of them than the level has.
            outer = [
                min(most, -(-extent // step) * step or most)
                for most, extent, step in zip(outer, shape, inner, strict=True)
            ]
    options |= {
        "shape": shape,
        "chunks": "auto" if inner is None else inner,
        "shards": outer,
        "zarr_format": zarr_format,
        "attributes": dict(base.attrs) if is_copy else {},
        "dimension_names": names if zarr_format == 3 else None,
    }
    if zarr_format == 2:
        options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
    return options


def _transformations(
    image: Multiscales | None, base: Array, factors: Sequence[int], count: int, options: PyramidOptions
) -> tuple[list[list[float]], list[list[float]]]:
    """Return the scales and translations of all levels.

    A mean belongs to the middle of its window, and the first element at its beginning.
    """
    scale, translation = options.get("scale"), options.get("translation")
    if image is not None:
        scale = image[0].scale if scale is None else scale
        translation = image[0].translation if translation is None else translation
    first = saving._numbers("scale", scale, [base.shape], False)[0]
    if any(number <= 0 for number in first):
        raise ValueError(f"scale is {scale!r}, expected positive numbers")
    start = saving._numbers("translation", translation or [0.0] * base.ndim, [base.shape], False)[0]
    is_centred = options.get("method", "mean") != "nearest"
    powers = [[factor**level for factor in factors] for level in range(count)]
    scales = [[own * power for own, power in zip(first, each, strict=True)] for each in powers]
    translations = [
        [
            at + (power - 1) / 2 * own if is_centred else at
            for at, power, own in zip(start, each, first, strict=True)
        ]
        for each in powers
    ]
    return scales, translations


def _name(path: str, store: Store) -> str:
    """Return the name of an image without one: that of its group."""
    name = path.rpartition("/")[2]
    if not name and isinstance(store, str):
        name = store.rstrip("/").replace("\\", "/").rpartition("/")[2]
    return name or "image"
