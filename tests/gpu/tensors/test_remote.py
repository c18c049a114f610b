"""Reading to a device from a web server, and in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow

from .conftest import Border
from .test_read import CODECS, stored


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, one range at a time, and can delay its answers."""

    protocol_version = "HTTP/1.1"
    open = threading.Event()
    asked = threading.Event()

    def send_head(self) -> Any:
        if "/c/" in self.path:
            self.asked.set()
            self.open.wait()
        wanted, path = self.headers.get("Range"), Path(self.translate_path(self.path))
        if wanted is None or not path.is_file():
            return super().send_head()
        body = path.read_bytes()
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(body) - int(last))
        stop = min(int(last) + 1, len(body)) if first and last else len(body)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(body)}")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        self.wfile.write(body[start:stop] if self.command == "GET" else b"")
        return None

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    Handler.open.set()
    Handler.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/a.zarr"
    Handler.open.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("codecs", CODECS)
def test_each_byte_of_a_remote_store_crosses_once(
    tmp_path: Path, url: str, values: Any, codecs: str, border: Border
) -> None:
    stored(tmp_path, values, **CODECS[codecs])
    tensor = zarrow.open(url).read(device="cuda:0")
    assert (border.to_device, border.to_host, border.pageable) == (values.nbytes, 0, 0)
    assert np.array_equal(tensor.cpu().numpy(), values)


@pytest.mark.parametrize("is_remote", [False, True])
def test_reads_are_awaited(tmp_path: Path, url: str, values: Any, is_remote: bool) -> None:
    array = stored(tmp_path, values)
    array = zarrow.open(url) if is_remote else array
    out = zarrow.gpu.asarray(np.zeros((53, 37), "f4")).T

    async def reads() -> list[Any]:
        many = [array.read_async(np.s_[row, ::-3], device="cuda:0", stream=1) for row in range(20)]
        return [await array.read_async(out=out), *await asyncio.gather(*many)]

    first, *rows = asyncio.run(reads())
    assert first is out and np.array_equal(out.cpu().numpy(), values)
    assert np.array_equal([row.cpu().numpy() for row in rows], values[:20, ::-3])
    with pytest.raises(ValueError, match=r"decompress=.device. needs device="):
        asyncio.run(array.read_async(decompress="device"))
    assert np.array_equal(asyncio.run(array.read_async(decompress="host")), values)
    with pytest.raises(TypeError, match="takes no order="):
        asyncio.run(array.read_async(device="cuda:0", order="F"))


def test_a_task_that_is_cancelled_stops_its_read(tmp_path: Path, url: str, values: Any) -> None:
    stored(tmp_path, values)
    array = zarrow.open(url)
    out = zarrow.gpu.asarray(np.full(values.shape, -1, "f4"))

    async def cancelled() -> None:
        task = asyncio.ensure_future(array.read_async(device="cuda:0", out=out))
        Handler.open.clear()
        Handler.asked.clear()
        await asyncio.to_thread(Handler.asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    # The answers released now have no receiver.
    Handler.open.set()
    assert set(np.unique(out.cpu().numpy())) <= {-1.0, *np.unique(values)}
    before = out.cpu().numpy().copy()
    zarrow.gpu.synchronize()
    assert np.array_equal(out.cpu().numpy(), before)
    assert np.array_equal(array.read(device="cuda:0").cpu().numpy(), values)
