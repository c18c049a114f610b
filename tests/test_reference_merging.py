"""Requests for near parts of one object, which become one request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from obstore.store import HTTPStore
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from virtualizarr.manifests.utils import create_v3_array_metadata

import zarrow
from stores_of_others import run_in_child
from test_references import registry_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings(r"ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning"),
]

COUNT, NUMBERS = 1000, 250
NBYTES = NUMBERS * 4
IN_FLIGHT = 32


class Server(ThreadingHTTPServer):
    """Serves one object, and notes the ranges of the requests."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.ranges: list[tuple[int, int]] = []
        # Called before an answer; returns a status, or the number of bytes after which the connection breaks.
        self.fault: Callable[[int, int], int] = lambda start, stop: 0
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """Say nothing of connections that a client has closed."""


class Handler(BaseHTTPRequestHandler):
    """Answers requests for ranges."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        start, stop = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        self.server.ranges.append((start, stop + 1))
        fault = self.server.fault(start, stop + 1)
        if 400 <= fault < 600:
            self.send_response(fault)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        value = self.server.value
        body = value[start : stop + 1]
        if not body:
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(value)}")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"one"')
        self.end_headers()
        self.wfile.write(body[:fault] if fault else body)
        if fault:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(value: bytes) -> Iterator[Server]:
    server = Server(value)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def values() -> Any:
    return np.arange(COUNT * NUMBERS, dtype="<i4").reshape(COUNT, NUMBERS)


def opened(server: Server, offsets: list[int]) -> Any:
    """Return an array with its rows at these offsets of the server's object."""
    metadata = create_v3_array_metadata(
        shape=(len(offsets), NUMBERS),
        data_type=np.dtype("<i4"),
        chunk_shape=(1, NUMBERS),
        fill_value=0,
        codecs=[{"name": "bytes", "configuration": {"endian": "little"}}],
    )
    entries: dict[str, Any] = {
        f"{row}.0": {"path": f"{server.url}/rain.nc", "offset": offset, "length": NBYTES}
        for row, offset in enumerate(offsets)
    }
    array = ManifestArray(metadata, ChunkManifest(entries, shape=(len(offsets), 1)))
    http = HTTPStore.from_url(
        server.url, client_options={"allow_http": True}, retry_config={"max_retries": 2}
    )
    store = ManifestStore(ManifestGroup(arrays={"a": array}), registry=registry_of(server.url, http))
    return zarrow.open(zarrow.PythonStore(store, allow=[server.url]), "a")


def near() -> list[int]:
    return [row * NBYTES for row in range(COUNT)]


def nbytes_of(ranges: list[tuple[int, int]]) -> int:
    """Return the bytes of all ranges; a slow request is sent twice."""
    return sum(stop - start for start, stop in set(ranges))


def test_near_parts_are_requested_together() -> None:
    expected = values()
    with serving(expected.tobytes()) as server:
        array = opened(server, near())
        np.testing.assert_array_equal(array[...], expected)
        assert len(server.ranges) < COUNT // 3
        assert nbytes_of(server.ranges) <= 1.1 * expected.nbytes
        del server.ranges[:]
        # A small number is requested at once, and is not merged.
        np.testing.assert_array_equal(array[:IN_FLIGHT], expected[:IN_FLIGHT])
        assert len(set(server.ranges)) == IN_FLIGHT


def test_small_gaps_are_read_and_large_ones_are_not() -> None:
    expected = values()[:200]
    for gap, unwanted in ((1000, True), (40_000, False)):
        stride = NBYTES + gap
        value = bytearray(stride * len(expected))
        for row, numbers in enumerate(expected):
            value[row * stride : row * stride + NBYTES] = numbers.tobytes()
        with serving(bytes(value)) as server:
            array = opened(server, [row * stride for row in range(len(expected))])
            np.testing.assert_array_equal(array[...], expected)
            assert (len(set(server.ranges)) < len(expected)) == unwanted
            assert (nbytes_of(server.ranges) > expected.nbytes) == unwanted
            assert nbytes_of(server.ranges) <= expected.nbytes + gap * len(expected)


