"""The table of habits: each line works, or says what to type."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import habits
import zarrow
from habits import Habit
from habits.names import arrays, libraries

PAGE = Path(__file__).parent.parent / "docs" / "habits.md"


@pytest.fixture(autouse=True)
def nothing_chosen() -> Iterator[None]:
    yield
    zarrow.set_missing(None)


def result(code: str, names: dict[str, Any]) -> Any:
    """Run all of the code, and give the value of the last expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "habit", "exec"), names)
    return (
        eval(compile(ast.Expression(last.value), "habit", "eval"), names)
        if isinstance(last, ast.Expr)
        else None
    )


def cases() -> Iterator[Any]:
    for source in habits.SOURCES:
        marks = [pytest.mark.torch] if source == "torch" else []
        for habit in habits.habits(source):
            yield pytest.param(habit, id=habit.name, marks=marks)


@pytest.mark.parametrize("habit", list(cases()))
def test_habit(habit: Habit, tmp_path: Path) -> None:
    names = libraries(habit.code) | arrays(tmp_path)
    if habit.message is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            assert habits.plain(result(habit.code, names)) == ast.literal_eval(str(habit.value))
        return
    # What warns and goes on says what to type, too.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", zarrow.ZarrowWarning)
        said = []
        try:
            result(habit.code, names)
        except Exception as error:
            said.append(str(error))
        said += [str(warning.message) for warning in caught]
    assert any(habit.message in text for text in said), said


@pytest.mark.parametrize("habit", habits.habits("rust"), ids=lambda habit: habit.code)
def test_habit_of_rust(habit: Habit) -> None:
    """The line stands in what `cargo test` runs."""
    text = (PAGE.parent.parent / str(habit.value)).read_text(encoding="utf-8")
    assert " ".join(habit.code.split()) in " ".join(text.split())


def test_the_page_is_made_of_the_same_lines() -> None:
    assert PAGE.read_text(encoding="utf-8") == habits.page(), "run `make habits`"


def test_there_are_two_hundred() -> None:
    assert sum(len(habits.habits(source)) for source in habits.SOURCES) >= 200
