"""Wrong or missing credentials: a prompt error with a remedy, without secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import zarrow
from stores.services import ACCOUNT, ACCOUNT_KEY, KEY, SECRET, Azurite, Service
from zarrow.errors import StorePermissionError

pytestmark = pytest.mark.stores


def texts(error: BaseException) -> list[str]:
    """Return the full text of an error."""
    return [
        str(error),
        repr(error),
        *map(str, getattr(error, "__notes__", [])),
        str(getattr(error, "store", "")),
    ]


def test_wrong_keys_of_s3(running: Callable[[str], Service]) -> None:
    """moto accepts any credentials."""
    service = running("s3s-fs")
    wrong = "wrong-but-secret/word"
    for options in [{**service.options, "secret": wrong}, {**service.options, "token": "session-token-1"}]:
        for attempt in (zarrow.open, zarrow.create_group):
            if "token" in options and attempt is zarrow.create_group:
                continue
            try:
                attempt(service.url("secret.zarr"), storage_options=options)
            except zarrow.ZarrowError as error:
                shown = texts(error)
            for text in shown:
                assert not [secret for secret in (wrong, SECRET, KEY, "session-token-1") if secret in text], (
                    text
                )
    with pytest.raises(StorePermissionError, match="SignatureDoesNotMatch"):
        zarrow.open(service.url("secret.zarr"), storage_options={**service.options, "secret": wrong})


def test_wrong_keys_of_azure(running: Callable[[str], Service]) -> None:
    service = running("azurite")
    assert isinstance(service, Azurite)
    wrong = "d3JvbmctYnV0LXNlY3JldA=="
    endpoint = f"{service.endpoint}/{ACCOUNT}"
    for options in [
        {"account_name": ACCOUNT, "account_key": wrong, "account_host": endpoint},
        {
            "account_name": ACCOUNT,
            "sas_token": service.token.replace("sig=", "sig=AAAA"),
            "account_host": endpoint,
        },
    ]:
        for attempt in (zarrow.open, zarrow.create_group):
            with pytest.raises(StorePermissionError) as raised:
                attempt(service.url("secret.zarr"), storage_options=options)
            signature = service.token.partition("sig=")[2]
            for text in texts(raised.value):
                assert not [secret for secret in (wrong, ACCOUNT_KEY, signature) if secret in text], text
    right = {"account_name": ACCOUNT, "sas_token": service.token, "account_host": endpoint}
    assert zarrow.create_group(service.url("by-token.zarr"), storage_options=right).keys() == []


def test_anonymous_where_that_is_not_allowed(running: Callable[[str], Service]) -> None:
    for name, options in [("s3s-fs", {"client_kwargs": running("s3s-fs").options["client_kwargs"]})]:
        with pytest.raises(StorePermissionError, match="pass credentials"):
            zarrow.open(running(name).url("private.zarr"), storage_options={"anon": True, **options})


# A machine outside of the cloud: the metadata address accepts connections and never answers.
SILENT = """
    import json, socket, subprocess, sys, threading, time
    for words in (["link", "set", "lo", "up"], ["addr", "add", "169.254.169.254/32", "dev", "lo"]):
        subprocess.run(["ip", *words], check=True)
    listener = socket.create_server(("169.254.169.254", 80))
    taken = []

    def take():
        while True:
            taken.append(listener.accept())

    threading.Thread(target=take, daemon=True).start()
    import zarrow
    found = {}
    for url, options in json.loads(sys.argv[1]):
        taken.clear()
        begun = time.monotonic()
        try:
            zarrow.open(url, storage_options=options)
        except zarrow.ZarrowError as error:
            found[url] = [str(error), len(taken), time.monotonic() - begun]
    print(json.dumps(found))
"""


def isolated(program: str, *arguments: str) -> Any:
    """Return the output of a program in a separate network namespace."""
    own = ["unshare", "--user", "--map-root-user", "--net"]
    can = subprocess.run([*own, "ip", "link", "set", "lo", "up"], capture_output=True, text=True)
    if can.returncode != 0:
        pytest.skip(f"no network namespace can be made here: {can.stderr.strip()}")
    done = subprocess.run(
        [*own, sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_without_credentials_a_machine_is_asked_once() -> None:
    """For any number of concurrent documents; then the error names the option to pass."""
    urls = ["s3://bucket/a.zarr", "gs://bucket/a.zarr", "az://container/a.zarr"]
    options = [{}, {}, {"account_name": "somebody"}]
    found = isolated(SILENT, json.dumps(list(zip(urls, options, strict=True))))
    assert list(found) == urls
    for url, (text, count, _) in found.items():
        assert "no credentials were found" in text and '"anon": True' in text, text
        # The next one uses the same service, which is known not to answer.
        assert count == (1 if url == urls[0] else 0), (url, count)
