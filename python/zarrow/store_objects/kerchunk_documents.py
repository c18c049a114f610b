"""`reference://FILE` as a store: kerchunk's references in JSON, as fsspec follows them.

1. The scheme is the user's consent: references lead to any file and host that this process can read.
2. References are only read: fsspec would keep changes in its memory.
3. `reference://FILE.json/NODE` is a node of them, as `FOLDER/NODE` is one of a folder.
4. The document is checked here, and templates are expanded here: fsspec would evaluate them, and leave out
   references that a rule generates, which would then be read as missing chunks.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import
from zarrow.errors import MetadataError, NotFoundError, StoreError, StorePermissionError, UnsupportedError
from zarrow.store_objects.manifest import shown

if TYPE_CHECKING:
    from zarrow.store_objects.kerchunk_references import KerchunkAdapter

SCHEME = "reference://"

_TEMPLATE = re.compile(r"\{\{ *(\w+) *\}\}")

# Longest URL before and after its templates are expanded, and longest template.
_MAX_URL = 1 << 13


def adapter(location: str) -> KerchunkAdapter:
    """Return the store of a location with this scheme.

    Raises
    ------
    NotFoundError, StoreError, StorePermissionError
        The file does not exist, or cannot be read.
    MetadataError
        It has no references.
    UnsupportedError
        It has rules that generate references.
    """
    file, node = _split(location.removeprefix(SCHEME))
    is_path = _is_path(file)
    shown_file = file if is_path else "::".join(map(shown, file.split("::")))
    shown_location = "/".join(filter(None, (SCHEME + shown_file, node)))
    fsspec = _import("fsspec")
    try:
        # fsspec takes `::` in a path for a chain of URLs.
        with Path(file).open("rb") if is_path else fsspec.open(file, "rb") as opened:
            text = opened.read()
    except ImportError:
        raise
    except PermissionError as error:
        message = f"no permission to read the references in {shown_file!r}"
        raise StorePermissionError(message, store=shown_location) from error
    except Exception as error:
        # fsspec raises whatever its file systems meet, and FileNotFoundError for each failure of HTTP.
        reason: BaseException = error
        while isinstance(reason, FileNotFoundError) and reason.__cause__ is not None:
            reason = reason.__cause__
        status = getattr(reason, "status", None)
        if status == 404 or isinstance(reason, FileNotFoundError):
            message = f"no file of references: {shown_file!r}"
            raise NotFoundError(message, store=shown_location) from error
        cause = str(reason) if status is None else f"the server answers {status}"
        message = f"the references in {shown_file!r} cannot be read: {cause}"
        raise StoreError(message, store=shown_location) from error
    from zarrow.store_objects.kerchunk_references import KerchunkAdapter

    try:
        references = {"version": 1, "refs": _references(json.loads(text))}
        mapper = fsspec.filesystem("reference", fo=references).get_mapper(node)
    except ImportError:
        raise
    except Exception as error:
        # fsspec raises whatever its file systems meet.
        message = f"{shown_file!r} is no file of kerchunk's references: {type(error).__name__}: {error}"
        if isinstance(error, UnsupportedError):
            message = f"{shown_file!r}: {error}"
            raise UnsupportedError(message, store=shown_location) from None
        raise MetadataError(message, store=shown_location) from error
    # One string for each location, so that nodes opened twice are equal.
    source = sys.intern("/".join(filter(None, (SCHEME + file, node))))
    found = KerchunkAdapter(mapper, source, False)
    found.name = shown_location
    return found


def _split(location: str) -> tuple[str, str]:
    """Return the file of a location, and the node in it (step 3)."""
    ends = [*(found.end() for found in re.finditer(r"\.json(?=/)", location)), len(location)]
    # A folder may be called `x.json`.
    file = next((location[:end] for end in ends if _is_file(location[:end])), location[: ends[0]])
    node = location[len(file) :].strip("/")
    return (str(Path(file).absolute()) if _is_path(file) else file), node


def _is_path(file: str) -> bool:
    """Return whether this is a path; otherwise a URL, or a chain of URLs."""
    return "://" not in file and ("::" not in file or _is_file(file))


def _is_file(path: str) -> bool:
    # `Path.is_file` raises an error if the path is too long.
    return os.path.isfile(path)  # noqa: PTH113


def _references(document: Any) -> dict[str, Any]:
    """Return the references of a document by their keys, without templates (step 4)."""
    if not isinstance(document, dict):
        raise TypeError(f"expected an object, got {type(document).__name__}")
    version = document.get("version")
    if version not in (None, 1):
        raise ValueError(f"version is {version!r}, expected 1")
    if version == 1 and document.get("gen"):
        text = "rules that generate references (gen) are not supported: store the references themselves"
        raise UnsupportedError(text)
    references = document if version is None else document.get("refs")
    templates = {} if version is None else document.get("templates", {})
    if not isinstance(references, dict) or not isinstance(templates, dict):
        raise TypeError("expected refs and templates to be objects")
    templates = {name: str(text) for name, text in templates.items()}
    if long := [name for name, text in templates.items() if len(text) > _MAX_URL]:
        raise ValueError(f"template {long[0][:80]!r} is longer than {_MAX_URL} characters")
    known = None if version is None else templates
    return {key: _reference(key, reference, known) for key, reference in references.items()}


def _reference(key: str, reference: Any, templates: dict[str, str] | None) -> Any:
    """Return a value, or a file or its part: a URL, or also an offset and a size."""
    if isinstance(reference, str | dict):
        return reference
    is_list = isinstance(reference, list) and len(reference) in (1, 3) and isinstance(reference[0], str)
    if not is_list or not all(type(number) is int and 0 <= number < 1 << 63 for number in reference[1:]):
        raise ValueError(f"{key!r} is {str(reference)[:80]}, expected a text, [URL] or [URL, offset, size]")
    url = reference[0]
    if templates is not None and len(url) <= _MAX_URL:
        text_of = templates.get
        url = _TEMPLATE.sub(lambda name: text_of(name[1], name[0]), url)
    if len(url) > _MAX_URL or (templates is not None and "{{" in url):
        raise ValueError(f"{key!r} has an invalid URL: {url[:80]!r}")
    return [url, *reference[1:]]
