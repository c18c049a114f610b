"""Creates OME-Zarr images without elements, which are written or streamed later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from zarrow._zarrow import Group, MemoryStore, _create_whole_group
from zarrow.api.array_options import Chunks, Codec, Codecs, Store, check_names, says_options
from zarrow.api.creation import create_array, create_group
from zarrow.api.node_batch import NodeBatch
from zarrow.api.opening import open_group
from zarrow.groups.places import joined, node_at
from zarrow.ome import saving
from zarrow.ome.downscaling import Method
from zarrow.ome.planning import PyramidOptions, described
from zarrow.ome.reading import Axis

if TYPE_CHECKING:
    from typing import Unpack

_LAYOUT = ("chunks", "shards", "filters", "serializer", "compressors", "fill_value")


class ImageOptions(TypedDict, total=False):
    """Options of `create`, which explains each."""

    method: Method
    levels: int | None
    factors: int | Mapping[str, int]
    scale: Sequence[float] | None
    translation: Sequence[float] | None
    unit: str | Mapping[str, str] | None
    name: str | None
    chunks: Chunks
    shards: int | Sequence[int] | Literal["auto"] | None
    filters: Codecs
    serializer: Codec | Literal["auto"] | None
    compressors: Codecs
    fill_value: Any


@says_options
def create(
    store: Store,
    path: str = "",
    *,
    shape: Sequence[int],
    dtype: Any,
    axes: str | Sequence[str | Axis],
    version: Literal["0.4", "0.5"] = "0.5",
    overwrite: bool = False,
    **options: Unpack[ImageOptions],
) -> Group:
    """Create an OME-Zarr image without elements, with the levels that `pyramid` would make.

    `zarrow.stream.Writer` appends frames to all levels.

    Parameters
    ----------
    store, path
        A store, and the path of the image's group.
    shape, dtype
        Shape and type of the first level. An axis that grows begins with 0.
    axes, unit
        As in `save`.
    version
        The version of OME-Zarr: "0.5" (Zarr version 3), or "0.4" (Zarr version 2).
    overwrite
        Replace a node.
    method, levels, factors, scale, translation, name
        As in `pyramid`. The metadata keep the method for `zarrow.stream.Writer`.
    chunks, shards, filters, serializer, compressors, fill_value
        As in `create_array`, of the first level. The other levels have the same; chunks are cut to the
        level's shape.

    Raises
    ------
    NodeExistsError
        A node exists at the path (a `FileExistsError`).
    DataTypeError
        Elements of this type have no mean, or are not numbers (a `TypeError`).
    ValueError
        Axes, scale, factors and levels do not fit the shape.
    MetadataError, CodecError, StoreError
        As `create_array`.

    Examples
    --------
    >>> import zarrow
    >>> movie = zarrow.ome.create(
    ...     "movie.ome.zarr", shape=(0, 512, 512), dtype="u2", axes="tyx", chunks=(8, 256, 256), levels=3
    ... )
    >>> [level.array.shape for level in movie.multiscales]
    [(0, 512, 512), (0, 256, 256), (0, 128, 128)]
    """
    check_names(options, ImageOptions.__annotations__, "of an image")
    if version not in saving.FORMATS:
        raise ValueError(f"version is {version!r}, expected '0.4' or '0.5'")
    zarr_format = saving.FORMATS[version]
    given: dict[str, Any] = dict(options)
    layout = {option: given.pop(option) for option in _LAYOUT if option in given}
    first = create_array(MemoryStore(), shape=shape, dtype=dtype, zarr_format=zarr_format, **layout)
    given |= {"axes": axes, "version": version}
    item, _, attributes = described(first, store, path, cast(PyramidOptions, given))

    def add_levels(target: Any, above: str) -> None:
        batch = NodeBatch(target, zarr_format)
        for new in item.levels:
            name = new.path.removeprefix(item.group_path).strip("/")
            batch.add_documents(joined(above, name), new.documents_in_memory())
        batch.create()

    is_created = _create_whole_group(
        store,
        path,
        attributes,
        lambda group: add_levels(group, ""),
        lambda: overwrite and node_at(store) is not None,
        zarr_format=zarr_format,
        overwrite=overwrite,
    )
    if is_created:
        return open_group(store, path, mode="r+")
    group = create_group(store, path, zarr_format=zarr_format, overwrite=overwrite)
    add_levels(store, path)
    # An unfinished group is no image.
    group.attrs.update(attributes)
    return group
