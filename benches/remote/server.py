"""The server of all readers: the Rust example `object_server`."""

import json
from pathlib import Path
from typing import Any

from benches.process import Process

PROGRAM = Path("target/release/examples/object_server")


class Server(Process):
    """Serves a folder, by HTTP and as a bucket, until the context ends."""

    def __init__(self, folder: Path, log: Path, scratch: Path) -> None:
        super().__init__([str(PROGRAM), str(folder.resolve())], log, scratch)
        self.port: int = self.receive()["port"]

    def behave(self, manner: dict[str, Any]) -> dict[str, int]:
        """Configure the server's behaviour, and return its counts since the last call."""
        self.send(json.dumps(manner))
        return self.receive()
