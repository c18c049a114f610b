"""`reference://FILE` in place of a store: references of kerchunk in JSON, as fsspec follows them.

1. The scheme is the user's consent: references lead to any file and host that this process can read.
2. References are only read: fsspec would keep changes in its memory.
3. `reference://FILE.json/NODE` is a node of them, for subcommands that take one argument for a node.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from zarrow._zarrow import _import
from zarrow.errors import MetadataError, UnsupportedError

_SCHEME = "reference://"

# Arguments that subcommands only read.
_READ = {
    **dict.fromkeys(("info", "ls", "tree", "head", "verify", "digest", "bench", "export"), ("store",)),
    "diff": ("left", "right"),
    "copy": ("source",),
    "repair": ("copy",),
}


def open_in(parsed: argparse.Namespace) -> None:
    """Replace each such argument by the mapper of its references.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    MetadataError
        It has no references.
    UnsupportedError
        The subcommand would change them (step 2).
    """
    for name, given in vars(parsed).items():
        if isinstance(given, str) and given.startswith(_SCHEME):
            if name not in _READ.get(parsed.subcommand, ()):
                text = f"references are only read: zarrow copy {given} FOLDER stores their elements"
                raise UnsupportedError(text, kind="unsupported")
            setattr(parsed, name, _mapper(given.removeprefix(_SCHEME)))


def _mapper(file: str) -> Any:
    node = ""
    if not Path(file).is_file() and ".json/" in file:
        file, ending, node = file.partition(".json/")
        file += ending.rstrip("/")
    try:
        return _import("fsspec").get_mapper(_SCHEME + node.strip("/"), fo=file)
    except OSError:
        raise
    except Exception as error:
        # fsspec raises whatever its parser meets.
        text = f"{file!r} is no file of kerchunk's references: {type(error).__name__}: {error}"
        raise MetadataError(text, kind="metadata") from error
