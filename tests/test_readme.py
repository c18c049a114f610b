"""The README's first program runs with only zarrow and NumPy installed, outside of the source tree."""

from __future__ import annotations

import re
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an environment with only the installed zarrow and NumPy."""
    folder = tmp_path_factory.mktemp("bare") / "environment"
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    import numpy

    import zarrow

    for package in (numpy, zarrow):
        installed = Path(package.__file__).parent
        for part in installed.parent.glob(f"{installed.name}*"):
            (packages / part.name).symlink_to(part)
    return folder / "bin" / "python"


def run(python: Path, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-I", "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_first_program_runs_from_the_installation(bare_python: Path, tmp_path: Path) -> None:
    program = README.split("```python\n")[1].split("```")[0]
    lines = program.splitlines()
    [shown] = re.findall(r"print\(.*\)  # (.*)", program)
    done = run(bare_python, "\n".join(line for line in lines if ".torch()" not in line), tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, shown), done.stderr
    [last] = [line for line in lines if ".torch()" in line]
    for call in re.findall(r"july\.\w+\(\)", last):
        program = f"import zarrow; july = zarrow.open('air.zarr')['turbidity'][1]; {call}"
        done = run(bare_python, program, tmp_path)
        assert "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr, done.stderr


def test_the_table_of_requirements_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: "".join(needs) for name, needs in project["optional-dependencies"].items()}
    rows = re.findall(r"(?m)^\| .* \| (\S+) ([\d.]+) \| `?([\w-]*)`? ?\|$", GUIDE)
    assert len(rows) == 6
    for name, version, extra in rows:
        needs = extras[extra] if extra else "".join(project["dependencies"])
        assert needs == f"{name.lower().replace('pytorch', 'torch')}>={version}"
