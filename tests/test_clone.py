"""Runs the suite in a clone with an unusual path, as a background job of a user with unusual settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# The name of the project, a space, letters beyond ASCII, and more than 200 characters.
PLACE = Path("a b", "größe", *["deep" * 10] * 5, "zarrow")
# As in `make test`.
SELECTED = ["-m", "not torch and not stores and not kernels and not gpu"]
# Quick tests that depend on paths, signals, users, locales and time zones.
QUICK = [
    "tests/test_architecture.py",
    "tests/test_array.py",
    "tests/test_cli.py",
    "tests/test_docs.py",
    "tests/test_errors.py",
    "tests/test_group.py",
    "tests/test_hostile_paths.py",
    "tests/test_import_faults.py",
    "tests/test_in_time.py",
    "tests/test_opening_errors.py",
    "tests/test_store_configuration.py",
    "tests/test_store_failures.py",
    "tests/test_cloud.py::test_control_c_stops_a_request_that_hangs",
    "tests/test_write.py::test_a_folder_that_cannot_be_written",
]


def link(source: str, target: str) -> None:
    """Link a file, or copy it from another file system."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


@pytest.fixture
def clone() -> Iterator[Path]:
    """Clone the working tree, with its environment in the path that `make` would use.

    The clone is in this tree's build folder, so that links can be made instead of copies of gigabytes.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    ROOT.joinpath("build").mkdir(exist_ok=True)
    outermost = Path(tempfile.mkdtemp(prefix="clone-", dir=ROOT / "build"))
    folder = outermost / PLACE
    for file in filter(None, files):
        if (ROOT / file).exists():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            link(str(ROOT / file), str(folder / file))
    environment = folder / "build" / "venv"
    shutil.copytree(sys.prefix, environment, symlinks=True, copy_function=link)
    # The scripts contain the interpreter's path.
    for script in environment.joinpath("bin").iterdir():
        if script.is_file() and not script.is_symlink() and script.read_bytes().startswith(b"#!"):
            _, _, body = script.read_text().partition("\n")
            script.unlink()
            script.write_text(f"#!/bin/sh\n'''exec' '{environment}/bin/python' \"$0\" \"$@\"\n' '''\n{body}")
            script.chmod(0o755)
    yield folder
    shutil.rmtree(outermost)


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="no git checkout")
def test_the_suite_passes_in_any_clone(clone: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "t m p"
    scratch.mkdir()
    unusual = {
        "TMPDIR": str(scratch),
        "TZ": "Asia/Kathmandu",
        "LANG": "tr_TR.UTF-8",
        "LC_ALL": "C",
        "COLUMNS": "40",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "USER": "",
        "LOGNAME": "",
        "AWS_PROFILE": "missing",
        "AWS_SECRET_ACCESS_KEY": "wrong",
        "http_proxy": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "ZARROW_NUM_THREADS": "1",
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
        "HOME": str(scratch / "missing"),
    }

    as_a_background_job = ["sh", "-c", 'trap "" INT QUIT; umask 077; exec "$@"', "sh"]
    python = clone / "build/venv/bin/python"
    for arguments in (["--collect-only", "--quiet", *SELECTED], ["--quiet", *SELECTED, *QUICK]):
        finished = subprocess.run(
            [*as_a_background_job, python, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=clone,
            env=os.environ | unusual,
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-2000:]
