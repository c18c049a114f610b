"""Storing of OME-Zarr images; the caller computes the levels.

1. Everything is checked before the store changes: the image is first created in memory, without elements.
2. In folders and in memory, the image is built in a hidden place and put in place in one step. In other
   stores the metadata are stored last, so that an unfinished group is no image. Levels that may be read from
   a replaced image there are in memory before it is erased.
3. Version 0.5 is Zarr version 3, with the names of the axes; 0.4 is Zarr version 2, with "/" in chunk keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from zarrow._zarrow import Array, Group, MemoryStore, _create_whole_group, _import, asarray
from zarrow.api.array_options import Store, says_options
from zarrow.api.creation import create_group
from zarrow.api.node_batch import NodeBatch, is_small
from zarrow.api.progress import reporting
from zarrow.api.reported_amounts import Amount, size_of
from zarrow.api.small_arrays import is_added, read_small
from zarrow.groups.places import joined, node_at
from zarrow.interchange.lazy_arrays import opened
from zarrow.ome.reading import CHANNEL, SPACE, TIME, Axis

if TYPE_CHECKING:
    from typing import Unpack

    import numpy.typing as npt

    from zarrow.api.array_options import LayoutOptions
    from zarrow.api.progress import Progress

_TYPES = {"t": TIME, "c": CHANNEL, "z": SPACE, "y": SPACE, "x": SPACE}
FORMATS: dict[str, Literal[2, 3]] = {"0.4": 2, "0.5": 3}


@says_options
def save(
    store: Store,
    levels: Sequence[Array | npt.ArrayLike] | Mapping[str, Array | npt.ArrayLike],
    *,
    axes: str | Sequence[str | Axis],
    path: str = "",
    scale: Sequence[float] | Sequence[Sequence[float]] | None = None,
    translation: Sequence[float] | Sequence[Sequence[float]] | None = None,
    unit: str | Mapping[str, str] | None = None,
    name: str | None = None,
    labels: Mapping[str, Sequence[Array | npt.ArrayLike]] | None = None,
    version: Literal["0.4", "0.5"] = "0.5",
    progress: Progress | bool | None = None,
    **options: Unpack[LayoutOptions],
) -> None:
    """Store an image in several resolutions as an OME-Zarr group.

    Parameters
    ----------
    store
        As for `create_group`, or a Group.
    levels
        The levels, the largest first: arrays that `create_array` takes, also of a store. A mapping gives
        their names; by default they are "0", "1", and so on.
    axes
        The axes, outermost first: names, as in "tczyx", or `Axis` objects. The names t, c, z, y and x have
        the usual types.
    path
        The path of the group in the store.
    scale
        The size of a pixel for each axis, of the first level or of each level. If it is given for the first
        level, the others follow from the shapes. By default 1 for the first level.
    translation
        The position of the first pixel for each axis, of all levels or of each level.
    unit
        The unit of all axes of type space, or a mapping of names of axes to units.
    name
        The name of the image; by default that of the group.
    labels
        Label images by name: each has as many levels as the image, of integers, with the same axes or
        without the channels.
    version
        The version of OME-Zarr: "0.5" (Zarr version 3), or "0.4" (Zarr version 2).
    progress
        Called with the bytes of levels that were stored, and of all; or True for a bar in a terminal or a
        notebook. Small levels are stored together.
    options
        Options of `create_array` for each level, such as `chunks`, `shards` and `compressors`. `attributes`
        are other attributes of the group; in version 0.5 those in `attributes["ome"]` are kept beside the
        image's. `overwrite` replaces a node.

    Raises
    ------
    ValueError
        Levels, axes, scales or labels do not fit together, or contradict the specification. Nothing was
        stored.
    NodeExistsError
        A node exists at the path (a `FileExistsError`).

    And as `create_array`.

    Examples
    --------
    >>> import numpy as np, zarrow
    >>> image = np.zeros((2, 64, 64), "u2")
    >>> levels, nuclei = [image, image[:, ::2, ::2]], [image[0], image[0, ::2, ::2]]
    >>> zarrow.ome.save("cells.ome.zarr", levels, axes="cyx", labels={"nuclei": nuclei})
    >>> list(zarrow.open("cells.ome.zarr").multiscales.labels)
    ['nuclei']
    """
    if version not in FORMATS:
        raise ValueError(f"version is {version!r}, expected '0.4' or '0.5'")
    zarr_format = FORMATS[version]
    for option in ("dimension_names", "shape", "dtype", "data"):
        if option in options:
            raise TypeError(f"save takes no {option}: the levels and their axes give it")
    all_axes = _axes(axes, unit)
    named = _named(levels)
    shapes = _shapes(named, [axis.name for axis in all_axes])
    scales = _numbers("scale", scale, shapes, True)
    if any(number <= 0 for row in scales for number in row):
        raise ValueError(f"scale is {scale!r}, expected positive numbers")
    translations = None if translation is None else _numbers("translation", translation, shapes, False)
    all_labels = {label: _arrays(f"labels {label!r}", below) for label, below in (labels or {}).items()}
    label_axes = {
        label: _axes_of_label(label, below, shapes, all_axes) for label, below in all_labels.items()
    }
    attributes = dict(options.pop("attributes", None) or {})
    overwrite = bool(options.pop("overwrite", False))
    image_name = name or path.rpartition("/")[2] or "image"
    content = _content(version, image_name, all_axes, list(named), scales, translations)
    plan = _Plan(zarr_format, named, all_axes, dict(options), _merged(attributes, content, version))
    for label, label_levels in all_labels.items():
        kept = [at for at, axis in enumerate(all_axes) if axis in label_axes[label]]
        label_scales = [[numbers[at] for at in kept] for numbers in scales]
        label_translations = translations and [[numbers[at] for at in kept] for numbers in translations]
        content = _content(version, label, label_axes[label], list(named), label_scales, label_translations)
        source = {"source": {"image": "../../"}}
        content["image-label"] = source if version == "0.5" else {"version": version, **source}
        plan.labels[label] = _Plan(
            zarr_format,
            dict(zip(named, label_levels, strict=True)),
            label_axes[label],
            _without_axes(options, kept, len(all_axes)),
            _merged({}, content, version),
        )
    with reporting(progress, "save") as report:
        _store(plan, store, path, overwrite, report)


@dataclass
class _Plan:
    """An image to store."""

    zarr_format: Literal[2, 3]
    levels: dict[str, Any]
    axes: list[Axis]
    options: dict[str, Any]
    attributes: dict[str, Any]
    labels: dict[str, _Plan] = field(default_factory=dict)

    @property
    def array_options(self) -> dict[str, Any]:
        """The options of each level, with names of axes or of chunks (step 3)."""
        if self.zarr_format == 2:
            return {**self.options, "chunk_key_encoding": {"name": "v2", "separator": "/"}}
        return {**self.options, "dimension_names": [axis.name for axis in self.axes]}


def _store(plan: _Plan, store: Store, path: str, overwrite: bool, report: Progress | None) -> None:
    """Check the whole image, and store it (steps 1 and 2)."""
    _create(plan, MemoryStore(), path, has_elements=False)
    is_stored = _create_whole_group(
        store,
        path,
        {},
        lambda group: _create(plan, group, "", keep=True, report=report),
        lambda: overwrite and node_at(store) is not None,
        zarr_format=plan.zarr_format,
        overwrite=overwrite,
    )
    if is_stored:
        return
    if overwrite:
        for each in (plan, *plan.labels.values()):
            each.levels = {name: _in_memory(level) for name, level in each.levels.items()}
        create_group(store, path, zarr_format=plan.zarr_format, overwrite=True)
    _create(plan, store, path, keep=overwrite, report=report)


def _in_memory(level: Any) -> Any:
    level = opened(level)
    return level[...] if isinstance(level, Array) else asarray(level)


def _create(
    plan: _Plan,
    target: Store,
    path: str,
    *,
    keep: bool = False,
    has_elements: bool = True,
    report: Progress | None = None,
) -> None:
    """Create the groups and the small levels, then the large levels, and at last the attributes (step 4)."""
    batch = NodeBatch(target, plan.zarr_format)
    batch.add_group(path, {}, keep=keep)
    images, attributes = {"": plan}, dict[str, Mapping[str, Any]]()
    if plan.labels:
        batch.add_group(joined(path, "labels"), {})
        listed: dict[str, Any] = {"labels": list(plan.labels)}
        attributes["labels"] = listed if plan.zarr_format == 2 else {"ome": {"version": "0.5", **listed}}
        images |= {f"labels/{name}": label for name, label in plan.labels.items()}
    levels, options = dict[str, Any](), dict[str, dict[str, Any]]()
    for place, image in images.items():
        if place:
            attributes[place] = image.attributes
            batch.add_group(joined(path, place), {})
        for name, given in image.levels.items():
            level, where = opened(given), joined(place, name)
            elements = {"data": level} if has_elements else {"shape": level.shape, "dtype": _type_of(level)}
            levels[where], options[where] = level, {**image.array_options, **elements}
    if has_elements:
        for name, _, read in read_small(levels.items()):
            if is_added(batch, joined(path, name), **options[name], elements=read):
                del options[name]
    for name, level in levels.items():
        is_together = name in options and (not has_elements or is_small(level))
        if is_together and is_added(batch, joined(path, name), **options[name]):
            del options[name]
    amount = Amount(report, sum(map(size_of, levels.values())))
    together = sum(size_of(level) for name, level in levels.items() if name not in options)
    amount.begin(together)
    root = batch.create()[0]
    assert isinstance(root, Group)
    amount.finish()
    for name, rest in options.items():
        amount.begin(size_of(levels[name]))
        root.create_array(name, **rest)
        amount.finish()
    last = NodeBatch(root, plan.zarr_format)
    for place, own in attributes.items():
        last.add_group(place, own, keep=True)
    if attributes:
        last.create()
    root.attrs.update(plan.attributes)


def _type_of(level: Any) -> Any:
    """Return the type of a level's elements, or its name in Zarr for one of another library."""
    level = opened(level)
    if isinstance(level, Array):
        return level.data_type
    try:
        return _import("numpy").dtype(level.dtype)
    except TypeError:
        return str(level.dtype).rpartition(".")[2]


