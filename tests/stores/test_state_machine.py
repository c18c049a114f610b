"""The hierarchy with two open handles that change it in turn, in a bucket, and as an archive at the end.

Runs 15 sequences of 30 steps on each service, or `ZARROW_STATE_MACHINE` sequences.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import zarrow
from stores.services import Service
from test_state_machine import Hierarchy

pytestmark = pytest.mark.stores

numbers = itertools.count()


class InABucket(Hierarchy):
    """Two groups of one prefix, downloaded at the end for zarr-python, and packed."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service

    def make_store(self, in_memory: bool) -> Any:
        self.path = f"machine/{next(numbers)}"
        return zarrow.CloudStore(self.service.url(self.path), self.service.options)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.service.download(self.path, self.folder)
            archive = Path(shutil.make_archive(f"{self.folder}", "zip", self.folder))
            self.check_below(zarrow.open(archive))
            archive.unlink()
        super().teardown()


# In s3s-fs an empty prefix stays as a folder, and requesting it as a key fails with 500.
@pytest.mark.parametrize("name", ["moto", "azurite", "google"])
def test_a_hierarchy_in_a_bucket(name: str, running: Callable[[str], Service]) -> None:
    count = int(os.environ.get("ZARROW_STATE_MACHINE", "15"))
    chosen = settings(max_examples=count, stateful_step_count=30, deadline=None, database=None)
    service = running(name)
    run_state_machine_as_test(lambda: InABucket(service), settings=chosen)
