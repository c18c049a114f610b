"""The suites, and the code that they test."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass, field
from pathlib import Path

PIPELINE = "ZARR_CODEC_PIPELINE__PATH"


@dataclass(frozen=True)
class Suite:
    """The tests of one library."""

    name: str
    """The name of its section in `differences.toml`."""
    arguments: tuple[str, ...]
    """Arguments for pytest."""


@dataclass(frozen=True)
class Subject:
    """The code that a suite tests."""

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of the environment."""
    imports: str = ""
    """Module to import first."""
    call: str = ""
    """Function of this module to call."""


STOCK = Subject("stock")
SUBJECTS = {
    subject.name: subject
    for subject in (
        STOCK,
        Subject(
            "pipeline",
            {PIPELINE: "zarrow.zarr_python.CodecPipeline", "ZARR_NDBUFFER": "zarrow.zarr_python.NDBuffer"},
        ),
        Subject("fused", {PIPELINE: "zarr.core.codec_pipeline.FusedCodecPipeline"}),
        Subject("zarrs", {PIPELINE: "zarrs.ZarrsCodecPipeline"}, imports="zarrs"),
        Subject("engine", imports="zarrow.xarray", call="enable"),
    )
}

# They test no arrays: documentation, releases, commands. `test_synchronous.py` compares docstrings.
LEFT_OUT = (
    "benchmarks",
    "test_api/test_synchronous.py",
    "test_cli",
    "test_docs.py",
    "test_examples.py",
    "test_regression/scripts",
    "test_version_derivation.py",
)


def zarr(folder: Path) -> Suite:
    """Return the suite of zarr-python, unpacked in `folder`, as a section for each minor version."""
    version = ".".join(importlib.metadata.version("zarr").split(".")[:2])
    tests = folder / "tests"
    ignored = (f"--ignore={tests / path}" for path in LEFT_OUT)
    # Its own options need plugins for benchmarks.
    return Suite(f"zarr-{version}", (str(tests), "--override-ini=addopts=", *ignored))


def xarray() -> Suite:
    """Return the tests of xarray's Zarr backend, from its wheel."""
    spec = importlib.util.find_spec("xarray")
    assert spec and spec.origin
    folder = Path(spec.origin).parent.parent
    apart = ("--config-file=/dev/null", f"--rootdir={folder}", "--import-mode=importlib")
    files = (f"{folder}/xarray/tests/test_backends{part}.py" for part in ("", "_datatree"))
    return Suite("xarray", (*files, "-k", "zarr", *apart))