def _merged(attributes: dict[str, Any], content: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the attributes of a group with the metadata of its image."""
    others = attributes.get("ome", {}) if version == "0.5" else attributes
    if not isinstance(others, Mapping):
        raise ValueError(f"attributes['ome'] is {others!r}, expected a mapping")
    both = sorted(content.keys() & others.keys())
    if both:
        raise ValueError(f"attributes have {both[0]!r}, which save stores itself: leave it out")
    return {**attributes, "ome": {**others, **content}} if version == "0.5" else {**attributes, **content}


def _axes(given: str | Sequence[str | Axis], unit: str | Mapping[str, str] | None) -> list[Axis]:
    """Return the axes with types and units; their order is checked."""
    axes = []
    for axis in given:
        found = Axis(axis, _TYPES.get(axis)) if isinstance(axis, str) else axis
        own = unit.get(found.name) if isinstance(unit, Mapping) else unit if found.type == SPACE else None
        axes.append(Axis(found.name, found.type, found.unit or own))
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise ValueError(f"axes {names} have a name twice")
    unknown = set(unit if isinstance(unit, Mapping) else ()) - set(names)
    if unknown:
        raise ValueError(f"unit names the axes {sorted(unknown)}, but the image has {names}")
    spaces = sum(axis.type == SPACE for axis in axes)
    order = {TIME: 0, SPACE: 2}
    ranks = [order.get(axis.type or "", 1) for axis in axes]
    if (
        spaces not in (2, 3)
        or len(axes) > 5
        or ranks != sorted(ranks)
        or ranks.count(0) > 1
        or ranks.count(1) > 1
    ):
        raise ValueError(
            f"axes are {names} of types {[axis.type for axis in axes]}, expected at most one of time, one of "
            "channel or another type, and 2 or 3 of space, in this order: pass axes= with names such as "
            '"tczyx"'
        )
    return axes


def _named(levels: Any) -> dict[str, Any]:
    arrays = _arrays("levels", levels.values() if isinstance(levels, Mapping) else levels)
    names = list(levels) if isinstance(levels, Mapping) else [str(at) for at in range(len(arrays))]
    named = dict(zip(names, arrays, strict=True))
    if not named:
        raise ValueError("levels is empty, expected at least one array")
    for name in named:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a level is named {name!r}, expected text")
    return named


def _arrays(what: str, levels: Any) -> list[Any]:
    """Return levels that have a shape and a type."""
    if hasattr(levels, "shape") or isinstance(levels, str | bytes):
        raise ValueError(f"{what}: expected a list of arrays, got one {type(levels).__name__}: pass [array]")
    np = _import("numpy")
    return [level if hasattr(level, "shape") else np.asarray(level) for level in levels]


def _shapes(named: dict[str, Any], axes: Sequence[str]) -> list[tuple[int, ...]]:
    shapes = [tuple(level.shape) for level in named.values()]
    for name, shape in zip(named, shapes, strict=True):
        if len(shape) != len(axes):
            raise ValueError(
                f"level {name!r} has shape {shape}, but there are {len(axes)} axes: {', '.join(axes)}"
            )
    for larger, smaller in pairwise(shapes):
        if any(after > before for before, after in zip(larger, smaller, strict=True)):
            raise ValueError(f"a level of shape {smaller} follows one of {larger}: pass the largest first")
    return shapes


def _numbers(what: str, given: Any, shapes: list[tuple[int, ...]], follows: bool) -> list[list[float]]:
    """Return numbers of each level; a scale of the first level gives the others by their shapes."""
    ndim = len(shapes[0])
    if given is None:
        given = [1.0] * ndim
    try:
        is_nested = all(hasattr(row, "__len__") and not isinstance(row, str) for row in given)
        rows = [[float(number) for number in row] for row in (given if is_nested else [given])]
    except (TypeError, ValueError, OverflowError):
        rows = []
    if not rows or not all(math.isfinite(number) for row in rows for number in row):
        raise ValueError(
            f"{what} is {given!r}, expected finite numbers for each axis, or such a list per level"
        )
    if not is_nested:
        rows = rows * len(shapes)
        if follows and len(rows[0]) == ndim:
            rows = [
                [
                    number * (max(most, 1) / max(extent, 1))
                    for number, most, extent in zip(row, shapes[0], shape, strict=True)
                ]
                for row, shape in zip(rows, shapes, strict=True)
            ]
    if len(rows) != len(shapes):
        raise ValueError(f"{what} is given for {len(rows)} levels, but there are {len(shapes)}")
    for row in rows:
        if len(row) != ndim:
            raise ValueError(f"{what} {row} has {len(row)} numbers, but there are {ndim} axes")
    return rows


def _axes_of_label(name: str, levels: Any, shapes: list[tuple[int, ...]], axes: list[Axis]) -> list[Axis]:
    """Return the axes of a label image: all, or all but the channels."""
    if not name or "/" in name:
        raise ValueError(f"a label image is named {name!r}, expected text without '/'")
    if len(levels) != len(shapes):
        raise ValueError(f"labels {name!r} have {len(levels)} levels, but the image has {len(shapes)}")
    channels = [at for at, axis in enumerate(axes) if axis.type == CHANNEL]
    kept = list(range(len(axes)))
    if len(levels[0].shape) < len(axes):
        kept = [at for at in kept if at not in channels]
    for level, shape in zip(levels, shapes, strict=True):
        expected = tuple(shape[at] for at in kept)
        found = tuple(level.shape)
        if found != expected and not (
            len(found) == len(axes) and _without(found, channels) == _without(shape, channels)
        ):
            raise ValueError(f"a level of labels {name!r} has shape {found}, expected {expected}")
        if getattr(level.dtype, "kind", str(_type_of(level))[0]) not in "iu":
            raise ValueError(
                f"labels {name!r} are of type {level.dtype}, expected integers: pass level.astype('u1') or a "
                "larger type"
            )
    return [axes[at] for at in kept]


def _without_axes(options: Mapping[str, Any], kept: list[int], ndim: int) -> dict[str, Any]:
    """Return the options of arrays with only some of the axes."""
    fewer = dict(options)
    for name in ("chunks", "shards"):
        shape = options.get(name)
        if isinstance(shape, list | tuple) and len(shape) == ndim:
            fewer[name] = [shape[at] for at in kept]
    return fewer


def _without(shape: tuple[int, ...], channels: list[int]) -> list[int]:
    return [extent for at, extent in enumerate(shape) if at not in channels]


def _content(
    version: str,
    name: str,
    axes: list[Axis],
    paths: list[str],
    scales: list[list[float]],
    translations: list[list[float]] | None,
) -> dict[str, Any]:
    """Return the metadata of an image."""
    datasets = []
    for at, path in enumerate(paths):
        transformations: list[dict[str, Any]] = [{"type": "scale", "scale": scales[at]}]
        if translations is not None:
            transformations.append({"type": "translation", "translation": translations[at]})
        datasets.append({"path": path, "coordinateTransformations": transformations})
    parts = ("name", "type", "unit")
    described = [
        {part: value for part in parts if (value := getattr(axis, part)) is not None} for axis in axes
    ]
    image: dict[str, Any] = {"name": name, "axes": described, "datasets": datasets}
    if version == "0.4":
        return {"multiscales": [{"version": version, **image}]}
    return {"version": version, "multiscales": [image]}
