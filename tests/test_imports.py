"""Modules of a crate import each other in one direction, but for the circles in `import_circles.txt`.

Layers of the engine use only those before them, but for the imports in `upward_imports.txt`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from imports import Crate, Package, paths

CRATES = sorted((Path(__file__).parent.parent / "crates").iterdir())
ENGINE = CRATES[0].with_name("zarrow")
PACKAGE = CRATES[0].parent.parent / "python" / "zarrow"
LISTED = Path(__file__).with_name("import_circles.txt")
UPWARD = Path(__file__).with_name("upward_imports.txt")


def listed(crate: str) -> list[list[str]]:
    """Return the files of each listed circle of a crate."""
    lines = [line.split() for line in LISTED.read_text(encoding="utf-8").splitlines()]
    return [line[1:] for line in lines if line and line[0] == crate]


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_modules_form_no_circle_but_the_listed_ones(crate: Path) -> None:
    found = Crate(crate / "src").circles()
    allowed = [set(circle) for circle in listed(crate.name)]
    new = [circle for circle in found if not any(set(circle) <= known for known in allowed)]
    assert not new, f"modules import each other in a circle: {new}"
    stale = [circle for circle in listed(crate.name) if not any(set(some) <= set(circle) for some in found)]
    assert not stale, f"tests/import_circles.txt lists circles that are gone: {stale}"


def test_python_modules_form_no_circle() -> None:
    assert Package(PACKAGE).circles() == []


def test_layers_use_only_those_before_them() -> None:
    lines = UPWARD.read_text(encoding="utf-8").splitlines()
    allowed = {tuple(line.split(maxsplit=2)[:2]) for line in lines if line and not line.startswith("#")}
    assert Crate(ENGINE / "src").upward() == allowed


def test_circles_are_found(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    sources = {
        "lib.rs": "mod a; mod b; mod c; pub use a::A;",
        "a.rs": "use crate::b::{self, deep::{B as Other, more}};\n"
        "#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}",
        "b/mod.rs": "pub mod deep;",
        "b/deep.rs": "fn f() -> crate::A { super::super::c::g() }",
        "c.rs": "// use crate::a::A;\nuse std::fmt;",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert Crate(tmp_path).circles() == [["a.rs", "b/deep.rs"]]


def test_circles_of_python_are_found(tmp_path: Path) -> None:
    sources = {
        "__init__.py": "from package.a import f",
        "a.py": "from package.folder import b\nimport package",
        "folder/__init__.py": "",
        "folder/b.py": "def g():\n    import package.c",
        "c.py": "from package.a import f",
        "d.py": "import typing\nif typing.TYPE_CHECKING:\n    from package.e import E",
        "e.py": "from package.d import D",
    }
    (tmp_path / "package" / "folder").mkdir(parents=True)
    for name, text in sources.items():
        (tmp_path / "package" / name).write_text(text, encoding="utf-8")
    assert Package(tmp_path / "package").circles() == [["a.py", "c.py", "folder/b.py"]]


def test_use_trees_are_read() -> None:
    found = list(paths("crate::{a::{self, B}, c::D as E, *}"))
    assert found == [
        (("crate", "a"), "a"),
        (("crate", "a", "B"), "B"),
        (("crate", "c", "D"), "E"),
        (("crate", "*"), "*"),
    ]
