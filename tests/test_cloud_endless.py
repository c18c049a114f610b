"""Servers whose lists have no end."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import zarrow
from zarrow.errors import StoreError


class Endless(BaseHTTPRequestHandler):
    """A group on S3 with an endless list: each page has new names."""

    protocol_version = "HTTP/1.1"
    pages = 0
    signals = False

    def do_GET(self) -> None:
        names: list[str] = []
        if "list-type" in self.path:
            Endless.pages += 1
            names = [f"g/{Endless.pages}/c/{number}" for number in range(20)]
            # One signal, when the list has begun.
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
}


@pytest.mark.parametrize("work", LISTING)
def test_control_c_stops_a_list_without_end(endpoint: str, work: str) -> None:
    options = {"key": "AKIDOFTHETESTS", "secret": "hush-hush", "endpoint_url": endpoint, "region": "x"}
    Endless.signals = True
    with pytest.raises(KeyboardInterrupt):
        LISTING[work](zarrow.CloudStore("s3://bucket/g", options))
    with pytest.raises(StoreError, match="max_listed"):
        LISTING[work](zarrow.CloudStore("s3://bucket/g", {**options, "max_listed": 100}))
