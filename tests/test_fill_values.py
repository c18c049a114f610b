"""docs/fill-values.md: every installed library reads each cell again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import zarrow
from oracle.libraries import unspecified

pytestmark = pytest.mark.small_files

PAGE = Path(__file__).parents[1] / "docs" / "fill-values.md"
REFUSED, NO_TYPE, OTHER_SHAPE = "refused", "no type", "other shape"


def rows() -> Iterator[tuple[int, str, str, dict[str, str]]]:
    """Yield version, data type and fill value of each row, and each library's result."""
    heading, columns = "", []
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("|") or line.startswith("|---"):
            continue
        if cells[0] == "Data type":
            columns = cells
            continue
        row = dict(zip(columns, (cell.strip("`") for cell in cells), strict=True))
        fill_value = row.pop("Fill value", "null")
        yield int(heading[len("## Version ")]), row.pop("Data type"), fill_value, row


ROWS = list(rows())


def document(version: int, data_type: str, fill_value: str) -> dict[str, Any]:
    fill = json.loads(fill_value)
    if version == 3:
        codecs = (
            [{"name": "vlen-utf8"}]
            if data_type == "string"
            else [{"name": "bytes", "configuration": {"endian": "little"}}]
        )
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [2],
            "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": codecs,
            "fill_value": fill,
        }
    is_object = data_type.startswith("vlen")
    dtype = "|O" if is_object else json.loads(data_type) if data_type.startswith("[") else data_type
    return {
        "zarr_format": 2,
        "shape": [2],
        "chunks": [2],
        "dtype": dtype,
        "fill_value": fill,
        "order": "C",
        "compressor": None,
        "filters": [{"id": data_type}] if is_object else None,
    }


def with_zarrow(folder: Path, version: int) -> Any:
    with unspecified():
        assert zarrow.open(folder).zarr_format == version
        return zarrow.open(folder)[...].numpy()


def with_zarr_python(folder: Path, version: int) -> Any:
    with unspecified():
        return zarr.open_array(folder, mode="r", zarr_format=version)[...]


def with_tensorstore(folder: Path, version: int) -> Any:
    spec = {"driver": "zarr" if version == 2 else "zarr3", "kvstore": {"driver": "file", "path": str(folder)}}
    return tensorstore.open(spec, open=True).result().read().result()


READERS: dict[str, Callable[[Path, int], Any]] = {
    "zarrow": with_zarrow,
    "zarr-python 3": with_zarr_python,
    "tensorstore": with_tensorstore,
}


def told(element: Any) -> str:
    """Format an element as on the page."""
    if isinstance(element, np.void) and element.dtype.names:
        fields = [told(element[name]) for name in element.dtype.names]
        return f"({fields[0]},)" if len(fields) == 1 else f"({', '.join(fields)})"
    if isinstance(element, np.datetime64 | np.timedelta64):
        return str(element)
    return repr(element.item() if isinstance(element, np.generic) else element)


@pytest.mark.parametrize("library", READERS)
@pytest.mark.parametrize(("version", "data_type", "fill_value", "row"), ROWS, ids=lambda part: str(part)[:24])
def test_the_page_matches_each_library(version, data_type, fill_value, row, library, tmp_path):
    (tmp_path / ("zarr.json" if version == 3 else ".zarray")).write_text(
        json.dumps(document(version, data_type, fill_value))
    )
    said = row[library]
    if said in (REFUSED, NO_TYPE):
        with pytest.raises(Exception) as raised:
            READERS[library](tmp_path, version)
        if library == "zarrow":
            assert isinstance(raised.value, zarrow.MetadataError) and "fill_value" in str(raised.value)
        return
    found = READERS[library](tmp_path, version)
    if said == OTHER_SHAPE:
        assert found.ndim == 2
        return
    assert [told(element) for element in found] == [said] * 2


def test_the_page_has_rows():
    assert len(ROWS) > 40 and {version for version, *_ in ROWS} == {2, 3}


@pytest.mark.parametrize("dtype", ["M8[ns]", "M8[D]", "m8[s]"])
@pytest.mark.parametrize("value", ["NaT", 0])
def test_times_under_null_survive_both_writers(tmp_path, dtype, value):
    """One library writes the values, perhaps without storing them; the other reads them."""
    values = np.array([value, value, 5, "NaT" if value == 0 else 0], dtype)
    zarr.create_array(tmp_path / "theirs", shape=4, chunks=2, dtype=dtype, zarr_format=2, fill_value=None)[
        :
    ] = values
    assert json.loads((tmp_path / "theirs" / ".zarray").read_text())["fill_value"] is None
    np.testing.assert_array_equal(zarrow.open(tmp_path / "theirs")[...].numpy(), values)
    ours = zarr.create_array(
        tmp_path / "ours", shape=4, chunks=2, dtype=dtype, zarr_format=2, fill_value=None
    )
    zarrow.open(tmp_path / "ours")[...] = values
    np.testing.assert_array_equal(ours[:], values)
