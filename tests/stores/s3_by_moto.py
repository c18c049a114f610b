"""moto with sequential requests, in a thread or as a process: `python -m stores.s3_by_moto PORT`.

moto checks the condition of a put and stores the value in two steps, and its threads could interleave. S3
does both atomically.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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


@contextmanager
def running() -> Iterator[str]:
    """Serve in a thread, and give the URL."""
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@contextmanager
def connected(key: str, secret: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Serve in a thread, and give a client and the options of a store."""
    import boto3

    with running() as url:
        client = boto3.client(
            "s3",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
        )
        endpoint = {"endpoint_url": url, "region_name": "us-east-1"}
        yield client, {"key": key, "secret": secret, "client_kwargs": endpoint}


if __name__ == "__main__":
    server = make_server("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=Quiet)
    server.serve_forever()
