"""`python tests/stubtest.py`: the stubs say what the compiled module has, by mypy's `stubtest`.

Each class has a stub of its own, `_array.pyi` for Array, while at run time all of them are in
`zarrow._zarrow`. So that `stubtest` finds them, each stub gets a module that has its class.
"""

import sys
from pathlib import Path
from types import ModuleType

from mypy import stubtest

import zarrow

ROOT = Path(__file__).parent.parent

for stub in Path(zarrow.__file__).parent.glob("_*.pyi"):
    name = "".join(word.capitalize() for word in stub.stem.split("_"))
    if name in zarrow.__all__ or name == "DeviceTensor":  # public as zarrow.gpu.Tensor
        module = ModuleType(f"zarrow.{stub.stem}")
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
