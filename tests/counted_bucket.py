"""A bucket on a server of moto that counts round trips, and refuses requests if a test says so."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from werkzeug.serving import make_server

import zarrow
from round_trips import Rounds
from stores.s3_by_moto import Quiet, application
from test_cloud import KEY, SECRET


class Bucket:
    """A bucket on a server that counts round trips while `is_counting`."""

    def __init__(self, url: str, rounds: Rounds) -> None:
        import boto3

        self.rounds = rounds
        self.is_counting = False
        # Whether a request is refused; it may also interrupt the client.
        self.refuses: Callable[[dict[str, Any]], bool] = lambda _: False
        self.name = uuid.uuid4().hex
        options = {"endpoint_url": url, "region_name": "us-east-1"}
        self.client = boto3.client("s3", aws_access_key_id=KEY, aws_secret_access_key=SECRET, **options)
        self.client.create_bucket(Bucket=self.name)
        self.options = {"key": KEY, "secret": SECRET, "client_kwargs": options}

    def url(self, name: str) -> str:
        return f"s3://{self.name}/{name}"

    def count(self, write: Callable[[], object]) -> int:
        """Return the round trips of a write."""
        self.rounds.take()
        self.is_counting = True
        write()
        self.is_counting = False
        return self.rounds.take()

    def expect(self, write: Callable[[], object], most: int) -> None:
        """Check that a write takes at most `most` round trips."""
        self.rounds.take()
        self.is_counting = True
        write()
        self.is_counting = False
        self.rounds.expect(most)

    def download(self, name: str, folder: Path) -> Path:
        for listed in self.client.list_objects_v2(Bucket=self.name, Prefix=f"{name}/")["Contents"]:
            path = folder / listed["Key"].removeprefix(f"{name}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.client.get_object(Bucket=self.name, Key=listed["Key"])["Body"].read())
        return folder


@contextmanager
def counted_bucket(_: Path | None = None) -> Iterator[Bucket]:
    """Serve a bucket during the `with` block."""
    rounds = Rounds()
    found: list[Bucket] = []

    def counting(environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if found and found[0].is_counting:
            rounds.wait()
        if found and found[0].refuses(environment):
            start_response("403 Forbidden", [("Content-Length", "0")])
            return []
        return application(environment, start_response)

    server = make_server("127.0.0.1", 0, counting, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.append(Bucket(f"http://127.0.0.1:{server.server_port}", rounds))
    # The first conditional put to a server checks that it heeds conditions.
    zarrow.save(found[0].url("first"), [1], storage_options=found[0].options)
    try:
        yield found[0]
    finally:
        server.shutdown()
        thread.join()
        rounds.close()
