"""`python tests/stubtest.py` compares the stubs with the compiled module, by mypy's `stubtest`.

Each class has a separate stub, `arrays/_array.pyi` for Array, but at run time all classes are in
`zarrow._zarrow`. So each stub gets a module with its class or function, where `stubtest` finds it.
"""

import sys
from pathlib import Path
from types import ModuleType

from mypy import stubtest

import zarrow

ROOT = Path(__file__).parent.parent
PACKAGE = Path(zarrow.__file__).parent

for stub in PACKAGE.rglob("_*.pyi"):
    if stub.stem == "_zarrow":
        continue
    module = ModuleType(".".join(["zarrow", *stub.relative_to(PACKAGE).with_suffix("").parts]))
    for name in (stub.stem[1:], "".join(word.capitalize() for word in stub.stem.split("_"))):
        if hasattr(zarrow._zarrow, name):  # not a base of stubs alone
            setattr(module, name, getattr(zarrow._zarrow, name))
    sys.modules[module.__name__] = module

options = stubtest.parse_options(
    [
        "zarrow",
        "--mypy-config-file",
        str(ROOT / "pyproject.toml"),
        "--allowlist",
        str(ROOT / "tests" / "stubtest_allowlist.txt"),
        "--ignore-unused-allowlist",
    ]
)
sys.exit(stubtest.test_stubs(options))
