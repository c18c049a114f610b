"""The PTX in the tree matches its kernels, and compiles for current GPUs."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.kernels

CRATE = Path(__file__).parents[2] / "crates" / "zarrow-cuda"
KERNELS = sorted(
    name
    for path in (CRATE / "kernels").glob("*.cuh")
    for name in re.findall(r"^KERNEL (\w+)\(", path.read_text("utf-8"), re.MULTILINE)
)


@pytest.fixture(scope="module")
def compile_module() -> ModuleType:
    """Load the script of `make ptx`."""
    spec = importlib.util.spec_from_file_location("compile_kernels", CRATE / "kernels" / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def compiler(compile_module: ModuleType) -> Any:
    """Return NVRTC of `requirements/nvrtc.lock`, from the folder `ZARROW_NVRTC`."""
    return compile_module.Compiler(Path(os.environ["ZARROW_NVRTC"]))


def test_ptx_is_that_of_the_kernels(compile_module: ModuleType, compiler: Any) -> None:
    """Byte for byte; otherwise run `make ptx`."""
    ptx, _ = compiler.compile(compile_module.ARCHITECTURE)
    assert ptx == (CRATE / "ptx" / "zarrow.ptx").read_bytes(), "run `make ptx`"


def test_ptx_is_accepted_by_drivers_since_cuda_12() -> None:
    text = (CRATE / "ptx" / "zarrow.ptx").read_text("utf-8")
    assert re.findall(r"^\.(?:version|target) (.*)$", text, re.MULTILINE) == ["8.0", "sm_70"]
    assert sorted(re.findall(r"\.visible \.entry (\w+)\(", text)) == KERNELS
    # No path of the building machine, and no thread-local memory, which is slow.
    assert "/" + "home" not in text
    assert ".local" not in text


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_kernels_compile_for_gpus_without_spilling_registers(compiler: Any, architecture: str) -> None:
    cubin, log = compiler.compile(architecture, "--ptxas-options=-v")
    assert cubin.startswith(b"\x7fELF")
    memory = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert memory == [("0", "0", "0")] * len(KERNELS)
