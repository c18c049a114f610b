"""TLS with nginx: accepted certificates, the options for them, and redirects."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from stores.certificates import Authority
from stores.process import Server
from stores.services import S3s, Service, run_nginx
from zarrow.errors import StoreError, UnsupportedError

pytestmark = pytest.mark.stores

VALUES = np.arange(60, dtype="i4").reshape(12, 5)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "tests-authority")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"), "other-authority")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start nginx over an array, with TLS if there is a certificate."""
    started: list[Server] = []

    def start(name: str, lines: tuple[str, ...] = (), pair: Any = None) -> Server:
        folder = tmp_path / name
        (folder / "root").mkdir(parents=True)
        zarrow.create_array(folder / "root" / "a.zarr", data=VALUES, chunks=(5, 5))
        if pair:
            lines += (f"ssl_certificate {pair.certificate};", f"ssl_certificate_key {pair.key};")
        try:
            started.append(run_nginx(folder, lines, " ssl" if pair else ""))
        except LookupError as reason:
            pytest.skip(str(reason))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def read(url: str, **options: Any) -> Any:
    return np.asarray(zarrow.open(url, storage_options=options)[...])


def test_a_certificate_of_the_authority_that_is_named(
    serve: Callable[..., Server], authority: Authority, other: Authority, tmp_path: Path
) -> None:
    url = f"https://127.0.0.1:{serve('right', pair=authority.sign('127.0.0.1')).port}/a.zarr"
    path = str(authority.certificate)
    np.testing.assert_array_equal(read(url, verify=path), VALUES)
    np.testing.assert_array_equal(read(url, client_kwargs={"verify": path}), VALUES)
    np.testing.assert_array_equal(read(url, verify=False), VALUES)
    array = pickle.loads(pickle.dumps(zarrow.open(url, storage_options={"verify": path})))
    np.testing.assert_array_equal(np.asarray(array[...]), VALUES)
    for options in ({}, {"verify": True}, {"verify": str(other.certificate)}):
        with pytest.raises(StoreError, match="certificate") as raised:
            read(url, **options)
        assert "verify" in str(raised.value)
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for wrong in (empty, tmp_path / "none.pem"):
        with pytest.raises(UnsupportedError, match="file of certificates"):
            read(url, verify=str(wrong))


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_a_certificate_of_the_authorities_of_the_environment(
    serve: Callable[..., Server], authority: Authority, tmp_path: Path, variable: str
) -> None:
    """A process looks up the system's authorities once."""
    url = f"https://127.0.0.1:{serve('right', pair=authority.sign('127.0.0.1')).port}/a.zarr"
    place = authority.certificate
    if variable == "SSL_CERT_DIR":
        hashed = subprocess.run(
            ["openssl", "x509", "-hash", "-noout", "-in", place], capture_output=True, text=True, check=True
        )
        (tmp_path / "hashed").mkdir()
        (tmp_path / "hashed" / f"{hashed.stdout.strip()}.0").write_bytes(place.read_bytes())
        place = tmp_path / "hashed"
    code = "import sys, zarrow; print(int(zarrow.open(sys.argv[1])[...].numpy().sum()))"
    environment = {"PYTHONPATH": ":".join(sys.path), variable: str(place)}
    done = subprocess.run(
        [sys.executable, "-c", code, url], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.stdout == f"{VALUES.sum()}\n", done.stderr


@pytest.mark.parametrize("wrong", ["expired", "of another host"])
def test_invalid_certificates(serve: Callable[..., Server], authority: Authority, wrong: str) -> None:
    pair = (
        authority.sign("127.0.0.1", days_ago=30) if wrong == "expired" else authority.sign("example.invalid")
    )
    server = serve("wrong", pair=pair)
    options = {"verify": str(authority.certificate)}
    with pytest.raises(StoreError, match=r"certificate") as raised:
        read(f"https://127.0.0.1:{server.port}/a.zarr", **options)
    assert ("expired" if wrong == "expired" else "not valid for") in str(raised.value)
    np.testing.assert_array_equal(read(f"https://127.0.0.1:{server.port}/a.zarr", verify=False), VALUES)


def test_s3_over_tls(
    serve: Callable[..., Server],
    authority: Authority,
    other: Authority,
    running: Callable[[str], Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """nginx before s3s-fs: the signature covers the host in the client's request."""
    service = running("s3s-fs")
    assert isinstance(service, S3s)
    lines = (
        "client_max_body_size 0;",
        f"location / {{ proxy_pass {service.endpoint}; proxy_set_header Host $http_host; "
        "proxy_http_version 1.1; }",
    )
    server = serve("proxy", lines, authority.sign("127.0.0.1"))
    where = {"endpoint_url": f"https://127.0.0.1:{server.port}", "region_name": "us-east-1"}
    options = {**service.options, "client_kwargs": where, "verify": str(authority.certificate)}
    url = service.url("tls.zarr")
    array = zarrow.create_array(url, data=VALUES, chunks=(5, 5), storage_options=options)
    array[2:4] = 0
    expected = VALUES.copy()
    expected[2:4] = 0
    np.testing.assert_array_equal(np.asarray(array[...]), expected)
    del options["verify"]
    monkeypatch.setenv("AWS_CA_BUNDLE", str(other.certificate))
    with pytest.raises(StoreError, match="certificate"):
        read(url, **options)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.certificate))
    np.testing.assert_array_equal(read(url, **options), expected)


def test_a_redirect_to_another_host_carries_no_credentials(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    target = serve("target")
    source = serve(
        "source", (f"location /a.zarr/ {{ return 302 http://127.0.0.1:{target.port}$request_uri; }}",)
    )
    url = f"http://me:pass-word@127.0.0.1:{source.port}/a.zarr"
    np.testing.assert_array_equal(read(url, headers={"X-Key": "header-1"}), VALUES)
    asked = (tmp_path / "source" / "access").read_text().splitlines()
    followed = (tmp_path / "target" / "access").read_text().splitlines()
    assert asked and all("|Basic " in line and "|header-1|" in line for line in asked)
    chunks = [line for line in followed if "/c/" in line]
    assert len(chunks) == 3 and all("|-|-|" in line for line in followed)


def test_a_redirect_from_tls_to_plain_text_is_not_followed(
    serve: Callable[..., Server], authority: Authority, tmp_path: Path
) -> None:
    target = serve("target")
    lines = (f"location /a.zarr/ {{ return 302 http://127.0.0.1:{target.port}$request_uri; }}",)
    source = serve("source", lines, authority.sign("127.0.0.1"))
    with pytest.raises(StoreError, match="from https to another protocol"):
        read(f"https://127.0.0.1:{source.port}/a.zarr", verify=str(authority.certificate))
    assert not (tmp_path / "target" / "access").read_text()
