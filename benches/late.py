"""A store with slow answers: the files of the benchmarks by HTTP, from one server for all readers.

Server and zarrow's reader are the Rust example `slow_store`.
"""

import json
from pathlib import Path

from benches.process import Process
from benches.row import Row

PROGRAM = Path("target/release/examples/slow_store")
REQUESTS = 32
"""Concurrent requests of zarrow, the same as tensorstore's default."""


class Server(Process):
    """Serves a folder until the context ends."""

    def __init__(self, folder: Path, milliseconds: int, log: Path, scratch: Path) -> None:
        super().__init__([str(PROGRAM), "serve", str(folder.resolve()), str(milliseconds)], log, scratch)
        self.port: int = self.receive()["port"]

    @property
    def url(self) -> str:
        """Return the URL of the folder."""
        return f"http://127.0.0.1:{self.port}"

    def request(self, row: Row) -> str:
        """Describe the array of a row for zarrow's reader."""
        return json.dumps({"port": self.port, "path": f"{row.data}.zarr", "requests": REQUESTS})
