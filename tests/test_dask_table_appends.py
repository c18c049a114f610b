"""Rows of dataframes of dask that `zarrow.dask.to_table` appends: equal to pandas, or the old table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import zarrow
import zarrow.dask
from test_dask_tables import table
from test_xarray_writing import values

WHOLE = table(100)
OLD, NEW = WHOLE.iloc[:37], WHOLE.iloc[37:]


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Leave the types of text as pandas has them, and start no processes."""
    with dask.config.set({"dataframe.convert-string": False, "scheduler": "threads"}):
        yield


def frame(rows: pd.DataFrame, npartitions: int = 3) -> Any:
    return dd.from_pandas(rows, npartitions=npartitions, sort=False)


def test_rows_are_appended_behind_misaligned_ones(tmp_path: Path) -> None:
    for store in (tmp_path / "a", zarrow.MemoryStore()):
        zarrow.dask.to_table(frame(OLD), store, component="t", chunks=4, shards=12)
        added = frame(NEW, 5)
        if store == tmp_path / "a":
            added["kind"] = added["kind"].cat.as_unknown()
        zarrow.dask.to_table(added, store, component="t", append=True)
        assert_frame_equal(zarrow.open(store, "t").to_pandas(), WHOLE)


def test_a_table_is_appended_to_itself(tmp_path: Path) -> None:
    zarrow.dask.to_table(frame(OLD), tmp_path / "a", chunks=4)
    zarrow.dask.to_table(zarrow.dask.read_table(tmp_path / "a"), tmp_path / "a", append=True)
    assert_frame_equal(zarrow.open(tmp_path / "a").to_pandas(), pd.concat([OLD, OLD]))


def fails(part: pd.DataFrame) -> pd.DataFrame:
    if "r00099" in part.index:
        raise RuntimeError("lost")
    return part


def test_a_refused_or_failed_append_leaves_the_old_rows(tmp_path: Path) -> None:
    zarrow.dask.to_table(frame(OLD), tmp_path / "a", chunks=4)
    before = values(tmp_path / "a")
    others = pd.Categorical(["q"] * len(NEW), ordered=True)
    cases: dict[str, tuple[pd.DataFrame, dict[str, Any], type[Exception]]] = {
        "'rain' .* float64, .* stores float32": (NEW.astype({"rain": "f8"}), {}, zarrow.DataTypeError),
        "'seen' .* int64, .* stores nullable-integer": (NEW.assign(seen=1), {}, zarrow.DataTypeError),
        "'kind' has the element 'q'": (NEW.assign(kind=others), {}, zarrow.DataTypeError),
        "has the columns": (NEW[["rain"]], {}, zarrow.DataTypeError),
        "has the index None": (NEW, {"index": False}, zarrow.DataTypeError),
        "expected 1": (NEW, {"lengths": [1, 1, 1]}, zarrow.ShapeError),
        "no mode": (NEW, {"mode": "w"}, TypeError),
        "or other options": (NEW, {"shards": 8}, TypeError),
    }
    for message, (rows, options, error) in cases.items():
        with pytest.raises(error, match=message):
            zarrow.dask.to_table(frame(rows), tmp_path / "a", append=True, **options)
        assert values(tmp_path / "a") == before
    lost = frame(NEW).map_partitions(fails, meta=NEW.iloc[:0])
    with pytest.raises(RuntimeError, match="lost"):
        zarrow.dask.to_table(lost, tmp_path / "a", append=True, lengths=[21, 21, 21])
    assert_frame_equal(zarrow.open(tmp_path / "a").to_pandas(), OLD)
    with pytest.raises(zarrow.NotFoundError):
        zarrow.dask.to_table(frame(NEW), tmp_path / "none", append=True)
    zarrow.dask.to_table(frame(NEW), tmp_path / "a", append=True)
    assert_frame_equal(zarrow.open(tmp_path / "a").to_pandas(), WHOLE)


def test_a_saved_table_takes_rows_of_dask_and_others(tmp_path: Path) -> None:
    plain = pd.DataFrame({"x": np.arange(5), "y": np.arange(5.0)})
    zarrow.save(tmp_path / "a", plain)
    zarrow.dask.to_table(frame(plain, 2), tmp_path / "a", append=True, index=False)
    zarrow.open(tmp_path / "a").append(plain)
    assert zarrow.open(tmp_path / "a").to_pandas()["x"].tolist() == [*range(5)] * 3
