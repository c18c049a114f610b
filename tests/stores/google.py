"""Google Cloud Storage with its documented XML interface, in memory: `python -m stores.google PORT`.

The servers in the registries lack puts of the XML interface, or conditions. This one implements the needs of
an array store: values with generations, `x-goog-if-generation-match`, ranges, `If-Match`,
listings in pages, and multipart uploads. With the argument `careless` it ignores conditions, like emulators.

https://cloud.google.com/storage/docs/xml-api/overview
"""

from __future__ import annotations

import hashlib
import itertools
import re
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE_KEYS = 100
TIME = "Sun, 22 Nov 2026 10:00:00 GMT"
LISTED_TIME = "2026-11-22T10:00:00Z"


@dataclass(frozen=True)
class Value:
    """A stored value."""

    body: bytes
    generation: int

    @property
    def headers(self) -> dict[str, str]:
        """Return the entity tag of the value."""
        return {
            "ETag": f'"{hashlib.md5(self.body).hexdigest()}"',
            "x-goog-generation": str(self.generation),
            "Last-Modified": TIME,
        }


@dataclass
class Buckets:
    """All values by bucket and key, and the parts of incomplete uploads."""

    values: dict[tuple[str, str], Value] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1795342831349281))

    def put(self, place: tuple[str, str], body: bytes, match: str | None) -> Value | None:
        """Put a value if its current generation matches, 0 for none."""
        with self.lock:
            found = self.values.get(place)
            if match is not None and int(match) != (found.generation if found else 0):
                return None
            self.values[place] = Value(body, next(self.numbers))
            return self.values[place]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    buckets = Buckets()
    is_careless = False

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status: int, code: str) -> None:
        """Send an error in Google's format."""
        self.answer(status, f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode())

    def parse(self) -> tuple[tuple[str, str], dict[str, str], bytes]:
        """Return bucket and key, the query, and the body."""
        url = urlsplit(self.path)
        bucket, _, key = url.path.lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return (unquote(bucket), unquote(key)), query, body

    def do_GET(self) -> None:
        """Read a value, or list a bucket."""
        place, query, _ = self.parse()
        if not place[1]:
            self.list(place[0], query)
            return
        value = self.buckets.values.get(place)
        if value is None:
            self.error(404, "NoSuchKey")
            return
        if self.headers.get("If-Match") not in (None, value.headers["ETag"]):
            self.error(412, "PreconditionFailed")
            return
        if "Range" not in self.headers:
            self.answer(200, value.body, **value.headers)
            return
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"])
        assert asked, "one range of bytes"
        nbytes = len(value.body)
        start = int(asked[1]) if asked[1] else max(0, nbytes - int(asked[2]))
        end = min(nbytes, int(asked[2]) + 1) if asked[1] and asked[2] else nbytes
        if start >= end:
            self.error(416, "InvalidRange")
            return
        told = {"Content-Range": f"bytes {start}-{end - 1}/{nbytes}", **value.headers}
        self.answer(206, value.body[start:end], **told)

    def do_HEAD(self) -> None:
        """Answer like a read, without the body."""
        place, _, _ = self.parse()
        value = self.buckets.values.get(place)
        if value is None:
            self.answer(404)
        else:
            self.answer(200, length=str(len(value.body)), **value.headers)

    def list(self, bucket: str, query: dict[str, str]) -> None:
        """Return one page of keys and prefixes."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", "")
        names: dict[str, int | None] = {}
        for (own, key), value in list(self.buckets.values.items()):
            if own == bucket and key.startswith(prefix):
                head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                name = prefix + head + found if found else key
                names[name] = None if found else len(value.body)
        page = sorted(name for name in names if name > after)
        text = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if names[name] is None
            else f"<Contents><Key>{escape(name)}</Key><Size>{names[name]}</Size>"
            f"<LastModified>{LISTED_TIME}</LastModified><ETag>x</ETag></Contents>"
            for name in page[:PAGE_KEYS]
        )
        if len(page) > PAGE_KEYS:
            text += f"<NextContinuationToken>{escape(page[PAGE_KEYS - 1])}</NextContinuationToken>"
        self.answer(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())

    def do_PUT(self) -> None:
        """Put a value, or a part of an upload."""
        place, query, body = self.parse()
        if self.headers.get("Authorization", "").strip() == "Bearer":
            self.error(401, "AuthenticationRequired")
            return
        if "uploadId" in query:
            self.buckets.parts[query["uploadId"]][int(query["partNumber"])] = body
            self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')
            return
        match = None if self.is_careless else self.headers.get("x-goog-if-generation-match")
        value = self.buckets.put(place, body, match)
        if value is None:
            self.error(412, "PreconditionFailed")
        else:
            self.answer(200, **value.headers)

    def do_POST(self) -> None:
        """Begin or complete an upload in parts."""
        place, query, body = self.parse()
        if "uploads" in query:
            upload = f"upload-{next(self.buckets.numbers)}"
            self.buckets.parts[upload] = {}
            name = "InitiateMultipartUploadResult"
            self.answer(200, f"<{name}><UploadId>{upload}</UploadId></{name}>".encode())
            return
        parts = self.buckets.parts.pop(query["uploadId"])
        numbers = [int(number) for number in re.findall(rb"<PartNumber>(\d+)", body)]
        value = self.buckets.put(place, b"".join(parts[number] for number in numbers), None)
        assert value
        tag = escape(value.headers["ETag"])
        answer = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        self.answer(200, answer.encode(), **value.headers)

    def do_DELETE(self) -> None:
        """Remove a value, or the parts of an upload."""
        place, query, _ = self.parse()
        if "uploadId" in query:
            self.buckets.parts.pop(query["uploadId"], None)
        elif self.buckets.values.pop(place, None) is None:
            self.error(404, "NoSuchKey")
            return
        self.answer(204)


if __name__ == "__main__":
    Handler.is_careless = "careless" in sys.argv
    ThreadingHTTPServer.request_queue_size = 512
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
