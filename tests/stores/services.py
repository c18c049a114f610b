"""The tested services: each is started, filled, and opened by zarrow."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from xml.sax.saxutils import unescape

from stores.install import program
from stores.process import Server

BUCKET = "tests"
KEY, SECRET = "AKIDOFTHETESTS", "a-very-secret/word+here"
# The account of every Azure emulator, with the key from Microsoft's documentation.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
UPLOADS_AT_ONCE = 8
TESTS = Path(__file__).parent.parent


class Service:
    """A running service with one empty bucket."""

    name: str
    scheme: str
    can_write = True
    # Whether a conditional put is one step, so that stored values can be changed.
    has_conditions = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder / self.name
        self.folder.mkdir(parents=True)
        self.server = self.start()
        self.make_bucket()

    def start(self) -> Server:
        """Start the server."""
        raise NotImplementedError

    def make_bucket(self) -> None:
        """Create the bucket."""

    @property
    def endpoint(self) -> str:
        """Return the address of the server."""
        return f"http://127.0.0.1:{self.server.port}"

    def url(self, path: str) -> str:
        """Return the URL of a store for zarrow."""
        return f"{self.scheme}://{BUCKET}/{path}"

    @property
    def options(self) -> dict[str, Any]:
        """Return the matching `storage_options`."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        """Return the file with the server's output."""
        return self.folder / "log"

    def put(self, key: str, body: bytes) -> None:
        """Put a value, without zarrow."""
        raise NotImplementedError

    def upload(self, folder: Path, prefix: str) -> None:
        """Put every file of a folder below a prefix."""
        files = [path for path in folder.rglob("*") if path.is_file()]

        def put(path: Path) -> None:
            self.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

        with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
            list(pool.map(put, files))

    def keys(self, prefix: str) -> list[str]:
        """Return the keys below a prefix, without zarrow."""
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        """Return a value, without zarrow."""
        raise NotImplementedError

    def download(self, prefix: str, folder: Path) -> None:
        """Download every value below a prefix to a folder."""
        for key in self.keys(f"{prefix}/"):
            path = folder / key.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.get(key))

    def stop(self) -> None:
        """End the server."""
        self.server.stop()


def send(method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Send a request; raise an error with the body unless it succeeds."""
    request = urllib.request.Request(url, data=body, method=method, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {url}: {error.code} {error.read()[:300]!r}") from None


class S3(Service):
    """A server with the S3 protocol."""

    scheme = "s3"

    def make_bucket(self) -> None:
        import boto3

        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )
        self.client.create_bucket(Bucket=BUCKET)

    @property
    def options(self) -> dict[str, Any]:
        where = {"endpoint_url": self.endpoint, "region_name": "us-east-1"}
        return {"key": KEY, "secret": SECRET, "client_kwargs": where}

    def put(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)

    def keys(self, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def get(self, key: str) -> bytes:
        body: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body


class Moto(S3):
    """moto, which has the semantics of S3, in Python."""

    name = "moto"

    def start(self) -> Server:
        def command(port: int) -> list[str]:
            return [sys.executable, "-m", "stores.s3_by_moto", str(port)]

        return Server(command, self.log, {"PYTHONPATH": str(TESTS)})


class S3s(S3):
    """s3s-fs, in Rust, with a folder as the bucket.

    It compares the version and writes in two steps, between which others write. zarrow's probe notices this
    now and then, and its users say it.
    """

    name = "s3s-fs"
    has_conditions = False

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "conditional_put": "disabled"}

    def start(self) -> Server:
        root = self.folder / "root"
        root.mkdir()
        keys = ["--access-key", KEY, "--secret-key", SECRET]
        path = str(program(self.name))

        def command(port: int) -> list[str]:
            return [path, "--host", "127.0.0.1", "--port", str(port), *keys, str(root)]

        return Server(command, self.log, {"RUST_LOG": "off"})

    def local(self, path: str) -> Path:
        """Return the folder of a prefix."""
        return self.folder / "root" / BUCKET / path


class Azurite(Service):
    """azurite, Microsoft's emulator of Azure Blob Storage."""

    name = "azurite"
    scheme = "az"

    def start(self) -> Server:
        node = shutil.which("node")
        if node is None:
            raise LookupError("there is no azurite: node is not installed")
        path = str(program(self.name))
        options = ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]

        def command(port: int) -> list[str]:
            return [node, path, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]

        return Server(command, self.log)

    def make_bucket(self) -> None:
        self.token = shared_access_signature()
        send("PUT", f"{self.endpoint}/{ACCOUNT}/{BUCKET}?restype=container&{self.token}")

    @property
    def options(self) -> dict[str, Any]:
        endpoint = f"BlobEndpoint={self.endpoint}/{ACCOUNT}"
        return {"connection_string": f"AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};{endpoint}"}

    def put(self, key: str, body: bytes) -> None:
        url = f"{self.endpoint}/{ACCOUNT}/{BUCKET}/{quote(key)}?{self.token}"
        headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}
        send("PUT", url, body, headers)

    def keys(self, prefix: str) -> list[str]:
        query = urlencode({"restype": "container", "comp": "list", "prefix": prefix})
        text = send("GET", f"{self.endpoint}/{ACCOUNT}/{BUCKET}?{query}&{self.token}").decode()
        return [unescape(name) for name in re.findall("<Name>(.*?)</Name>", text)]

    def get(self, key: str) -> bytes:
        return send("GET", f"{self.endpoint}/{ACCOUNT}/{BUCKET}/{quote(key)}?{self.token}")


