"""The machine and the versions of a measurement."""

import hashlib
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from benches.peers import PEERS


def describe() -> dict[str, str | int]:
    """Describe the machine."""
    processor = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    huge_pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "processor": processor[1] if processor else platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "huge_pages": huge_pages.read_text().strip() if huge_pages.exists() else "none",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of every peer."""
    packages = sorted({*(peer.package for peer in PEERS.values()), "pyarrow", "torch"})
    return {"Python": platform.python_version()} | {package: version_of(package) for package in packages}


def version_of(package: str) -> str:
    """Return the version of an importable package."""
    try:
        return version(packages_distributions().get(package, [package])[0])
    except PackageNotFoundError:
        return "not installed"


def build() -> str:
    """Identify the build of zarrow by its compiled module, because versions do not change between builds."""
    import zarrow._zarrow

    return hashlib.sha256(Path(zarrow._zarrow.__file__).read_bytes()).hexdigest()[:12]
