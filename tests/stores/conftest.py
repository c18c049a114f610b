"""Services that run as long as the tests, and an environment without credentials."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stores.services import SERVICES, Service


@pytest.fixture(autouse=True)
def no_credentials_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Service]]:
    """Start each service at its first use; without its server the test is skipped."""
    folder = tmp_path_factory.mktemp("services")
    started: dict[str, Service] = {}

    def start(name: str) -> Service:
        if name not in started:
            try:
                started[name] = SERVICES[name](folder)
            except LookupError as reason:
                pytest.skip(str(reason))
        return started[name]

    yield start
    for service in started.values():
        service.stop()


@pytest.fixture(params=list(SERVICES))
def service(request: pytest.FixtureRequest, running: Callable[[str], Service]) -> Service:
    """Every service."""
    return running(request.param)


@pytest.fixture(params=[name for name, service in SERVICES.items() if service.can_write])
def writable(request: pytest.FixtureRequest, running: Callable[[str], Service]) -> Service:
    """Every writable service."""
    return running(request.param)


@pytest.fixture(
    params=[name for name, service in SERVICES.items() if service.can_write and service.has_conditions]
)
def conditional(request: pytest.FixtureRequest, running: Callable[[str], Service]) -> Service:
    """Each service with conditional puts, so that stored values can be changed."""
    return running(request.param)


@pytest.fixture(params=["moto", "s3s-fs"])
def s3(request: pytest.FixtureRequest, running: Callable[[str], Service]) -> Service:
    """Every S3 server."""
    return running(request.param)
