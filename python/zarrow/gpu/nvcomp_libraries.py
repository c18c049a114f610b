"""Where nvCOMP is in this environment. The engine tries the system's library after these."""

from __future__ import annotations

import importlib.util
import pathlib


def found_in_wheels() -> list[str]:
    """Return the libraries in wheels, the newest first, without importing anything."""
    try:
        found = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    names = [
        "libnvcomp/lib64/libnvcomp.so.6",
        "libnvcomp/lib64/libnvcomp.so.5",
        "nvcomp/libnvcomp.so.6",
        "nvcomp/libnvcomp.so.5",
    ]
    paths = [pathlib.Path(folder, name) for name in names for folder in folders]
    return [str(path) for path in paths if path.is_file()]
