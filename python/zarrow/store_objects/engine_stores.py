"""Store objects that the engine reads itself, with the same configuration.

1. Only known classes are resolved: a subclass may behave differently, and is called in Python.
2. If one option cannot be mapped, the store is called in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from zarrow._zarrow import CloudStore
from zarrow.errors import ZarrowError

Native: TypeAlias = Path | CloudStore

# obstore's options and those of `CloudStore`; None if `CloudStore` needs no such option.
_S3 = {
    "bucket": None,
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "token": "aws_session_token",
    "session_token": "aws_session_token",
    "region": "aws_region",
    "default_region": "aws_default_region",
    "endpoint": "aws_endpoint_url",
    "skip_signature": "skip_signature",
    "virtual_hosted_style_request": "aws_virtual_hosted_style_request",
    "request_payer": "aws_request_payer",
}
_GCS = {
    "bucket": None,
    "service_account": "google_service_account",
    "service_account_key": "google_service_account_key",
    "application_credentials": "google_application_credentials",
    "skip_signature": "skip_signature",
}
_AZURE = {
    "container_name": None,
    "account_name": "azure_storage_account_name",
    "account_key": "azure_storage_account_key",
    "client_id": "azure_storage_client_id",
    "client_secret": "azure_storage_client_secret",
    "tenant_id": "azure_storage_tenant_id",
    "authority_id": "azure_storage_tenant_id",
    "sas_key": "azure_storage_sas_key",
    "endpoint": "azure_storage_endpoint",
    "skip_signature": "skip_signature",
}
_OBSTORE = {
    "S3Store": ("s3", "bucket", _S3),
    "GCSStore": ("gs", "bucket", _GCS),
    "AzureStore": ("az", "container_name", _AZURE),
}

# Classes of fsspec's file systems, and the scheme of each.
_FSSPEC = {
    ("s3fs.core", "S3FileSystem"): "s3://",
    ("gcsfs.core", "GCSFileSystem"): "gs://",
    ("adlfs.spec", "AzureBlobFileSystem"): "az://",
    ("fsspec.implementations.http", "HTTPFileSystem"): "",
}

_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


def resolve(store: Any) -> tuple[Native, bool] | None:
    """Return the engine's form of a store, and whether it is read-only; None for others."""
    kind = type(store)
    home, name = kind.__module__, kind.__name__
    found: Native | None = None
    read_only = False
    if home.startswith("zarr.storage"):
        if name == "LocalStore":
            found = Path(store.root)
        elif name == "ObjectStore":
            found = _of_obstore(store.store)
        elif name == "FsspecStore" and tuple(store.allowed_exceptions) == _MISSING:
            found = from_fsspec(store.fs, store.path)
        read_only = found is not None and bool(store.read_only)
    elif home == "obstore.store":
        found = _of_obstore(store)
    elif home == "fsspec.mapping" and name == "FSMap" and tuple(store.missing_exceptions) == _MISSING:
        found = from_fsspec(store.fs, store.root)
    return None if found is None else (found, read_only)


def _cloud(url: str, options: dict[str, Any]) -> CloudStore | None:
    """Make a store in the cloud, if it takes all of these options."""
    try:
        return CloudStore(url, options)
    except (ZarrowError, TypeError, ValueError):
        return None


def _of_obstore(store: Any) -> Native | None:
    if type(store).__module__ != "obstore.store":
        return None
    name = type(store).__name__
    if name == "LocalStore":
        return Path(store.prefix or "/")
    options = _client_options(store)
    if options is None:
        return None
    if name == "HTTPStore":
        return _cloud(store.url, options)
    if name not in _OBSTORE or store.credential_provider is not None:
        return None
    scheme, bucket, words = _OBSTORE[name]
    for word, value in store.config.items():
        if word not in words:
            return None
        known = words[word]
        if known is not None:
            options[known] = value
    return _cloud(f"{scheme}://{store.config[bucket]}/{store.prefix or ''}", options)


def _client_options(store: Any) -> dict[str, Any] | None:
    """Return the options of a client of obstore; None if one is unknown."""
    if not hasattr(store, "client_options"):
        return None
    options: dict[str, Any] = {}
    for word, value in (store.client_options or {}).items():
        # A total time-out there, silence here.
        if word in ("allow_http", "timeout"):
            continue
        if word == "allow_invalid_certificates":
            options["verify"] = value != "true"
        elif word == "default_headers":
            options["headers"] = {name: _text(text) for name, text in value.items()}
        else:
            return None
    retries = (store.retry_config or {}).get("max_retries")
    if retries is not None:
        options["max_retries"] = retries
    return options


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def from_fsspec(fs: Any, path: str) -> Native | None:
    """Return the engine's form of a folder in a file system of fsspec; None for others."""
    # A synchronous file system, wrapped as an asynchronous one.
    if type(fs).__module__ == "fsspec.implementations.asyn_wrapper":
        fs = fs.sync_fs
    kind = (type(fs).__module__, type(fs).__name__)
    if kind == ("fsspec.implementations.local", "LocalFileSystem"):
        return Path(path)
    scheme = _FSSPEC.get(kind)
    if scheme is None or fs.storage_args:
        return None
    without = ("asynchronous", "loop", "skip_instance_cache")
    options = {word: value for word, value in fs.storage_options.items() if word not in without}
    return _cloud(scheme + path, options)
