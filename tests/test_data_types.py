"""Verifies each cell of docs/data-types.md."""

import re
from pathlib import Path

import pytest

from data_types.cells import COLUMNS, TORCH, prove
from data_types.page import PAGE, Rows, load, render
from data_types.types import CASES, PLAIN, DataTypeCase

# Libraries warn about unknown types.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def said() -> Rows:
    """Return the rows of the page."""
    return load(PAGE.read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_page_matches_every_cell(case: DataTypeCase, said: Rows) -> None:
    columns = [column for column in COLUMNS if column != TORCH]
    proven = prove(case, columns)
    assert proven == {column: said[case.name][column] for column in columns}, "make data-types"


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_page_matches_pytorchs_column(case: DataTypeCase, said: Rows) -> None:
    assert prove(case, [TORCH])[TORCH] == said[case.name][TORCH], "make data-types"


def test_the_page_has_nothing_else(said: Rows) -> None:
    assert list(said) == [case.name for case in CASES]
    assert render(said) == PAGE.read_text(), "make data-types"


TABLES = Path(__file__).parents[1] / "crates" / "zarrow-array" / "src" / "dtype"
# A row of the page for each kind of type.
KINDS = {
    "Number": "int8",
    "DateTime64": "datetime64[ns]",
    "TimeDelta64": "timedelta64[ns]",
    "FixedLengthUtf32": "fixed-length UTF-32",
    "NullTerminatedBytes": "null-terminated bytes",
    "RawBytes": "raw bytes",
    "String": "string",
    "Bytes": "bytes",
    "Struct": "structure",
    "Optional": "optional int32",
}


def test_the_page_has_every_type() -> None:
    """Check each number of the Rust table, and each other kind of type."""
    source = (TABLES / "number_names.rs").read_text()
    rows = re.search(r"^numbers! \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL)
    assert rows
    numbers = re.findall(r'^    \w+ +"(\w+)"', rows[1], re.MULTILINE)
    assert len(numbers) == len(re.findall(";", rows[1].partition("\n")[2])) > 40
    assert set(numbers) <= {case.name for case in PLAIN}
    kinds = re.search(
        r"^pub enum DataType \{\n(.*?)^\}", (TABLES / "mod.rs").read_text(), re.MULTILINE | re.DOTALL
    )
    assert kinds
    assert re.findall(r"^    (\w+)", kinds[1], re.MULTILINE) == list(KINDS)
    assert set(KINDS.values()) <= {case.name for case in CASES}
