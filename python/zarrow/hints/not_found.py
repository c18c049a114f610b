"""Hints for `NotFoundError`: what a path without an array or a group contains, and what to type.

The file system is examined only after nothing was found, and at most a thousand names of a folder are read.
"""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path

_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup")

_MOST_NAMES = 1000

# First bytes of a file, its description, and what to do with it.
_FILES = (
    (b"PK\x05\x06", "an empty zip file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 or netCDF-4 file, not Zarr: open it with h5py or xarray"),
    (b"CDF", "a netCDF file, not Zarr: open it with xarray"),
    (b"\x93NUMPY", "a NumPy file, not Zarr: open it with numpy.load"),
    (b"PAR1", "a Parquet file, not Zarr: open it with pyarrow or polars"),
    (b"II*\x00", "a TIFF file, not Zarr: open it with tifffile"),
    (b"MM\x00*", "a TIFF file, not Zarr: open it with tifffile"),
    (b"\x1f\x8b", "a gzip file: unpack it"),
)

# Marker files of other formats' folders.
_FOLDERS = (
    ({"attributes.json"}, "an N5 container, which zarrow does not read"),
    (
        {"refs", "snapshots"},
        'an Icechunk repository: give zarrow a session of it, as repository.readonly_session("main")',
    ),
    ({"__schema"}, "a TileDB array, which zarrow does not read"),
    ({"_delta_log"}, "a Delta table, which zarrow does not read"),
)


def explain(store: str) -> str | None:
    """Describe a path of the file system that is not a store; return None if it is unknown."""
    if "://" in store:
        return None
    place = Path(store)
    try:
        if place.is_dir():
            return _folder(place)
        if place.is_file():
            return _file(place)
        if os.path.lexists(place):
            return _special(place)
        # Names of stores in memory and of Python store objects.
        return None if store == "memory" or store.startswith("<") else _nothing(store, place)
    except OSError:
        return None


def _special(place: Path) -> str | None:
    kind = place.lstat().st_mode
    if stat.S_ISLNK(kind):
        return f"this is a link to {str(place.readlink())!r}, which does not exist"
    if stat.S_ISDIR(kind) or stat.S_ISREG(kind):
        return None  # Another process has created it since.
    return "this is a device, a pipe or a socket; a store is a folder"


def _nothing(store: str, place: Path) -> str:
    if store.startswith("~"):
        return f'"~" is not expanded: pass os.path.expanduser({store!r})'
    above = place.absolute().parent
    for folder in (above, *above.parents):
        if folder.is_file():
            inner = str(place.absolute().relative_to(folder))
            archive = str(folder)
            return f"{archive!r} is a file: if it is a zip archive, type zarrow.open({archive!r}, {inner!r})"
    if not above.is_dir():
        while not above.parent.is_dir():
            above = above.parent
        return f"there is no folder {str(above)!r}{_meant(above)}"
    return f"there is no such folder{_meant(place.absolute())}"


def _meant(place: Path) -> str:
    """Suggest similar names in the same folder."""
    import difflib

    close = difflib.get_close_matches(place.name, _names(place.parent), 3, 0.7)
    return (
        f"; did you mean {' or '.join(repr(str(place.with_name(name))) for name in close)}?" if close else ""
    )


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        found = [entry for entry in islice(entries, _MOST_NAMES) if not entry.name.startswith(".zarrow-")]
        # Devices and pipes are no stores.
        return sorted(entry.name for entry in found if entry.is_dir() or entry.is_file())


def _file(place: Path) -> str:
    if place.name in _DOCUMENTS:
        return f"this is the metadata document of a node: open its folder, {str(place.parent)!r}"
    with place.open("rb") as file:
        start = file.read(16)
    if start.startswith(b"PK\x03\x04"):
        return _nodes_in_archive(place)
    if start.lstrip().startswith(b"{") and _has_references(place):
        return (
            "this is a file of kerchunk's references: if you trust it, type "
            f"zarrow.open({f'reference://{place}'!r})"
        )
    for beginning, what in _FILES:
        if start.startswith(beginning):
            return f"this is {what.format(place)}"
    return "this is a file; a store is a folder"


def _has_references(place: Path) -> bool:
    """Return whether a JSON file has keys of Zarr's documents near its beginning."""
    with place.open("rb") as file:
        start = file.read(1 << 16)
    return any(f'{name}":'.encode() in start.replace(b'": ', b'":') for name in _DOCUMENTS)


def _nodes_in_archive(place: Path) -> str:
    """Say which folders of a zip file have nodes."""
    import zipfile

    with zipfile.ZipFile(place) as archive:
        names = {os.path.split(name) for name in islice(archive.namelist(), _MOST_NAMES)}
    above = "the zip file has no zarr.json, .zarray or .zgroup at its root"
    nodes = sorted(
        {folder for folder, name in names if name in _DOCUMENTS},
        key=lambda folder: (folder.count("/"), folder),
    )
    hints = ", ".join(f"zarrow.open({str(place)!r}, {folder!r})" for folder in nodes[:3])
    return f"{above}, but there is one in a folder: {hints}" if nodes else above


def _folder(place: Path) -> str:
    names = _names(place)
    if not names:
        return 'the folder is empty: mode="a" creates a group in it, zarrow.create_array an array'
    if _is_node(place):
        return "the folder was replaced after this node was opened: open it again"
    for marks, what in _FOLDERS:
        if marks <= set(names):
            return f"this is {what}"
    if nodes := [name for name in names[:100] if _is_node(place / name)][:3]:
        return (
            "the folder has no zarr.json, .zarray or .zgroup, but a folder below it "
            f"has: {_list(place, nodes)}"
        )
    for above in place.absolute().parents:
        if _is_node(above):
            return f"the folder belongs to the node at {str(above)!r}: open that"
    return "the folder has no zarr.json, .zarray or .zgroup, so it is not a Zarr array or group"


def _is_node(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _DOCUMENTS)


def _list(place: Path, names: list[str]) -> str:
    return ", ".join(repr(str(place / name)) for name in names)
