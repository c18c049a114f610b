"""The hierarchy that two hold open and change in turn, in a bucket, and as an archive at the end.

30 sequences of 30 steps, or as many as `ZARROW_STATE_MACHINE` says.
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
from stores.services import S3s, Service
from test_state_machine import Hierarchy

pytestmark = pytest.mark.stores

numbers = itertools.count()


class InABucket(Hierarchy):
    """Two groups of one prefix. What s3s-fs has is a folder too, which zarr-python reads."""

    def __init__(self, service: S3s) -> None:
        super().__init__()
        self.service = service

    def make_store(self, in_memory: bool) -> Any:
        shutil.rmtree(self.folder)
        self.path = f"machine/{next(numbers)}"
        self.folder = self.service.local(self.path)
        return zarrow.CloudStore(self.service.url(self.path), self.service.options)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            archive = Path(shutil.make_archive(f"{self.folder}", "zip", self.folder))
            self.check_below(zarrow.open(archive))
        super().teardown()


def test_a_hierarchy_in_a_bucket(running: Callable[[str], Service]) -> None:
    count = int(os.environ.get("ZARROW_STATE_MACHINE", "30"))
    chosen = settings(max_examples=count, stateful_step_count=30, deadline=None, database=None)
    service = running("s3s-fs")
    assert isinstance(service, S3s)
    run_state_machine_as_test(lambda: InABucket(service), settings=chosen)
