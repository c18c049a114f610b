"""The loader's cache of decoded chunks over HTTP: what later epochs transfer."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data
from zarrow.data import current_arrays

VALUES = np.random.default_rng(0).integers(0, 100, (400, 100)).astype("u2")


class Handler(BaseHTTPRequestHandler):
    """Sends files with their versions, whole or in part, and notes the sizes of the bodies."""

    protocol_version = "HTTP/1.1"
    folder: Path
    sent: list[int]

    def do_GET(self) -> None:
        try:
            body, status = (self.folder / self.path.strip("/")).read_bytes(), 200
        except OSError:
            self._answer(404, b"", {})
            return
        headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "Accept-Ranges": "bytes"}
        if self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
            self._answer(412, b"", {})
            return
        if found := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            first, last = found.groups()
            total = len(body)
            start = int(first) if first else total - int(last)
            stop = min(int(last) + 1, total) if first and last else total
            body, status = body[start:stop], 206
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{total}"
        self._answer(status, body, headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            # Before the body, so that its receiver finds it counted.
            self.sent.append(len(body))
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Careless(Handler):
    """Ignores conditions, and names the version only with a body."""

    def do_GET(self) -> None:
        del self.headers["If-Match"]
        super().do_GET()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        if self.command == "HEAD":
            headers.pop("ETag", None)
        super()._answer(status, body, headers)


@pytest.fixture
def sent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, list[int]]]:
    """Serve the folder of the test; return the URL, and the sizes of the bodies."""
    sizes: list[int] = []
    handler = type("Handler", (getattr(request, "param", Handler),), {"folder": tmp_path, "sent": sizes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", sizes
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("layout", ["chunks", "shards", "transposed chunks"])
def test_a_cache_saves_later_epochs_the_transfer(
    tmp_path: Path, sent: tuple[str, list[int]], layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The document is not read again if an epoch takes longer than a second.
    monkeypatch.setattr(current_arrays, "_SECONDS", 1e6)
    url, sizes = sent
    options: dict[str, Any] = {"shards": (100, 100)} if layout == "shards" else {}
    if layout == "transposed chunks":
        options["order"] = "F"
    stored = zarrow.create_array(tmp_path / "a", data=VALUES, chunks=(10, 100), **options)
    plan = data.Plan(zarrow.open_array(f"{url}/a"), 32)
    # Some requests for documents of version 2 are answered later, by nothing.
    before = sum(sizes)
    loader, transferred = data.Loader(plan, cache_nbytes=1 << 20, numbers=True), []
    assert sum(sizes) == before, "a loader reads nothing before its first batch"
    for _ in range(3):
        before = sum(sizes)
        assert all(np.array_equal(batch, VALUES[numbers]) for batch, numbers in loader)
        transferred.append(sum(sizes) - before)
    # A loader reads the document once an epoch.
    document = (tmp_path / "a" / "zarr.json").stat().st_size
    assert transferred[0] > VALUES.nbytes // 4 and transferred[1:] == [document, document]
    assert loader.stats().cache_hit_rate == 1
    stored[105:115] = 7
    expected = VALUES.copy()
    expected[105:115] = 7
    before = sum(sizes)
    assert all(np.array_equal(batch, expected[numbers]) for batch, numbers in loader)
    assert sum(sizes) > before


@pytest.mark.parametrize("sent", [Careless], indirect=True)
def test_a_server_that_names_no_version_sends_chunks_again(
    tmp_path: Path, sent: tuple[str, list[int]]
) -> None:
    url, _ = sent
    stored = zarrow.create_array(tmp_path / "a", data=VALUES, chunks=(10, 100))
    loader = data.Loader(data.Plan(zarrow.open_array(f"{url}/a"), 32), cache_nbytes=1 << 20, numbers=True)
    for value in (None, 7, 8):
        if value is not None:
            stored[105:115] = value
        expected = np.asarray(stored[...])
        assert all(np.array_equal(batch, expected[numbers]) for batch, numbers in loader)