def shared_access_signature() -> str:
    """Return a query that gives full access to the account."""
    words = {"sv": "2019-12-12", "ss": "b", "srt": "sco", "sp": "rwdlac", "se": "2099-01-01T00:00:00Z"}
    signed = [ACCOUNT, words["sp"], words["ss"], words["srt"], "", words["se"], "", "", words["sv"], ""]
    key = base64.b64decode(ACCOUNT_KEY)
    signature = hmac.new(key, "\n".join(signed).encode(), hashlib.sha256).digest()
    return urlencode({**words, "sig": base64.b64encode(signature).decode()})


class Google(Service):
    """zarrow's test server for Google's XML interface, since no emulator supports its puts."""

    name = "google"
    scheme = "gs"
    words: tuple[str, ...] = ()

    def start(self) -> Server:
        def command(port: int) -> list[str]:
            return [sys.executable, "-m", "stores.google", str(port), *self.words]

        return Server(command, self.log, {"PYTHONPATH": str(TESTS)})

    @property
    def options(self) -> dict[str, Any]:
        return {"token": "anon", "endpoint_url": self.endpoint}

    def put(self, key: str, body: bytes) -> None:
        send("PUT", f"{self.endpoint}/{BUCKET}/{quote(key, safe='')}", body)

    def keys(self, prefix: str) -> list[str]:
        found: list[str] = []
        while True:
            query = {
                "list-type": "2",
                "prefix": prefix,
                **({"continuation-token": found[-1]} if found else {}),
            }
            text = send("GET", f"{self.endpoint}/{BUCKET}?{urlencode(query)}").decode()
            found += [unescape(name) for name in re.findall("<Key>(.*?)</Key>", text)]
            if "<NextContinuationToken>" not in text:
                return found

    def get(self, key: str) -> bytes:
        return send("GET", f"{self.endpoint}/{BUCKET}/{quote(key, safe='')}")


class CarelessGoogle(Google):
    """The same, ignoring conditions."""

    name = "careless-google"
    words = ("careless",)


class FakeGcs(Service):
    """fake-gcs-server, filled through the JSON interface, because it lacks puts of the XML one."""

    name = "fake-gcs-server"
    scheme = "gs"
    can_write = False

    def start(self) -> Server:
        path = str(program(self.name))

        def command(port: int) -> list[str]:
            where = ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
            return [path, "-backend", "memory", "-scheme", "http", "-log-level", "error", *where]

        return Server(command, self.log)

    def make_bucket(self) -> None:
        headers = {"Content-Type": "application/json"}
        send("POST", f"{self.endpoint}/storage/v1/b", f'{{"name": "{BUCKET}"}}'.encode(), headers)

    @property
    def options(self) -> dict[str, Any]:
        return {"token": "anon", "endpoint_url": self.endpoint}

    def put(self, key: str, body: bytes) -> None:
        query = urlencode({"uploadType": "media", "name": key})
        headers = {"Content-Type": "application/octet-stream"}
        send("POST", f"{self.endpoint}/upload/storage/v1/b/{BUCKET}/o?{query}", body, headers)


class Nginx(Service):
    """nginx, over a folder."""

    name = "nginx"
    scheme = "http"
    can_write = False
    # Additional lines of the server's block.
    lines: tuple[str, ...] = ()

    def start(self) -> Server:
        return run_nginx(self.folder, self.lines)

    def url(self, path: str) -> str:
        return f"{self.endpoint}/{path}"

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def put(self, key: str, body: bytes) -> None:
        path = self.folder / "root" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def run_nginx(folder: Path, lines: tuple[str, ...] = (), listen: str = "") -> Server:
    """Start nginx over the folder `root`, with additional lines in its server's block."""
    path = str(program("nginx"))
    root, access = folder / "root", folder / "access"
    root.mkdir(exist_ok=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"    {kind}_temp_path {folder}/{kind};" for kind in kinds)
    # The log has these headers of each request, so that tests see which ones were sent.
    told = "$request_method $request_uri|$http_authorization|$http_x_key|$http_range|$status"

    def command(port: int) -> list[str]:
        block = "\n".join(f"        {line}" for line in lines)
        (folder / "conf").write_text(
            f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error;\n"
            "events { worker_connections 1024; }\n"
            f"http {{\n{temporary}\n    log_format told '{told}';\n    access_log {access} told;\n"
            f"    keepalive_requests 100000;\n    server {{\n        listen 127.0.0.1:{port}{listen};\n"
            f"        root {root};\n{block}\n    }}\n}}\n"
        )
        return [path, "-e", f"{folder}/error", "-p", str(folder), "-c", f"{folder}/conf"]

    return Server(command, folder / "log")


SERVICES: dict[str, type[Service]] = {
    service.name: service for service in (Moto, S3s, Azurite, Google, FakeGcs, Nginx)
}
