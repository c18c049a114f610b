"""`import zarrow` imports nothing but zarrow."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import zarrow

NAMES = ("getitem", "setitem", "delitem", "contains", "iter", "eq", "ne", "lt", "le", "gt", "ge")
SLOTS = {f"__{name}__" for name in NAMES}
STUBS = Path(zarrow.__file__).parent.rglob("_*.pyi")


def test_nothing_heavy_is_imported_and_no_thread_is_started():
    program = "import sys, zarrow, os; print(*sys.modules); print(len(os.listdir('/proc/self/task')))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules, threads = finished.stdout.splitlines()
    assert threads == "1"
    heavy = {
        "numpy",
        "torch",
        "jax",
        "pyarrow",
        "polars",
        "zarr",
        "ml_dtypes",
        "json",
        "argparse",
        "urllib",
        "inspect",
        "pathlib",
        "re",
        "shutil",
    }
    assert not heavy & set(modules.split()) and "zarrow._zarrow" in modules.split()


def test_everything_public_is_named():
    assert sorted(zarrow.__all__) == zarrow.__all__
    assert all(hasattr(zarrow, name) for name in zarrow.__all__)


def test_stubs_match_the_module():
    """The first sentence of every docstring is the same in an editor and in `help`."""
    seen = 0
    for node in (node for stub in STUBS for node in ast.parse(stub.read_text()).body):
        named = isinstance(node, ast.ClassDef | ast.FunctionDef) and hasattr(zarrow, node.name)
        if named and ast.get_docstring(node):
            members = [(getattr(zarrow, node.name), node)]
            if isinstance(node, ast.ClassDef):
                members += [
                    (getattr(members[0][0], member.name), member)
                    for member in node.body
                    # Slots such as `__getitem__` have Python's text.
                    if isinstance(member, ast.FunctionDef) and member.name not in SLOTS
                ]
            for member, stub in members:
                text = ast.get_docstring(stub)
                if text is not None:
                    assert member.__doc__.splitlines()[0] == text.splitlines()[0], stub.name
                    seen += 1
    assert seen > 90


def test_io_is_imported_on_first_access():
    program = (
        "import sys, zarrow; assert 'io' in dir(zarrow) and 'zarrow.io' not in sys.modules\n"
        "print(zarrow.io.to_dlpack.__module__, hasattr(zarrow, 'nothing'))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == ["zarrow.io", "False"]
