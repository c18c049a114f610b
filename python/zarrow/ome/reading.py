"""Reading of OME-Zarr images.

1. Version 0.5 keeps the metadata in the attribute `ome`; 0.4 keeps them among the attributes. The
   layout decides.
2. A level is transformed first, and then the image.
3. Metadata are checked when `multiscales` is read; a level's array is opened, and checked, when it is used.

Source: OME-Zarr specification, versions 0.4 and 0.5.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Group
from zarrow.errors import InvalidKeyError, MetadataError, NodeTypeError, NotFoundError

SPACE = "space"
TIME = "time"
CHANNEL = "channel"


@dataclass(frozen=True)
class Axis:
    """An axis of an image.

    Attributes
    ----------
    name : str
        The name, such as "x".
    type : str or None
        "space", "time", "channel", or another type.
    unit : str or None
        The unit, such as "micrometer".
    """

    name: str
    type: str | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Level:
    """One resolution of an image.

    Attributes
    ----------
    path : str
        The path of its array below the image's group.
    scale : tuple of float
        The size of a pixel along each axis, in the axis' unit.
    translation : tuple of float
        The position of the first pixel along each axis.
    """

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]
    _group: Group = field(repr=False, compare=False)

    if not TYPE_CHECKING:  # a type checker would take every name for one that exists

        def __getattr__(self, name: str) -> Any:
            raise _missing("Level", "level", name)

    @property
    def array(self) -> Array:
        """The array, which is opened anew.

        Raises
        ------
        MetadataError
            It has another number of axes than the image, or does not exist (a `ValueError`).
        """
        try:
            array = self._group.get_array(self.path)
        except (NotFoundError, NodeTypeError, InvalidKeyError) as error:
            raise malformed(self._group, f"level {self.path!r} is not an array: {error}") from error
        if array.ndim != len(self.scale):
            raise malformed(
                self._group,
                f"level {self.path!r} has shape {array.shape}, but the image has {len(self.scale)} axes",
            )
        return array


@dataclass(frozen=True)
class Multiscales:
    """An image in several resolutions: a sequence of levels, the largest first.

    Attributes
    ----------
    name : str or None
        The name of the image.
    version : str
        The version of OME-Zarr, such as "0.5".
    axes : tuple of Axis
        The axes of each level, outermost first.
    levels : tuple of Level
        The levels; `image[0]` and `image["0"]` are one by number and by name.
    """

    name: str | None
    version: str
    axes: tuple[Axis, ...]
    levels: tuple[Level, ...]
    _group: Group = field(repr=False, compare=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise _missing("Multiscales", "image[0]", name)

    def level(self, path: str) -> Level:
        """Return the level of a name.

        Raises
        ------
        KeyError
            There is none.
        """
        for level in self.levels:
            if level.path == path:
                return level
        names = ", ".join(repr(level.path) for level in self.levels)
        raise KeyError(f"no level {path!r}, expected one of {names}")

    def __getitem__(self, index: int | str) -> Level:
        """Return a level by number or by name."""
        if isinstance(index, str):
            return self.level(index)
        try:
            return self.levels[index]
        except IndexError:
            raise IndexError(f"no level {index}, the image has {len(self)}") from None

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.levels)

    def __iter__(self) -> Iterator[Level]:
        """Iterate over the levels."""
        return iter(self.levels)

    @property
    def labels(self) -> dict[str, Multiscales]:
        """The label images below `labels`, by name; empty without any.

        Raises
        ------
        MetadataError
            A label image in the list does not exist, or its metadata are malformed (a `ValueError`).
        """
        group = self._group.get("labels")
        if not isinstance(group, Group):
            return {}
        names = content_of(group).get("labels", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise malformed(group, f"attribute 'labels' is {names!r}, expected a list of names")
        return {name: _label(group, name) for name in names}


def _missing(kind: str, level: str, name: str) -> AttributeError:
    """Return the error for a name that an image lacks; its arrays may have it."""
    text = f"{kind!r} object has no attribute {name!r}"
    if name in ("compute", "data", "pixels", "values"):
        text += f": type {level}.array[...]"
    elif name in ("channel_names", "channels", "omero"):
        text += ': type group.attrs["ome"]["omero"], where the image has it'
    elif kind == "Level" and name in ("key", "name"):
        text += ": type level.path"
    elif not name.startswith("_") and hasattr(Array, name):
        text += f": type {level}.array.{name}"
    return AttributeError(text, name=name)


def _label(group: Group, name: str) -> Multiscales:
    try:
        if not _is_relative(name):
            raise malformed(group, f"attribute 'labels' has {name!r}, expected the path of a group below it")
        return multiscales(group.get_group(name))
    except (NotFoundError, NodeTypeError, InvalidKeyError) as error:
        raise malformed(group, f"{name!r} of attribute 'labels' is not a label image: {error}") from error


def multiscales(self: Group) -> Multiscales:
    """Read the metadata of an image."""
    content = content_of(self)
    images = content.get("multiscales")
    if images is None:
        raise NodeTypeError(
            f"{self.name!r} is not an OME-Zarr image: it has no attribute 'multiscales'; type group.tree() "
            "to find one",
            store=self.store,
        )
    if not isinstance(images, list) or not images or not isinstance(images[0], Mapping):
        raise malformed(self, "attribute 'multiscales' is not a list of objects")
    image = images[0]
    axes = _axes(self, image)
    datasets = image.get("datasets")
    if not isinstance(datasets, list) or not datasets:
        raise malformed(self, f"'datasets' is {datasets!r}, expected a list of levels")
    after = _transformation(self, image, "the image", len(axes))
    levels = tuple(_level(self, dataset, len(axes), after) for dataset in datasets)
    twice = [path for path, count in Counter(level.path for level in levels).items() if count > 1]
    if twice:
        raise malformed(self, f"level {twice[0]!r} is listed twice")
    version = content.get("version") or image.get("version") or "0.4"
    if not isinstance(version, str | float | int):
        raise malformed(self, f"'version' is {version!r}, expected text")
    return Multiscales(_text(self, image, "name", "the image"), str(version), axes, levels, self)


def _text(group: Group, owner: Mapping[str, Any], key: str, what: str) -> str | None:
    value = owner.get(key)
    if value is not None and not isinstance(value, str):
        raise malformed(group, f"{key!r} of {what} is {value!r}, expected text")
    return value


def content_of(group: Group) -> Mapping[str, Any]:
    """Return the mapping of the metadata (step 1)."""
    attributes: Mapping[str, Any] = group._attributes()
    inner = attributes.get("ome")
    return inner if isinstance(inner, Mapping) else attributes


def _axes(group: Group, image: Mapping[str, Any]) -> tuple[Axis, ...]:
    given = image.get("axes")
    if not isinstance(given, list) or not given:
        raise malformed(group, f"'axes' is {given!r}, expected a list of axes; OME-Zarr before 0.3 had none")
    axes = []
    for axis in given:
        parts = {"name": axis} if isinstance(axis, str) else axis
        if not isinstance(parts, Mapping) or not isinstance(parts.get("name"), str):
            raise malformed(group, f"axis {axis!r} has no name")
        what = f"axis {parts['name']!r}"
        axes.append(Axis(parts["name"], _text(group, parts, "type", what), _text(group, parts, "unit", what)))
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names):
        raise malformed(group, f"axes {names} have a name twice")
    return tuple(axes)


def _level(
    group: Group, dataset: Any, ndim: int, after: tuple[tuple[float, ...], tuple[float, ...]]
) -> Level:
    path = dataset.get("path") if isinstance(dataset, Mapping) else None
    if not isinstance(path, str) or not path:
        raise malformed(group, f"level {dataset!r} has no path")
    if not _is_relative(path):
        raise malformed(group, f"level {path!r} is not below the image")
    scale, translation = _transformation(group, dataset, f"level {path!r}", ndim)
    return Level(
        path,
        tuple(own * outer for own, outer in zip(scale, after[0], strict=True)),
        tuple(own * outer + shift for own, outer, shift in zip(translation, *after, strict=True)),
        group,
    )


def _is_relative(path: str) -> bool:
    """Return whether a path leads to a node below its group."""
    return not {"", ".", ".."}.intersection(path.split("/")) and path.isprintable()


def _transformation(
    group: Group, owner: Mapping[str, Any], what: str, ndim: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return scale and translation; other kinds of transformations are refused."""
    found: dict[str, tuple[float, ...]] = {}
    given = owner.get("coordinateTransformations")
    if given is not None and not isinstance(given, list):
        raise malformed(group, f"'coordinateTransformations' of {what} is {given!r}, expected a list")
    for each in given or ():
        kind = each.get("type") if isinstance(each, Mapping) else None
        if kind == "identity":
            continue
        values = each.get(kind) if kind in ("scale", "translation") else None
        if not isinstance(values, list) or not all(_is_finite(value) for value in values):
            raise malformed(
                group,
                f"{what} has the transformation {each!r}, expected a scale or a translation, of finite "
                "numbers",
            )
        if len(values) != ndim:
            raise malformed(
                group, f"{kind} {values} of {what} has {len(values)} numbers, but there are {ndim} axes"
            )
        if kind in found or "translation" in found:
            raise malformed(
                group,
                f"{what} has the transformations {given!r}, expected one scale and then one translation",
            )
        found[str(kind)] = tuple(float(value) for value in values)
    return found.get("scale", (1.0,) * ndim), found.get("translation", (0.0,) * ndim)


def _is_finite(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(float(value))
    except OverflowError:
        return False


def malformed(group: Group, text: str) -> MetadataError:
    """Return the error for metadata that contradict the specification."""
    return MetadataError(f"{group.name!r}: {text}", node=group)
