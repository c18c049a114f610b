"""Servers with endless lists, and unreachable servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import zarrow
from zarrow.errors import StoreError, UnsupportedError


class Endless(BaseHTTPRequestHandler):
    """A group on S3 with an endless list: each page has new names."""

    protocol_version = "HTTP/1.1"
    pages = 0
    signals = False

    def do_GET(self) -> None:
        names: list[str] = []
        if "list-type" in self.path:
            Endless.pages += 1
            prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
            names = [f"{prefix}{Endless.pages}/c/{number}" for number in range(20)]
            # One signal, after the list has begun.
            if Endless.signals:
                Endless.signals = False
                threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
        contents = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00Z</LastModified><Size>1</Size></Contents>"
            for name in names
        )
        body = (
            f"<ListBucketResult>{contents}<NextContinuationToken>{Endless.pages}</NextContinuationToken>"
            "</ListBucketResult>"
        ).encode()
        path = self.path.partition("?")[0]
        documents = {"/bucket/g/zarr.json": GROUP, "/bucket/g/a/zarr.json": ARRAY}
        if "list-type" not in self.path:
            body = json.dumps(documents.get(path)).encode()
        self.send_response(200 if "list-type" in self.path or path in documents else 404)
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


GROUP = {"zarr_format": 3, "node_type": "group"}
ARRAY = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes"}],
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


LISTING = {
    "keys": lambda store: zarrow.open(store).keys(),
    "tree": lambda store: str(zarrow.open(store).tree()),
    "load": zarrow.load,
    "bytes": lambda store: zarrow.open(store, "a").nbytes_stored(),
    "chunks": lambda store: zarrow.open(store, "a").nchunks_initialized,
    "erase": lambda store: zarrow.open(store).__delitem__("a"),
    "consolidate": lambda store: zarrow.open(store).consolidate_metadata(),
}


@pytest.mark.parametrize("work", LISTING)
def test_control_c_stops_a_list_without_end(endpoint: str, work: str) -> None:
    options = {"key": "AKIDOFTHETESTS", "secret": "hush-hush", "endpoint_url": endpoint, "region": "x"}
    Endless.signals = True
    with pytest.raises(KeyboardInterrupt):
        LISTING[work](zarrow.CloudStore("s3://bucket/g", options))
    with pytest.raises(StoreError, match="max_listed"):
        LISTING[work](zarrow.CloudStore("s3://bucket/g", {**options, "max_listed": 100}))


PROXIED = """
    import zarrow
    try:
        zarrow.open("http://example.org/a.zarr", storage_options={"max_retries": 0})
    except zarrow.errors.StoreError as error:
        print(error)
"""


def test_a_proxy_that_cannot_be_reached_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = f"http://me:pass-word@127.0.0.1:{closed.getsockname()[1]}"
        names = {name for name in os.environ if not name.lower().endswith("_proxy")}
        environment = {name: os.environ[name] for name in names} | {"HTTP_PROXY": proxy}
        command = [sys.executable, "-c", textwrap.dedent(PROXIED)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60, env=environment
        )
    address = proxy.partition("@")[2]
    assert f"(through the proxy http://***@{address} that HTTP_PROXY names)" in done.stdout
    assert "NO_PROXY" in done.stdout and "pass-word" not in done.stdout


def test_an_option_that_lacks_another_is_named() -> None:
    for given, missing in [("key", "secret"), ("secret", "key")]:
        with pytest.raises(UnsupportedError, match=f'"{given}" and no "{missing}"') as raised:
            zarrow.open("s3://bucket/a", storage_options={given: "hush-hush"})
        assert "hush" not in str(raised.value)
    with pytest.raises(UnsupportedError, match="account_name"):
        zarrow.open("az://files/a")
