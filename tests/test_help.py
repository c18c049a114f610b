"""`help()`, `?` and signatures match the stubs."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import pydoc
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zarrow
from type_checkers import mypy
from zarrow import _zarrow
from zarrow.api import array_options

STUBS = Path(zarrow.__file__).parent

# Slots of the C API: Python writes their docstrings and signatures.
SLOTS = (types.WrapperDescriptorType, types.BuiltinFunctionType)

# Functions of modules that are imported when they are first looked at.
FUNCTIONS = ("convert", "diff", "digest", "pyramid", "repair", "verify")

MODULES = (
    "checks",
    "dask",
    "data",
    "files",
    "gpu",
    "io",
    "jobs",
    "ome",
    "ray",
    "stream",
    "xarray",
    "zarr_python",
)


# The members of stubs' private classes, which do not exist at run time.
PRIVATE = {
    node.name: node.body
    for path in STUBS.rglob("_*.pyi")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef) and node.name.startswith("_") and not hasattr(_zarrow, node.name)
}


def definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield each class, and each function that is not an overload. Members of a private base count as own."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            yield from definitions(node.body, f"{prefix}{node.name}.")
            for base in node.bases:
                yield from definitions(PRIVATE.get(ast.unparse(base), []), f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            marks = {ast.unparse(mark) for mark in node.decorator_list}
            if "overload" not in marks and not any(mark.endswith(".setter") for mark in marks):
                yield prefix + node.name, node
        elif isinstance(node, ast.If):
            yield from definitions(node.body, prefix)


def stubbed() -> list[tuple[str, Any]]:
    found = [
        (name, node)
        for path in sorted(STUBS.rglob("_*.pyi"))
        for name, node in definitions(ast.parse(path.read_text(encoding="utf-8")).body)
        if name.partition(".")[0] not in PRIVATE
    ]
    assert len(found) > 150
    return found


def at_run_time(name: str) -> Any:
    owner, _, member = name.rpartition(".")
    if not owner:
        return getattr(_zarrow, name)
    return inspect.getattr_static(getattr(_zarrow, owner), member)


def is_public(name: str) -> bool:
    return not any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


@pytest.mark.parametrize(("name", "node"), [pytest.param(*item, id=item[0]) for item in stubbed()])
def test_docstrings_and_parameters_are_those_of_the_stubs(name: str, node: Any) -> None:
    found = None
    with contextlib.suppress(AttributeError):  # such as `__buffer__`, which Python 3.11 does not know
        found = at_run_time(name)
    if found is None or (isinstance(found, SLOTS) and name.endswith("__")):
        assert name.endswith("__"), f"{name} is in the stubs only"
        return
    text = ast.get_docstring(node)
    if text is not None:
        assert inspect.getdoc(found) == text
    elif is_public(name) and not name.endswith("__"):
        pytest.fail(f"{name} has no docstring")
    is_property = any(ast.unparse(mark) == "property" for mark in getattr(node, "decorator_list", []))
    if isinstance(node, ast.FunctionDef) and not is_property and not name.endswith("__new__"):
        assert parameters(inspect.signature(found)) == parameters(stub_signature(node))


def stub_signature(node: ast.FunctionDef) -> inspect.Signature:
    """Return the signature that Python derives from the stub."""
    function = ast.FunctionDef(node.name, node.args, [ast.Pass()], [])
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    module = ast.fix_missing_locations(ast.Module([function], []))
    scope: dict[str, Any] = {}
    exec(compile(module, "stub", "exec"), scope)
    return inspect.signature(scope[node.name])


def parameters(signature: inspect.Signature) -> list[tuple[str, bool, Any]]:
    return [
        (parameter.name, parameter.kind == inspect.Parameter.KEYWORD_ONLY, parameter.default)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "$self", "cls")
    ]


def test_every_public_name_has_help() -> None:
    bare = []
    for name in zarrow.__all__:
        found = getattr(zarrow, name)
        if callable(found) and not inspect.getdoc(found):
            bare.append(name)
        if isinstance(found, type):
            bare += [
                f"{name}.{member}"
                for member, value in vars(found).items()
                if not member.startswith("_")
                and not inspect.getdoc(value)
                and not isinstance(value, types.MemberDescriptorType)  # a field, documented in the class
            ]
    assert bare == []


def test_help_shows_signatures_and_sections() -> None:
    read = pydoc.render_doc(zarrow.Array.read)
    assert "selection=None, *, out=None" in " ".join(read.split())
    for heading in ("Parameters", "Returns", "Raises", "Examples"):
        assert heading in read
    create = inspect.signature(zarrow.Group.create_array).parameters
    for name in ("name", "shape", "dtype", "chunks", "shards", "compressors", "overwrite"):
        assert name in create, create
    assert create["chunks"].default == "auto"
    assert "Examples" in pydoc.render_doc(zarrow.open)


def test_help_of_an_array_begins_with_its_own_methods() -> None:
    text = pydoc.render_doc(zarrow.Array, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    own, inherited = text.split("Methods inherited from _Unread:")
    assert "Refuse" not in own and "__add__" in inherited
    assert own.index("__getitem__") < own.index("append(") < own.index("read(") < own.index("write(")


def test_dir_lists_public_names() -> None:
    installed = [name for name in MODULES if name != "ray" or importlib.util.find_spec("ray")]
    assert dir(zarrow) == sorted({*zarrow.__all__, *FUNCTIONS, *installed})
    assert [name for name, _ in inspect.getmembers(zarrow)] == dir(zarrow)


def test_help_of_the_package_is_a_page() -> None:
    lines = pydoc.render_doc(zarrow, renderer=pydoc.plaintext).splitlines()  # type: ignore[attr-defined]
    page = lines[: lines.index("PACKAGE CONTENTS")]
    assert len(page) < 80 and all(len(line) <= 80 for line in page)
    assert len(lines) < 140
    assert zarrow.__doc__ is not None
    words = set(zarrow.__doc__.replace(",", " ").replace(":", " ").split())
    assert {*zarrow.__all__, *FUNCTIONS, *MODULES} - {"__version__"} <= words


def test_all_that_create_arrays_have_the_same_options() -> None:
    created, created_in = (
        {name: shown.default for name, shown in inspect.signature(function).parameters.items()}
        for function in (zarrow.create_array, zarrow.Group.create_array)
    )
    assert created_in.keys() - {"self", "name", "progress"} == array_options.OPTIONS
    assert {name: created[name] for name in array_options.OPTIONS} == {
        name: created_in[name] for name in array_options.OPTIONS
    }


def test_opened_nodes_have_their_types(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import zarrow\n"
        "reveal_type(zarrow.open('x', mode='w'))\n"
        "reveal_type(zarrow.open('x', mode='w', shape=3, dtype='i4'))\n"
        "reveal_type(zarrow.open('x'))\n"
        "reveal_type(zarrow.open_group('x'))\n"
        "reveal_type(zarrow.open_array('x', shape=3))\n"
        "reveal_type(zarrow.zeros(3, chunks=True))\n"
        "reveal_type(zarrow.open('x')['name'][0:10])\n"
        "zarrow.open('x', shapes=3)\n"
    )
    found = mypy(program)
    types = [
        line.split('"')[1].replace("zarrow.arrays._array.", "").replace("zarrow.groups._group.", "")
        for line in found
        if "note: Revealed" in line
    ]
    assert types == [
        "Group",
        "Array",
        "zarrow.api.typed.Node | Any",
        "Group",
        "Array",
        "Array",
        "zarrow.api.typed.Elements | Any",
    ]
    wrong = [line for line in found if "program.py:" in line and ": error:" in line]
    assert wrong and all("program.py:9:" in line for line in wrong)
