"""Verifies every cell and writes the page; without PyTorch, its column is kept."""

import importlib.util
import warnings

from data_types.cells import COLUMNS, TORCH, prove
from data_types.page import PAGE, load, render
from data_types.types import CASES


def main() -> None:
    # Libraries warn about unknown types.
    warnings.simplefilter("ignore")
    with_torch = importlib.util.find_spec("torch") is not None
    kept = {} if with_torch else load(PAGE.read_text())
    rows = {}
    for case in CASES:
        proven = prove(case, [column for column in COLUMNS if with_torch or column != TORCH])
        rows[case.name] = proven if with_torch else {**proven, TORCH: kept[case.name][TORCH]}
    PAGE.write_text(render(rows))
    print(f"{PAGE}: {len(rows)} data types" + ("" if with_torch else f"; {TORCH} unchanged"))


if __name__ == "__main__":
    main()
