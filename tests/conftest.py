"""Shared fixtures, a clean environment, and random cases (`ZARROW_TEST_SEED` draws others)."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import settings

import anndata_store
import handwritten
import small_files
from zarrow.arrays import missing

SEED = os.environ.get("ZARROW_TEST_SEED")

# Defaults for the settings of each test. Cases are drawn by a digest of the test's source, so that they stay
# the same, or by the seed.
settings.register_profile("zarrow", derandomize=SEED is None, database=None, deadline=None, print_blob=True)
settings.load_profile("zarrow")


# Files of tests that take longest.
LONGEST = {
    "test_anndata_objects",
    "test_anndata_replaced",
    "test_clone",
    "test_jobs_conflicts",
    "test_oracle",
    "test_program_processes",
    "test_selection",
    "test_state_machine",
    "test_stream_cloud",
    "test_node_batches_cloud",
    "test_xarray_writing",
    "test_xarray_writing_cloud",
    "test_zarr_pipeline_oracle",
}

# Without this, the first test that stores missing elements would get the process's only warning.
missing._has_warned = True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Pass the seed to Hypothesis before it looks for one, and reset inherited state.

    - Signals: a script's background jobs ignore SIGINT and SIGQUIT, and so would every child of a test.
    - Variables that redirect requests away from a test's server, or change credentials.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    services = ("AWS_", "GOOGLE_", "AZURE_", "ZARROW_NUM_THREADS")
    for name in list(os.environ):
        if name.startswith(services) or name.lower().endswith("_proxy"):
            del os.environ[name]
    if SEED is not None:
        config.option.hypothesis_seed = int(SEED)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first: at the end, one process would run them while the others wait."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


def pytest_collection_finish() -> None:
    """Exempt the thousands of collected tests from each later garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the interpreter collect everything at its exit."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def example_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the store `data.zarr` of the documentation's examples."""
    folder = tmp_path_factory.mktemp("example") / "data.zarr"
    root = zarr.open_group(folder, mode="w")
    days, rows, columns = 48, 6, 8
    temperature = root.create_array("temperature", shape=(days, rows, columns), chunks=(24, 6, 8), dtype="f4")
    temperature[:] = np.arange(days * rows * columns).reshape(days, rows, columns)
    root.create_array("station", shape=(3,), dtype=str)[:] = np.array(["Oslo", "Rome", "Quito"])
    root.create_array("model/pressure", shape=(2, 2), dtype="f8")
    values, at_sea = np.arange(1, 5, dtype=np.int16), np.array([False, True, False, False])
    handwritten.masked_tensor(folder / "turbidity_on_land", values, at_sea)
    handwritten.masked_variable(folder / "nickname", ["Tigerstaden", None, "Luz de América"])
    anndata_store.cells(zarr.create_group(folder.parent / "cells.zarr"))
    return folder


@pytest.fixture(scope="session")
def memory_folder() -> Iterator[Path | None]:
    """Make a folder in memory for the tests of this process."""
    memory = small_files.memory()
    if memory is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tests-", dir=memory, ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Replace the folder by one in memory for tests with the mark `small_files`."""
    marked = request.node.get_closest_marker("small_files") is not None
    memory: Path | None = request.getfixturevalue("memory_folder") if marked else None
    if memory is None:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def dask_processes() -> Iterator[ProcessPoolExecutor]:
    """Start processes once, which dask would start and end in each computation."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(params=["synchronous", "threads", "processes"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test under each of dask's schedulers."""
    import dask

    name: str = request.param
    pool = request.getfixturevalue("dask_processes") if name == "processes" else None
    with dask.config.set(scheduler=name, pool=pool):
        yield name


class QuietHandler(SimpleHTTPRequestHandler):
    """Python's web server, without a log."""

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    """Serve the folder `web` of the test, and return the URL."""
    (tmp_path / "web").mkdir()
    handler = functools.partial(QuietHandler, directory=str(tmp_path / "web"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def documented_store(request: pytest.FixtureRequest) -> None:
    """Put the store into the examples' working folder."""
    if request.module.__name__ == "test_docs":
        store, folder = request.getfixturevalue("example_store"), request.getfixturevalue("tmp_path")
        shutil.copytree(store, folder / "data.zarr")
        shutil.copytree(store.parent / "cells.zarr", folder / "cells.zarr")
