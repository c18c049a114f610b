"""`reference://FILE` as a store: kerchunk's references in JSON, as fsspec follows them.

1. The scheme is the user's consent: references lead to any file and host that this process can read.
2. References are only read: fsspec would keep changes in its memory.
3. `reference://FILE.json/NODE` is a node of them, as `FOLDER/NODE` is one of a folder.
4. The document is checked here, and templates are expanded here: fsspec would evaluate them, and leave out
   references that a rule generates, which would then be read as missing chunks.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import
from zarrow.errors import MetadataError, NotFoundError, StoreError, StorePermissionError, UnsupportedError

if TYPE_CHECKING:
    from zarrow.store_objects.kerchunk_references import KerchunkAdapter

SCHEME = "reference://"

_TEMPLATE = re.compile(r"\{\{ *(\w+) *\}\}")

# Longest URL after its templates are expanded.
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
    file, node = location.removeprefix(SCHEME), ""
    if ".json/" in file and not Path(file).is_file():
        file, ending, node = file.partition(".json/")
        file += ending.rstrip("/")
    node = node.strip("/")
    if "://" not in file and "::" not in file:
        file = str(Path(file).absolute())
    fsspec = _import("fsspec")
    try:
        with fsspec.open(file, "rb") as opened:
            text = opened.read()
    except FileNotFoundError as error:
        message = f"no file of references: {file!r}"
        raise NotFoundError(message, kind="not_found", store=location) from error
    except PermissionError as error:
        message = f"no permission to read the references in {file!r}"
        raise StorePermissionError(message, kind="permission", store=location) from error
    except (OSError, ValueError) as error:
        message = f"the references in {file!r} cannot be read: {error}"
        raise StoreError(message, kind="io", store=location) from error
    from zarrow.store_objects.kerchunk_references import KerchunkAdapter

    try:
        mapper = fsspec.get_mapper(SCHEME + node, fo={"version": 1, "refs": _references(json.loads(text))})
    except ImportError:
        raise
    except Exception as error:
        # fsspec raises whatever its file systems meet.
        message = f"{file!r} is no file of kerchunk's references: {type(error).__name__}: {error}"
        if isinstance(error, UnsupportedError):
            raise UnsupportedError(f"{file!r}: {error}", kind="unsupported", store=location) from None
        raise MetadataError(message, kind="metadata", store=location) from error
    # One string for each location, so that nodes opened twice are equal.
    source = sys.intern("/".join(filter(None, (SCHEME + file, node))))
    found = KerchunkAdapter(mapper, source, False)
    found.name = source
    return found


def _references(document: Any) -> dict[str, Any]:
    """Return the references of a document by their keys, without templates (step 4)."""
    if not isinstance(document, dict):
        raise TypeError(f"expected an object, got {type(document).__name__}")
    version = document.get("version")
    if version not in (None, 1):
        raise ValueError(f"version is {version!r}, expected 1")
    if version == 1 and document.get("gen"):
        text = "rules that generate references (gen) are not supported: store the references themselves"
        raise UnsupportedError(text, kind="unsupported")
    references = document if version is None else document.get("refs")
    templates = {} if version is None else document.get("templates", {})
    if not isinstance(references, dict) or not isinstance(templates, dict):
        raise TypeError("expected refs and templates to be objects")
    return {key: _reference(key, reference, templates) for key, reference in references.items()}


def _reference(key: str, reference: Any, templates: dict[str, Any]) -> Any:
    """Return a value, or a file or its part: a URL, or also an offset and a size."""
    if isinstance(reference, str | dict):
        return reference
    is_list = isinstance(reference, list) and len(reference) in (1, 3) and isinstance(reference[0], str)
    if not is_list or not all(type(number) is int and 0 <= number < 1 << 63 for number in reference[1:]):
        raise ValueError(f"{key!r} is {str(reference)[:80]}, expected a text, [URL] or [URL, offset, size]")
    url = _TEMPLATE.sub(lambda name: str(templates[name[1]]), reference[0])
    if len(url) > _MAX_URL or (templates and "{{" in url):
        raise ValueError(f"{key!r} has an invalid URL: {url[:80]!r}")
    return [url, *reference[1:]]
