"""`zarrow.save`: several named arrays, or one, in one call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow


@pytest.fixture(params=["folder", "url", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    new = tmp_path / "new" / "deep"
    return {"folder": new, "url": f"file://{new}", "memory": zarrow.MemoryStore()}[request.param]


def test_one_array(store: Any) -> None:
    zarrow.save(store, np.arange(6.0).reshape(2, 3))
    assert zarrow.open(store)[...].tolist() == [[0, 1, 2], [3, 4, 5]]
    zarrow.save(store, ["a"])
    assert zarrow.open(store)[...].tolist() == ["a"]
    with pytest.raises(TypeError):
        zarrow.save(store, x=[1])
    assert zarrow.open(store)[...].tolist() == ["a"]


def test_arrays_by_their_names(store: Any) -> None:
    zarrow.save(store, x=[1, 2], y=np.eye(2))
    zarrow.save(store, y=[5], **{"deep/z": [True]})
    zarrow.save(store, {"path": ["a name like any"]})
    root = zarrow.open(store)
    assert root.keys() == ["deep", "path", "x", "y"]
    assert (root["x"][...].tolist(), root["y"][...].tolist(), root["deep/z"][...].tolist()) == (
        [1, 2],
        [5],
        [True],
    )
    with pytest.raises(FileExistsError, match="group"):
        zarrow.save(store, deep=[1])
    with pytest.raises(FileExistsError, match="group"):
        zarrow.save(store, [1])
    assert zarrow.open(store).keys() == ["deep", "path", "x", "y"]


def test_below_a_path(store: Any) -> None:
    zarrow.save(store, [1, 2], path="a/b")
    zarrow.save(store, path="a", c=[3])
    root = zarrow.open(store)
    assert root["a/b"][...].tolist() == [1, 2] and root["a/c"][...].tolist() == [3]
    with pytest.raises(TypeError, match=r'\{"path": \.\.\.\}'):
        zarrow.save(store, path=[1])  # type: ignore[arg-type]


def test_storage_options_are_for_urls(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="storage_options need"):
        zarrow.save(tmp_path, x=[1], storage_options={"anon": True})
    with pytest.raises(ValueError, match="storage_options need"):
        zarrow.consolidate_metadata(tmp_path, storage_options={"anon": True})
    with pytest.raises(TypeError, match="is an option"):
        zarrow.save(tmp_path, storage_options=[1])  # type: ignore[arg-type]
    zarrow.save(tmp_path, {"storage_options": [1]})
    assert zarrow.open(tmp_path).keys() == ["storage_options"]


def test_nothing_to_save(store: Any) -> None:
    for arguments, arrays in [((), {}), (([1],), {"x": [1]}), ((None,), {})]:
        with pytest.raises(TypeError, match="save"):
            zarrow.save(store, *arguments, **arrays)
    with pytest.raises(FileNotFoundError):
        zarrow.open(store)


@pytest.mark.parametrize("text", ["x.npy", b"x.npy", np.str_("x.npy")])
def test_text_replaces_no_array_with_axes(tmp_path: Path, text: Any) -> None:
    root = zarrow.create_group(tmp_path)
    root["a"] = [1, 2, 3]
    with pytest.raises(TypeError, match=r"group\['a'\]\[...\] = value .* numpy.load"):
        root["a"] = text
    assert root["a"][...].tolist() == [1, 2, 3]
    root["title"] = text
    root["title"] = text
    root["a"] = "no name of a file"
    assert root["title"].ndim == root["a"].ndim == 0


@pytest.mark.parametrize("text", ["x.npy", b"x.npy", "s3://bucket/x", "x.CSV"])
def test_names_of_files_replace_no_named_arrays(store: Any, text: Any) -> None:
    zarrow.save(store, x=[1, 2, 3], title="old.npy")
    for save in (lambda: zarrow.save(store, x=text), lambda: zarrow.save(store, {"y": [1], "x": text})):
        with pytest.raises(TypeError, match="'/x' is an array of shape"):
            save()
    assert zarrow.open(store).keys() == ["title", "x"] and zarrow.open(store)["x"].shape == (3,)
    zarrow.save(store, title=text, y=text)
    assert zarrow.load(store)["title"].item() == zarrow.load(store)["y"].item() == text


@pytest.mark.parametrize("text", ["x.npy", b"x.npy", Path("x.npy"), np.str_("x.npy")])
def test_a_path_in_the_place_of_an_array_is_refused(store: Any, text: Any) -> None:
    zarrow.save(store, [1])
    for ways in (
        r"zarrow\.load\('x\.npy'\)",
        r"numpy\.load\('x\.npy'\)",
        r"zarrow\.open\('x\.npy'\)\) to copy",
    ):
        with pytest.raises(TypeError, match=ways):
            zarrow.save(store, text)
    assert zarrow.open(store)[...].tolist() == [1]
    zarrow.save(store, np.array("x.npy"))
    assert zarrow.open(store)[...].tolist() == "x.npy"


def test_a_failed_save_keeps_the_old_array(tmp_path: Path) -> None:
    zarrow.save(tmp_path, x=[1])
    for value in (object(), [object()], {"a": 1}):
        with pytest.raises((TypeError, NotImplementedError, ValueError)):
            zarrow.save(tmp_path, x=value)
    assert zarrow.open(tmp_path)["x"][...].tolist() == [1]


def test_zarr_python_loads_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    arrays = {
        name: rng.integers(0, 2, shape).astype(dtype)
        for name, shape, dtype in [
            ("a", (300, 200), "f4"),
            ("b", (), "i8"),
            ("c", (0, 3), "c16"),
            ("d", (5, 1, 7, 2), "bool"),
            ("e", (10,), ">u2"),
        ]
    }
    arrays["f"] = np.array(["é", "xy"])
    arrays["g"] = np.array(["2020-01-01", "NaT"], "M8[s]")
    zarrow.save(tmp_path, **arrays)
    for name, values in arrays.items():
        read = zarr.open_group(tmp_path, mode="r")[name][...]
        assert np.array_equal(read, values, equal_nan=values.dtype.kind == "M")
        assert zarrow.open(tmp_path)[name].shape == values.shape


def test_one_warning_names_all_columns_with_missing_elements(tmp_path: Path) -> None:
    program = (
        "import sys, warnings, zarrow\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    zarrow.save(sys.argv[1], {'x': [1, None], 'whole': [1, 2], 'y': ['a', None]})\n"
        "print([str(warning.message).partition(',')[0:3:2] for warning in caught])\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "table"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.count("zarr-python cannot open x") == 1 and " y, because it lacks" in said


def test_an_existing_group_names_the_way_to_replace_it(tmp_path: Path) -> None:
    zarrow.save(tmp_path, table={"x": [1]})
    root = zarrow.open(tmp_path)
    for replace in (
        lambda: zarrow.save(tmp_path, table=[1]),
        lambda: zarrow.save(tmp_path, [1]),
        lambda: root.__setitem__("table", [1]),
    ):
        with pytest.raises(
            zarrow.NodeExistsError, match=r"create_array\(\.\.\., overwrite=True\) replaces it"
        ):
            replace()
    root.create_array("table", data=[1], overwrite=True)
    assert root["table"][...].tolist() == [1]


def test_small_arrays_of_a_remote_store_are_saved_at_once_and_the_first_error_is_raised() -> None:
    """Errors of other threads arrive here, with the array's name; a group is not replaced."""
    store: dict[str, bytes] = {}
    arrays = {f"a{number}": np.arange(10) + number for number in range(20)}
    zarrow.save(store, **arrays)
    loaded = zarrow.load(store)
    assert all(np.array_equal(np.asarray(loaded[name]), array) for name, array in arrays.items())
    zarrow.open(store).create_group("group")
    with pytest.raises(zarrow.NodeExistsError, match="group"):
        zarrow.save(store, **arrays, group=np.arange(3))
