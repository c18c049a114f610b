"""Where a session of icechunk keeps its chunks: a folder, or a bucket of S3.

1. A session does not name its storage. Its pickled form contains it, as icechunk 2 writes it by MessagePack.
2. Only a known form with known options is accepted. For all others, icechunk reads the chunks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zarrow._zarrow import CloudStore, _import

# Where a repository has its chunks.
_FOLDER = "chunks"


def place_of_chunks(session: Any) -> tuple[Path | CloudStore, str] | None:
    """Return the store of a session's chunks and their folder in it; None if it is unknown."""
    try:
        if not _import("icechunk").__version__.startswith("2."):
            return None
        state = _import("msgpack").unpackb(session._session.as_bytes(), strict_map_key=False)
        storage = next(part for part in state if isinstance(part, dict) and "type" in part)
        store = _folder(storage) if storage["type"] == "ObjectStorage" else _bucket(storage)
    except Exception:
        # Step 2. Other versions may raise anything.
        return None
    return None if store is None else (store, _FOLDER)


def _folder(storage: dict[str, Any]) -> Path | None:
    backend = storage["backend"]
    is_local = backend["object_store_provider_type"] == "local_file_system_object_store_provider"
    return Path(backend["path"]) if is_local else None


def _bucket(storage: dict[str, Any]) -> CloudStore | None:
    if storage["type"] != "S3Storage" or storage["key_layout"] != "Standard" or storage["extra_read_headers"]:
        return None
    region, endpoint, is_anonymous, _, by_path, _, requester_pays, others = storage["config"]
    kind, *credentials = storage["credentials"]
    options: dict[str, Any] = {
        "aws_region": region,
        "aws_endpoint_url": endpoint,
        "aws_virtual_hosted_style_request": False if by_path else None,
        "aws_request_payer": True if requester_pays else None,
    }
    if is_anonymous or kind == "anonymous":
        options["skip_signature"] = True
    elif kind == "static":
        key, secret, token, expires = credentials
        if expires is not None:
            return None
        options |= {
            "aws_access_key_id": key,
            "aws_secret_access_key": secret,
            "aws_session_token": token,
        }
    elif kind != "from_env":
        return None
    if others is not None:
        return None
    known = {name: value for name, value in options.items() if value is not None}
    prefix = (storage["prefix"] or "").strip("/")
    return CloudStore(f"s3://{storage['bucket']}/{prefix}", known)
