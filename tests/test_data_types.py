"""Each cell of docs/data-types.md is proven, and the page says what was proven."""

import pytest

from data_types.cells import COLUMNS, TORCH, prove
from data_types.page import PAGE, Rows, load, render
from data_types.types import CASES, DataTypeCase

# Libraries warn of types that they do not know.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def said() -> Rows:
    """What the page says."""
    return load(PAGE.read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_page_says_what_was_proven(case: DataTypeCase, said: Rows) -> None:
    columns = [column for column in COLUMNS if column != TORCH]
    proven = prove(case, columns)
    assert proven == {column: said[case.name][column] for column in columns}, "make data-types"


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_page_says_what_pytorch_does(case: DataTypeCase, said: Rows) -> None:
    assert prove(case, [TORCH])[TORCH] == said[case.name][TORCH], "make data-types"


def test_the_page_has_nothing_else(said: Rows) -> None:
    assert list(said) == [case.name for case in CASES]
    assert render(said) == PAGE.read_text(), "make data-types"
