"""Objects that references of fsspec lead to, as objects in stores of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import, _reference_target, _ReferenceTarget, _StoredValues
from zarrow.store_objects.engine_stores import from_fsspec

if TYPE_CHECKING:
    from zarrow._zarrow import _ChunkReferences


class ReferenceObjects:
    """Finds the stores of URLs, as the file system of references does.

    fsspec reads the URLs of all other file systems and options.

    Parameters
    ----------
    fs
        fsspec's `ReferenceFileSystem`.
    """

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._targets: dict[tuple[str | None, str], _ReferenceTarget | None] = {}

    def number_of(self, url: Any, columns: _ChunkReferences) -> int | None:
        """Return the number of a URL's object in `columns`; None if the engine cannot read it."""
        try:
            target, name = self._place_of(url)
            return None if target is None else columns.add_objects(target, [name])
        except Exception:
            # Whatever is wrong, fsspec may read it, or raises its own error.
            return None

    def _place_of(self, url: str) -> tuple[_ReferenceTarget | None, str]:
        protocol, path = _import("fsspec.core").split_protocol(url)
        fs = self._fs.fss[protocol]
        inner = getattr(fs, "sync_fs", fs)
        stripped = str(inner._strip_protocol(url))
        if protocol in ("http", "https"):
            # Characters with a meaning in URLs are left to fsspec.
            host, _, name = path.partition("/")
            root = f"{protocol}://{host}/"
            if any(character in name for character in "?#%"):
                return None, name
        elif stripped.startswith("/"):
            root, name = "/", stripped.lstrip("/")
        else:
            root, _, name = stripped.partition("/")
        _StoredValues.check_key(name)
        place = (protocol, root)
        if place not in self._targets:
            store = from_fsspec(fs, root)
            is_safe = store is not None and (root != "/" or isinstance(store, Path))
            self._targets[place] = _reference_target(store) if is_safe else None
        return self._targets[place], name
