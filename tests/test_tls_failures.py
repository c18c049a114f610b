"""Connections that TLS refuses: each error says why, and what helps."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import zarrow
from stores.certificates import Authority, Pair

OWN_AUTHORITY = 'storage_options={"verify": "authority.pem"}'


@contextmanager
def tls_server(pair: Pair, change: Callable[[ssl.SSLContext], object]) -> Iterator[tuple[int, list[int]]]:
    """Serve handshakes, and then an answer 404. The list has an entry for each connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    change(context)
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[int] = []

    def serve() -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                connection, _ = listener.accept()
                connections.append(1)
                with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(4096)
                    secured.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], connections
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def old_versions(context: ssl.SSLContext) -> None:
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1


def unchanged(_: ssl.SSLContext) -> None:
    pass


# For each server: its difference, the host of its certificate, when that expired, if its authority is passed;
# and what the error names and does not name.
CASES = {
    "expired": (unchanged, "127.0.0.1", 3, True, "renewed on the server", OWN_AUTHORITY),
    "another host": (
        unchanged,
        "elsewhere.org",
        0,
        True,
        "the certificate is for other names",
        OWN_AUTHORITY,
    ),
    "an unknown authority": (unchanged, "127.0.0.1", 0, False, OWN_AUTHORITY, "renewed"),
    "old versions": (old_versions, "127.0.0.1", 0, True, "TLS 1.2 or 1.3 must be enabled", OWN_AUTHORITY),
}


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_refused_connection_says_what_helps(tmp_path: Path, case: str) -> None:
    change, host, days_ago, is_trusted, named, unnamed = CASES[case]
    authority = Authority(tmp_path, "authority")
    options = {"verify": str(authority.certificate)} if is_trusted else {}
    with tls_server(authority.sign(host, days_ago), change) as (port, connections):
        with pytest.raises(zarrow.StoreError) as refused:
            zarrow.open(f"https://127.0.0.1:{port}/data", storage_options=options)
        assert named in str(refused.value)
        assert unnamed not in str(refused.value)
        assert "Context" not in str(refused.value)
        # Some five requests are sent, each once. With retries each would be sent six times.
        assert len(connections) < 10


def test_a_required_certificate_of_the_client_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")

    def require(context: ssl.SSLContext) -> None:
        context.load_verify_locations(authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED

    with (
        tls_server(authority.sign("127.0.0.1"), require) as (port, _),
        pytest.raises(zarrow.StoreError, match="certificates of clients are not supported"),
    ):
        zarrow.open(f"https://127.0.0.1:{port}/data", storage_options={"verify": str(authority.certificate)})


def test_a_closed_plain_connection_does_not_advise_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def close_all() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        thread = threading.Thread(target=close_all)
        thread.start()
        with pytest.raises(zarrow.StoreError) as refused:
            zarrow.open(
                f"http://127.0.0.1:{listener.getsockname()[1]}/data", storage_options={"max_retries": 1}
            )
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert "TLS" not in str(refused.value)