def test_parts_may_overlap_and_come_in_any_order() -> None:
    expected = values()
    rng = np.random.default_rng(3)
    with serving(expected.tobytes()) as server:
        anywhere = (rng.integers(0, COUNT * NUMBERS - NUMBERS, 500) * 4).tolist()
        offsets = [*anywhere, 0, 0, 4, NBYTES - 4]
        array = opened(server, offsets)
        flat = expected.ravel()
        wanted = [flat[offset // 4 : offset // 4 + NUMBERS] for offset in offsets]
        np.testing.assert_array_equal(array[...], wanted)
        np.testing.assert_array_equal(array[::-3], wanted[::-3])


@pytest.mark.parametrize("fault", [403, 404, 503])
def test_if_a_merged_request_fails_each_part_is_requested(fault: int) -> None:
    expected = values()[:300]
    with serving(expected.tobytes()) as server:
        server.fault = lambda start, stop: fault if stop - start > NBYTES else 0
        array = opened(server, near()[:300])
        if fault == 404:
            # The store says that the object is missing, which is an answer for all of its parts.
            with pytest.raises(zarrow.errors.StoreError, match="missing object"):
                array[...]
        else:
            np.testing.assert_array_equal(array[...], expected)
        server.fault = lambda start, stop: 0
        np.testing.assert_array_equal(array[...], expected)


def test_answers_that_break_off_are_continued() -> None:
    expected = values()
    broken: set[tuple[int, int]] = set()

    def fault(start: int, stop: int) -> int:
        if (start, stop) in broken or stop - start < 3 * NBYTES:
            return 0
        broken.add((start, stop))
        return NBYTES + 7

    with serving(expected.tobytes()) as server:
        server.fault = fault
        np.testing.assert_array_equal(opened(server, near())[...], expected)
        assert broken


def test_parts_behind_the_end_are_errors_of_their_own() -> None:
    expected = values()[:300]
    with serving(expected.tobytes()[: 290 * NBYTES + 8]) as server:
        array = opened(server, near()[:300])
        np.testing.assert_array_equal(array[:290], expected[:290])
        with pytest.raises(zarrow.errors.StoreError):
            array[...]
        with pytest.raises(zarrow.errors.StoreError, match="beyond the end"):
            array[290]
        np.testing.assert_array_equal(array[:290], expected[:290])


def test_cancelled_reads_leave_room_for_others() -> None:
    expected = values()
    released = threading.Event()

    def fault(start: int, stop: int) -> int:
        released.wait(20)
        return 0

    async def cancelled(array: Any) -> None:
        task = asyncio.ensure_future(array.read_async(...))
        while len(server.ranges) < IN_FLIGHT:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serving(expected.tobytes()) as server:
        array = opened(server, near())
        server.fault = fault
        for _ in range(3):
            asyncio.run(cancelled(array))
            released.set()
            np.testing.assert_array_equal(array[100:200], expected[100:200])
            released.clear()
            del server.ranges[:]
        released.set()
        np.testing.assert_array_equal(array[...], expected)


def test_a_forked_child_does_not_wait_for_requests_of_its_parent() -> None:
    expected = values()
    released = threading.Event()

    def fault(start: int, stop: int) -> int:
        # Rows of the child are answered at once.
        if start < 500 * NBYTES:
            released.wait(60)
        return 0

    with serving(expected.tobytes()) as server:
        array = opened(server, near())
        np.testing.assert_array_equal(array[999], expected[999])
        server.fault = fault
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.append(array[:500].numpy()))
        del server.ranges[:]
        reader.start()
        while len(server.ranges) < IN_FLIGHT:
            threading.Event().wait(0.01)
        in_child = run_in_child(
            "fork", lambda: np.testing.assert_array_equal(array[500:700], expected[500:700])
        )
        released.set()
        reader.join()
        assert in_child is None
        np.testing.assert_array_equal(found[0], expected[:500])
