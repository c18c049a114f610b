"""Type checkers accept every Python example of the pages, and find misspelt names."""

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path

import pytest

from type_checkers import mypy, pyright

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Names that the text of a page introduces, and libraries without types.
BEGINNING = """\
import asyncio
import concurrent.futures
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import zarrow
from zarrow import data

array: zarrow.Array
buffer: npt.NDArray[Any]
corners: list[tuple[int, int]]
crops: list[tuple[slice, slice]]
field: npt.NDArray[Any]
forecast: data.Plan
heights: npt.NDArray[Any]
invert: Callable[..., Any]
mask: npt.NDArray[np.bool_]
more: npt.NDArray[Any]
other: zarrow.Group
plan: data.Plan
root: zarrow.Group
stations: zarrow.Array
temperature: zarrow.Array
train: Callable[..., None]
BatchSampler: Any
DataLoader: Any
RandomSampler: Any
more_rows: Any
numcodecs: Any
pa: Any
table: Any
torch: Any
x: Any
zarr: Any
"""

# Strict, except for functions of the examples without annotations, and for libraries without types.
OPTIONS = [
    "--strict",
    "--allow-incomplete-defs",
    "--allow-subclassing-any",
    "--allow-untyped-calls",
    "--allow-untyped-defs",
    "--ignore-missing-imports",
    "--config-file=",
]

# Rules of pyright that examples may break: missing libraries, and names of a loop after the loop.
ALLOWED = ("reportMissingImports", "reportPossiblyUnbound", "reportPossiblyUnboundVariable")

# Errors that a type checker must find: one on each line.
WRONG = """\
zarrow.opn("x")
zarrow.open("x").shpae
zarrow.open("x")["y"].shpae
zarrow.open_array("x").keys()
zarrow.open_group("x").shape
zarrow.open_array("x", mode="read")
zarrow.open_array("x")[0].nunpy()
zarrow.open_array("x").read(mapped=True)
zarrow.open_array("x").read().nunpy()
zarrow.read_many([zarrow.open_array("x")]).nunpy()
zarrow.open_array("x").read(device="cuda").nunpy()
zarrow.open_array("x").read(out=bytearray()).nunpy()
zarrow.create_array("x", shapes=3, dtype="f4")
zarrow.gpu.is_availabel()
zarrow.asarray([1]).nunpy()
zarrow.open_group("x").create_array("y", shape=3, dtype="f4")[...].nunpy()
zarrow.load("x").nunpy()
zarrow.copy("x", "y").shpae
"""

# Programs that type checkers must accept.
RIGHT = """\
from typing import Any, assert_type
import numpy as np
import numpy.typing as npt
import zarrow
root = zarrow.open_group("x")
root["a"].shape, root["a"][0:10].numpy(), root["b"].keys(), root["b"]["c"][...], root["a"][0].mask
node = root["a"]
if isinstance(node, zarrow.Array):
    array: zarrow.Array = node
else:
    group: zarrow.Group = node
for name, member in root.items():
    member.attrs["units"] = name
def rows(array: zarrow.Array) -> npt.NDArray[Any]:
    return np.asarray(array[0:10])
rows(root["a"]), float(root["a"][0, 0]), np.mean(root["a"][...]), memoryview(root["a"][...])
found = root["a"][...]
if isinstance(found, zarrow.MaskedTensor):
    found.filled(0)
kind = root["kind"].read()
(kind == "T"), kind[0], kind.codes
zarrow.read_many([(root["a"], np.s_[0:3])]).torch()
memory = bytearray(8)
array = zarrow.open_array("x")
assert_type(array.read(0, out=memory), bytearray)
assert_type(array.vindex.read([0], out=memory, device="cuda"), bytearray)
assert_type(zarrow.read_many([(array, 0)], out=memory), bytearray)
assert_type(array.read(device="cuda:0"), zarrow.gpu.Tensor)
assert_type(array.oindex.read([0], device=0, decompress="auto"), zarrow.gpu.Tensor)
async def awaited() -> None:
    assert_type(await array.read_async(0, out=memory), bytearray)
    assert_type(await array.read_async(0, device="cuda:0"), zarrow.gpu.Tensor)
    assert_type(await zarrow.read_many_async([(array, 0)], out=memory), bytearray)
    (await array.read_async(0)).numpy(), (await zarrow.read_many_async([array])).numpy()
loaded = zarrow.load("x")
loaded["a"].numpy(), loaded.numpy(), loaded + 1, loaded.obs
zarrow.copy("x", "y")[0], zarrow.copy("x", "y").shape
if isinstance(loaded, dict):
    loaded.items()
array.read(device="cpu").numpy(), array.read(out=None).numpy(), root["a"].read(out=memory).extend(b"")
"""


def programs() -> dict[str, str]:
    """Join the examples of each page into one program. Each name has one type in it."""
    found = {}
    for page in PAGES:
        blocks = re.findall(r"(?ms)^( *)```python\n(.*?)^ *```", page.read_text(encoding="utf-8"))
        lines = []
        for number, (_, text) in enumerate(blocks):
            block = textwrap.dedent(text)
            if ">>>" in block:
                block = "".join(example.source for example in doctest.DocTestParser().get_examples(block))
            kind = "async def" if re.search(r"(?m)^(async|await|\w.*\bawait\b)", block) else "def"
            lines += [f"{kind} example_{number}() -> None:", textwrap.indent(block, "    ")]
        if blocks:
            # A page imports a module once, for all its examples.
            imported = re.findall(r"(?m)^ +(import zarrow\.\w+)$", "\n".join(lines))
            found[page.name] = "\n".join([*sorted(set(imported)), BEGINNING, *lines])
    return found


def strictly(programs: list[Path]) -> list[str]:
    """Return the errors of mypy."""
    return [line for line in mypy(*OPTIONS, *programs) if " error: " in line]


def numbered(errors: list[str]) -> set[int]:
    return {int(line.split(":")[1]) for line in errors}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write one file per program."""
    folder = tmp_path_factory.mktemp("programs")
    texts = {page.replace(".", "_").replace("-", "_"): text for page, text in programs().items()}
    texts |= {"right": RIGHT, "wrong": "import zarrow\n" + WRONG}
    found = {name: folder / f"{name}.py" for name in texts}
    for name, path in found.items():
        path.write_text(texts[name], encoding="utf-8")
    return found


def test_mypy_passes_the_examples_and_finds_mistakes(written: dict[str, Path]) -> None:
    assert {"README_md", "async_md", "gpu_md", "stores_md"} <= written.keys()
    errors = strictly([path for name, path in written.items() if name != "wrong"])
    assert errors == []
    assert numbered(strictly([written["wrong"]])) == set(range(2, 2 + len(WRONG.splitlines())))


def test_pyright_passes_the_examples_and_finds_mistakes(written: dict[str, Path]) -> None:
    places = {
        (Path(found["file"]).stem, found["range"]["start"]["line"]): found["message"]
        for found in pyright(written["right"].parent)
        if found["severity"] == "error" and found.get("rule") not in ALLOWED
    }
    assert {place: text for place, text in places.items() if place[0] != "wrong"} == {}
    assert {line for _, line in places} == set(range(1, 1 + len(WRONG.splitlines())))
