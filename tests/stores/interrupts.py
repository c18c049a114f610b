"""Measures how soon Ctrl-C stops a wait for a server: `python -m stores.interrupts`, in milliseconds.

1. A server becomes silent: when an array is opened, when it is read, or within a chunk.
2. A child waits for it, gets SIGINT, and prints the delay of its `KeyboardInterrupt`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import zarrow

TIMES = 20
BEFORE_SECONDS = 0.2
OPTIONS = {"read_timeout": 60}


class Silent(SimpleHTTPRequestHandler):
    """Answers until a request for `silent`; of a chunk it may send half first."""

    protocol_version = "HTTP/1.1"
    silent = ""
    sends_half = False

    def do_GET(self) -> None:
        """Answer, or wait for as long as the process lives."""
        if self.silent in self.path:
            if self.sends_half:
                self.send_response(200)
                self.send_header("Content-Length", str(8 << 20))
                self.end_headers()
                self.wfile.write(bytes(4 << 20))
            threading.Event().wait()
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def wait(url: str, when: str) -> None:
    """Wait for the server until Ctrl-C, and print the delay."""
    sent = [0.0]

    def interrupt() -> None:
        time.sleep(BEFORE_SECONDS)
        sent[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    array = None if when == "open" else zarrow.open(url, storage_options=OPTIONS)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        if array is None:
            zarrow.open(url, storage_options=OPTIONS)
        elif when == "await":
            asyncio.run(array.read_async())
        else:
            array[...]
    except KeyboardInterrupt:
        print((time.perf_counter() - sent[0]) * 1000)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        zarrow.create_array(Path(folder) / "a.zarr", data=bytes(8 << 20), compressors=None)
        for when, silent, sends_half in [
            ("open", "zarr.json", False),
            ("read", "/c", False),
            ("body", "/c", True),
            ("await", "/c", False),
        ]:
            handler = type("Handler", (Silent,), {"silent": silent, "sends_half": sends_half})
            server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder))
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{server.server_address[1]}/a.zarr"
            command = [sys.executable, "-m", "stores.interrupts", json.dumps([url, when])]
            times = [
                float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                for _ in range(TIMES)
            ]
            print(f"{when:6} median {statistics.median(times):6.1f} ms, longest {max(times):6.1f} ms")
            server.shutdown()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        wait(*json.loads(sys.argv[1]))
    else:
        main()
