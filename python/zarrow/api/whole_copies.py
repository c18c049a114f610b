"""`copy`: copies an array or a group to another store, with a plan of `zarrow.jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from zarrow._zarrow import Array, Group, MemoryStore, open
from zarrow.api.array_options import Chunks, Codec, Codecs, Store, check_names, says_options
from zarrow.errors import ReadOnlyError

if TYPE_CHECKING:
    from typing import Unpack

    from zarrow.api.progress import Progress
    from zarrow.api.typed import AnyNode
    from zarrow.jobs.selecting import Selection

__all__ = ["copy"]


class CopyOptions(TypedDict, total=False):
    """Options of `copy`, which explains each."""

    chunks: Chunks | Mapping[str, int]
    shards: int | Sequence[int] | Mapping[str, int] | Literal["auto"] | None
    dtype: Any
    order: Literal["C", "F"]
    filters: Codecs
    serializer: Codec | Literal["auto"] | None
    compressors: Codecs
    fill_value: Any
    zarr_format: Literal[2, 3]
    chunk_key_encoding: str | Mapping[str, Any]


@says_options
def copy(
    source: Array | Group | Store,
    target: Store,
    path: str = "",
    *,
    select: Selection | None = None,
    raw: bool = False,
    if_exists: Literal["error", "overwrite", "skip"] = "error",
    attributes: Mapping[str, Any] | None = None,
    consolidate: bool = False,
    memory_nbytes: int | None = None,
    threads: int = 1,
    passes: Literal[1, 2] | None = None,
    ledger: Store | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[CopyOptions],
) -> AnyNode:
    """Copy an array, or a group with everything below it, in bounded memory.

    After a kill, the same call does the rest. The source must not change in between. `zarrow.jobs.copy` is
    the same work for many processes, and `zarrow copy` the command.

    Parameters
    ----------
    source
        An opened array or group, or a store as `open` takes it.
    target, path
        Where the copy is created: a store, and a path in it. Groups that exist there keep their other members
        and attributes.
    select
        Copy only these elements: slices of an array's axes, or slices by names of dimensions, such as
        `{"day": slice(0, 31)}`. In a group, by names: arrays without these dimensions are copied whole.
    raw
        Copy documents and stored chunks byte for byte, without decoding them. No options go with it.
    if_exists
        What happens to arrays that exist at the target: "error" copies nothing, "overwrite" replaces them,
        and "skip" keeps them and copies the others.
    attributes
        More attributes of the copy, written at the end.
    consolidate
        Consolidate the metadata of a group at the end.
    memory_nbytes
        How many bytes of elements each thread holds, 256 MiB by default, or one chunk or shard if that is
        larger. With other chunks than the source, more memory means fewer repeated reads.
    threads
        How many parts are copied at a time: more than 1 is faster with stores that answer slowly.
    passes
        How often elements are copied: 1, or 2 through an array that is beside the target until the copy is
        finished, with `.intermediate` and a hash at the end of its name. By default 2 if one pass would read
        the source repeatedly, and move more bytes.
    ledger
        A store for the list of finished parts. By default the target with `.jobs` at the end of its name,
        until the copy is finished. A whole bucket, or a store object without a name, has no place beside it:
        without `ledger`, a copy to it does not continue after a kill.
    progress
        Called with the number of finished parts and of all; or True for a bar in a terminal or a notebook.
    chunks, shards, dtype, order, filters, serializer, compressors, fill_value
        As in `create_array`; by default those of the source. `chunks` and `shards` can be dicts by names of
        dimensions. In a group, they are for the arrays with these dimensions, or with as many axes, and
        `dtype` for the arrays of the same kind.
    zarr_format, chunk_key_encoding
        As in `create_array`, too. Version 2 has no shards: their chunks become chunks.
        Codecs stay in the other version, and with other chunks; pass other ones if it lacks them.

    Returns
    -------
    Array or Group
        The copy, opened.

    Raises
    ------
    NodeExistsError
        An array exists at the target (a `FileExistsError`).
    ConflictError
        An array at the target belongs to an unfinished copy with other options: `zarrow.jobs.ConflictError`.
    NotFoundError
        The source does not exist (a `FileNotFoundError`).
    DataTypeError
        A copy does not convert to `dtype`, as floats to integers (a `TypeError`).
    ValueError
        The copy would replace its source, or options do not fit the source or one another. `if_exists="skip"`
        was passed without `ledger` for a store without a place beside it.
    StaleHandleError
        The source or the copy changed while it was copied.
    MetadataError, CodecError, UnsupportedError, ReadOnlyError, StoreError, OutOfMemoryError
        As `create_array`, `Array.read` and `Array.write`.

    Examples
    --------
    >>> import numpy as np, zarrow
    >>> days = zarrow.create_array("rain.zarr", data=np.ones((365, 100), "f8"), dimension_names=("day", "x"))
    >>> _ = zarrow.copy("rain.zarr", "january.zarr", select={"day": slice(0, 31)}, chunks={"x": 10})
    >>> january = zarrow.open_array("january.zarr")
    >>> january.shape, january.chunks[1]
    ((31, 100), 10)
    """
    from zarrow import jobs
    from zarrow.jobs.errors import renamed
    from zarrow.jobs.ledger import for_one_call, name_of
    from zarrow.jobs.work import located

    target = located(target)
    check_names(options, CopyOptions.__annotations__, "of a copy")
    if if_exists not in ("error", "overwrite", "skip"):
        raise ValueError(f'if_exists is {if_exists!r}, expected "error", "overwrite" or "skip"')
    own_ledger = for_one_call(target, ledger)
    if if_exists == "skip" and own_ledger is not ledger and not isinstance(target, MemoryStore):
        raise ValueError(
            f'if_exists="skip" keeps whole arrays, but {name_of(target)} has no place for a ledger, which '
            "says whether a killed copy left others: pass ledger="
        )
    node = source if isinstance(source, Array | Group) else open(source, mode="r")
    plan = jobs.copy(
        node,
        target,
        path,
        select=select,
        raw=raw,
        memory_nbytes=jobs.common_options.MEMORY_NBYTES if memory_nbytes is None else memory_nbytes,
        attributes=attributes,
        consolidate=consolidate,
        ledger=own_ledger,
        passes=passes,
        **options,
    )
    with renamed(overwrite='if_exists="overwrite"'):
        plan.complete(
            overwrite=if_exists == "overwrite",
            skip_existing=if_exists == "skip",
            threads=threads,
            progress=progress,
        )
    try:
        return open(target, path, mode="r+")
    except ReadOnlyError:
        # A session of icechunk, which was committed.
        return open(target, path, mode="r")
