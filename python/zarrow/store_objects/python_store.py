"""A store object with declared properties: `zarrow.PythonStore`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["PythonStore"]


class PythonStore:
    """A store object of another library, or a mapping, with properties that the object cannot report.

    Every function that takes a store also takes such an object directly. Use this class to declare what the
    object cannot report, such as that you are the only writer. It pickles if the store does.

    Parameters
    ----------
    store
        A store of zarr-python, obstore, fsspec, icechunk or VirtualiZarr, or a mapping of keys to bytes.
    allow
        Where references of a manifest may lead: beginnings of URLs, such as `"s3://bucket/folder/"` or
        `"file:///data/"`. References to anywhere else are refused. By default all are. Only for
        VirtualiZarr's `ManifestStore`: fsspec follows the references of its mappers (kerchunk) itself.
    sole_writer
        Declare that this process is the only writer as long as it writes. Parts of chunks, and metadata that
        exist, can then be changed in a store without conditional puts: this process synchronizes its own
        writers, but not other processes.

    Raises
    ------
    TypeError
        `store` is not a store, `sole_writer` is no bool, or `allow` was given with a store that is not a
        `ManifestStore`.

    Examples
    --------
    >>> import zarrow
    >>> values = {}
    >>> store = zarrow.PythonStore(values)
    >>> zarrow.save(store, x=[1, 2, 3])
    >>> zarrow.open(values)["x"][:].tolist(), sorted(values)
    ([1, 2, 3], ['x/c/0', 'x/zarr.json', 'zarr.json'])
    """

    def __init__(self, store: Any, /, *, allow: Iterable[str] = (), sole_writer: bool = False) -> None:
        if isinstance(allow, str):
            allow = (allow,)
        if sole_writer not in (True, False):
            raise TypeError(f"sole_writer is {sole_writer!r}: expected True or False")
        self.store = store
        self.allow = tuple(allow)
        self.sole_writer = bool(sole_writer)
        from zarrow.store_objects.recognition import recognised

        found = recognised(store, self, self.allow, self.sole_writer)
        if found is None:
            raise TypeError(f"{type(store).__qualname__} is neither a store nor a mapping of keys to bytes")
        if self.allow and not hasattr(found[0], "allowed"):
            raise TypeError(
                f"allow= is for a ManifestStore of VirtualiZarr, and {type(store).__qualname__} would "
                "ignore it: leave it out, and check the references of a mapper before you open it"
            )

    def __repr__(self) -> str:
        return f"<zarrow.PythonStore of {type(self.store).__qualname__}>"
