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

DOCS = Path(__file__).parent.parent / "docs"
pytestmark = pytest.mark.small_files


@pytest.fixture(autouse=True)
def nothing_chosen() -> Iterator[None]:
    yield
    zarrow.set_missing(None)


def result(code: str, names: dict[str, Any]) -> Any:
    """Run the code, and return the value of the last expression."""
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
    # Code that only warns must also say what to type.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", zarrow.ZarrowWarning)
        said = []
        try:
            result(habit.code, names)
        except Exception as error:
            said.append(str(error))
        said += [str(warning.message) for warning in caught]
        said = [text.replace(str(tmp_path), "folder") for text in said]
    assert any(habit.message in text for text in said), said


@pytest.mark.parametrize("habit", habits.habits("rust"), ids=lambda habit: habit.code)
def test_habit_of_rust(habit: Habit) -> None:
    """The line is in a file that `cargo test` runs."""
    text = (DOCS.parent / str(habit.value)).read_text(encoding="utf-8")
    assert " ".join(habit.code.split()) in " ".join(text.split())


@pytest.mark.parametrize("page", habits.PAGES)
def test_the_pages_are_made_of_the_same_lines(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == habits.page(page), "run `make habits`"


def test_there_are_six_hundred() -> None:
    assert sum(len(habits.habits(source)) for source in habits.SOURCES) >= 600


@pytest.mark.parametrize(
    "code",
    [
        "array.shuffel_all",
        "array.samples_of",
        "root.obs_names",
        "root.n_obs",
        "zarrow.tstore",
        "array.calibrate",
    ],
)
def test_a_name_far_from_all_others_has_no_hint(code: str, tmp_path: Path) -> None:
    with pytest.raises(AttributeError) as raised:
        eval(code, {**arrays(tmp_path), "zarrow": zarrow})
    assert str(raised.value).endswith(repr(code.partition(".")[2]))
