"""moto as a process with sequential requests: `python -m stores.s3_by_moto PORT`.

moto checks the condition of a put and stores the value in two steps, and its threads could interleave. S3
does both atomically.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

moto = DomainDispatcherApplication(create_backend_app)
one = threading.Lock()


def application(environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer one request at a time."""
    with one:
        return list(moto(environment, start_response))


class Quiet(WSGIRequestHandler):
    """Keeps connections open, and prints nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log(self, *_: Any) -> None:
        """Log nothing."""


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=Quiet)
    server.serve_forever()
