"""Runs the examples in docstrings (of the stubs too) and in the pages."""

import ast
import doctest
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each documented name of a source file with its docstring."""

    def visit(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield name, text
        for child in ast.iter_child_nodes(node):
            yield from visit(child, f"{name}.{getattr(child, 'name', '')}".rstrip("."))

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), path.name)


def examples() -> Iterator[doctest.DocTest]:
    parser = doctest.DocTestParser()
    sources = [
        *sorted((ROOT / "python").rglob("*.py*")),
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "README.md",
    ]
    for path in sources:
        if path.suffix in {".py", ".pyi"}:
            texts = docstrings(path)
        elif path.suffix == ".md":
            texts = iter([(path.name, path.read_text(encoding="utf-8"))])
        else:
            continue
        for name, text in texts:
            example = parser.get_doctest(text, {}, name, str(path), 0)
            if example.examples:
                yield example


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_example(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "zarrow.ray" in "".join(part.source for part in example.examples):
        pytest.importorskip("ray")
        monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
        warnings.simplefilter("ignore")  # Ray warns of its own settings
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    result = runner.run(example, out=report.append)
    assert result.failed == 0, "".join(report)
