"""moto as a process, one request after the other: `python -m stores.s3_by_moto PORT`.

moto compares the condition of a put and puts in two steps, between which its threads could take turns. S3
does both in one.
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
    """Answer when no other request is being answered."""
    with one:
        return list(moto(environment, start_response))


class Quiet(WSGIRequestHandler):
    """Connections stay open, and nothing is printed."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log(self, *_: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=Quiet)
    server.serve_forever()
