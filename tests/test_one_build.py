"""Rust is built once: the wheel takes the engine that the tests have built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def libraries(*arguments: str) -> dict[str, set[str]]:
    """Return the libraries that a cargo command builds: packages, with features and profile."""
    command = [
        "cargo",
        *arguments,
        "--release",
        "--locked",
        "--offline",
        "--unit-graph",
        "-Z",
        "unstable-options",
    ]
    # A stable cargo prints the plan of a build only with this.
    environment = os.environ | {
        "RUSTC_BOOTSTRAP": "1",
        "PYO3_CONFIG_FILE": str(ROOT / "crates/zarrow-python/pyo3-config.txt"),
        "PYO3_BUILD_EXTENSION_MODULE": "1",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, set[str]] = {}
    units: list[dict[str, Any]] = json.loads(done.stdout)["units"]
    for unit in units:
        if unit["mode"] == "build" and "lib" in unit["target"]["kind"]:
            build = json.dumps([unit["features"], unit["profile"]])
            found.setdefault(unit["pkg_id"], set()).add(build)
    return found


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")
def test_the_wheel_has_the_features_of_the_tests() -> None:
    """A library with other features is built again, and everything above it."""
    of_tests = libraries("test", "--workspace")
    of_wheel = libraries("build", "--package", "zarrow-python")
    shared = of_tests.keys() & of_wheel.keys()
    assert any("crates/zarrow#" in package for package in shared)
    twice = {package: (of_wheel[package], of_tests[package]) for package in shared}
    twice = {package: builds for package, builds in twice.items() if not builds[0] <= builds[1]}
    assert not twice, "features of the wheel and of the tests; state them in crates/zarrow-python/Cargo.toml"
