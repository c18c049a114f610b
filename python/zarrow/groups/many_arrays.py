"""Several arrays created at once: `Group.create_arrays`.

1. The options of every array are checked, and the arrays join one batch (`zarrow.api.node_batch`). It takes
   data in memory alone: an array of a store could change, or fail, while the others are created.
2. The batch is created. All nodes are checked before the first is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from zarrow.api.array_options import check_names
from zarrow.api.creation import _create
from zarrow.api.node_batch import NodeBatch, NotInBatchError
from zarrow.groups.tables import naming

if TYPE_CHECKING:
    from typing import Unpack

    from zarrow._zarrow import Array, Group
    from zarrow.api.array_options import ArrayOptions


def create_arrays(
    self: Group, arrays: Mapping[str, ArrayOptions], /, **options: Unpack[ArrayOptions]
) -> dict[str, Array]:
    """Create arrays below the group together, and any missing groups above them.

    In a store in the cloud, many arrays take about as long as one. They are checked before the first is
    created: if one is refused, none is created.

    Parameters
    ----------
    arrays
        The options of `create_array` for each array, by its path below the group. Data are in memory, and are
        stored as one array: no array of a store, and no categorical for AnnData.
    options
        Options of all arrays that do not set them.

    Returns
    -------
    dict of str to Array
        The arrays by their paths.

    Raises
    ------
    TypeError
        An option is unknown, the options of an array are not a mapping, or its data are in a store.
    NodeExistsError
        A node, file or folder exists at one of the paths, or one is below another (a `FileExistsError`).
    MetadataError, CodecError, LimitError, NodeTypeError, UnsupportedError, InvalidKeyError, ReadOnlyError,
    StoreError
        As `create_array`.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.create_group("new.zarr")
    >>> rain, day = {"shape": (365, 100)}, {"data": [1, 2, 3], "dtype": "i2"}
    >>> created = root.create_arrays({"model/rain": rain, "day": day}, dtype="f4", compressors=None)
    >>> [(path, array.shape, str(array.dtype)) for path, array in created.items()]
    [('model/rain', (365, 100), 'float32'), ('day', (3,), 'int16')]
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(f"expected a dict of options by path, got {type(arrays).__name__}")
    common = {name: list(given) if isinstance(given, Iterator) else given for name, given in options.items()}
    described = {path: _described(path, own, common) for path, own in arrays.items()}
    batch, version = NodeBatch(self, self.zarr_format, None), {"zarr_format": self.zarr_format}
    for path, each in described.items():
        with naming(path):
            try:
                _create(batch, path, "none", dict(version), **each)
            except NotInBatchError:
                raise TypeError(
                    "the data are an array of a store, or stored as a group: type "
                    f"group.create_array({path!r}, data=...) for them alone, or data[...] to read them first"
                ) from None
    return dict(zip(described, cast("list[Array]", batch.create()), strict=True))


def _described(path: str, own: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of an array.

    Raises
    ------
    TypeError
        The options are not a mapping, or an option is unknown.
    """
    if not isinstance(own, Mapping):
        raise TypeError(
            f"{path!r}: expected the options of an array, such as {{'shape': (4, 6), 'dtype': 'f4'}}, got "
            f"{type(own).__name__}: type {{{path!r}: {{'data': x}}}} for its elements"
        )
    described = {**options, **own}
    with naming(path):
        check_names(described)
    return described
