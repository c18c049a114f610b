"""The class CloudStore."""

from collections.abc import Mapping
from typing import Any, Self, final

@final
class CloudStore:
    """A store in the cloud: a bucket of S3 or Google Cloud Storage, a container of Azure, a web server.

    Creating the object sends no request. It pickles with its options, and forked children can use it.

    Parameters
    ----------
    url
        `s3://bucket/path`, `gs://bucket/path`, `az://container/path`,
        `abfs://container@account.dfs.core.windows.net/path`, `https://host/path`, or other libraries' names
        of these schemes.
    storage_options
        Options with fsspec's names: for S3 `anon`, `key`, `secret`, `token`, `profile`, `endpoint_url`,
        `region`, `requester_pays`, `client_kwargs`, `config_kwargs`; for Google `token` ("anon", or the path
        of a key file), `project`, `endpoint_url`; for Azure `account_name`, `account_key`, `sas_token`,
        `connection_string`, `anon`; for web servers `headers`; for all `connect_timeout` and `read_timeout`
        in seconds, `low_speed_limit` in bytes per second over `low_speed_time` seconds, `max_retries`,
        `max_retry_after` (the seconds of pauses that a server may request), `max_listed` (the maximum number
        of names in one list), and `verify`: the path of a file of trusted certificate authorities, or False
        to accept all certificates. The names of object_store also work. Missing options come from the
        environment (`AWS_ACCESS_KEY_ID` and so on) and from AWS profiles.

    Raises
    ------
    UnsupportedError
        The URL has an unsupported scheme, or an option is unknown (a `NotImplementedError`).

    Examples
    --------
    >>> import zarrow
    >>> store = zarrow.CloudStore("s3://bucket/data.zarr", {"anon": True})
    >>> store
    <zarrow.CloudStore s3://bucket/data.zarr>
    """

    def __new__(cls, url: str, /, storage_options: Mapping[str, Any] | None = None) -> Self: ...
    @property
    def name(self) -> str:
        """The URL as in error messages, without user, password and query."""
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
