"""Attributes: a mapping that stores exactly its changes."""

from __future__ import annotations

import copy
import json
import math
import multiprocessing
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow

pytestmark = pytest.mark.small_files


@pytest.fixture(params=[(2, False), (2, True), (3, False), (3, True)], ids=str)
def store(request, tmp_path):
    """Write a hierarchy with zarr-python, of both versions, consolidated or not."""
    zarr_format, consolidated = request.param
    root = zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format, attributes={"title": "rain"})
    root.create_array("model/grid", shape=(2, 2), dtype="f4", attributes={"units": "K", "nan": float("nan")})
    if consolidated and zarr_format == 2:
        zarr.consolidate_metadata(tmp_path, zarr_format=2)
    elif consolidated:
        with pytest.warns(UserWarning, match="[Cc]onsolidated"):
            zarr.consolidate_metadata(tmp_path, zarr_format=3)
    return tmp_path


@pytest.mark.parametrize("path", ["", "model", "model/grid"])
def test_zarr_python_reads_changed_attributes(store, path):
    attributes = zarrow.open(store, path).attrs
    before = dict(attributes)
    attributes["text"] = "né"
    attributes.update({"list": [1, {"a": None}]}, flag=True)
    attributes.setdefault("text", "other")
    assert attributes.pop("flag") is True and "flag" not in attributes
    del attributes["list"]
    with pytest.raises(KeyError):
        del attributes["list"]
    expected = {**before, "text": "né"}
    assert attributes == expected == dict(attributes) == zarrow.open(store, path).attrs
    root = zarr.open_group(store, mode="r")
    read = (root[path] if path else root).attrs.asdict()
    assert read == expected or (np.isnan(read.pop("nan")) and read.items() <= expected.items())
    attributes.put({"only": 1})
    assert zarrow.open(store, path).attrs.asdict() == {"only": 1}
    attributes.clear()
    assert attributes == {} and len(attributes) == 0 and list(attributes) == []
    assert zarrow.open(store)["model/grid"].shape == (2, 2)


def test_attributes_of_other_writers_are_kept(store):
    """An extension, a bare NaN, an integer beyond 64 bits, the order of keys: byte for byte."""
    name = "zarr.json" if (store / "zarr.json").exists() else ".zattrs"
    path = store / "model" / "grid" / name
    document = json.loads(path.read_text())
    (document["attributes"] if name == "zarr.json" else document)["big"] = 2**100
    if name == "zarr.json":
        document["theirs"] = {"must_understand": False, "b": 1, "a": 0.1}
    path.write_text(json.dumps(document, indent=3))
    zarrow.open(store)["model"]
    zarrow.open(store, "model/grid").attrs["new"] = [1]
    (document["attributes"] if name == "zarr.json" else document)["new"] = [1]
    found = json.loads(path.read_text())
    assert repr(found) == repr(document)
    zarr.open_array(store / "model" / "grid", mode="r")


def test_a_handle_knows_its_changes_and_the_document_it_changed(store):
    first, second = zarrow.open(store, "model/grid"), zarrow.open(store, "model/grid")
    first.attrs["x"] = 1
    assert "x" in first.attrs and "x" not in second.attrs
    second.attrs["y"] = 2
    assert second.attrs["x"] == 1 and "y" not in first.attrs
    values = first.attrs
    first.attrs["z"] = 3
    assert values["z"] == 3 and repr(values) == repr(dict(values))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"bytes", TypeError),
        ({1: 2}, TypeError),
        ({"a": {3, 4}}, TypeError),
        (10**5000, ValueError),
    ],
    ids=["bytes", "key", "set", "digits"],
)
def test_values_outside_json_are_refused(tmp_path, value, error):
    zarr.open_group(tmp_path, mode="w", attributes={"a": 1})
    before = (tmp_path / "zarr.json").read_bytes()
    attributes = zarrow.open(tmp_path).attrs
    with pytest.raises(error):
        attributes["x"] = value
    with pytest.raises(error):
        attributes.update(b=1, c=[value])
    assert (tmp_path / "zarr.json").read_bytes() == before and attributes == {"a": 1}


def test_lists_that_hold_themselves_are_refused(tmp_path):
    zarr.open_group(tmp_path, mode="w")
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="deep"):
        zarrow.open(tmp_path).attrs["x"] = circle


def test_numpy_values_are_stored_as_numbers(tmp_path):
    zarr.open_group(tmp_path, mode="w")
    attributes = zarrow.open(tmp_path).attrs
    attributes["n"] = np.int16(3)
    attributes["list"] = np.array([[1.5, 2], [3, 4]], np.float32)
    attributes["mixed"] = (np.float64(0.1), np.True_, None, 2**64 - 1)
    assert zarr.open_group(tmp_path, mode="r").attrs.asdict() == {
        "n": 3,
        "list": [[1.5, 2.0], [3.0, 4.0]],
        "mixed": [0.1, True, None, 2**64 - 1],
    }


def test_a_node_that_was_erased(tmp_path):
    root = zarr.open_group(tmp_path, mode="w")
    root.create_array("a", shape=(1,), dtype="i1")
    array = zarrow.open(tmp_path)["a"]
    del root["a"]
    with pytest.raises(FileNotFoundError):
        array.attrs["x"] = 1
    assert not (tmp_path / "a").exists()


def test_attributes_of_an_erased_node_are_not_missing(tmp_path):
    """`NotFoundError` is a KeyError, which a mapping takes for a missing key."""
    zarrow.create_group(tmp_path, attributes={"kind": "image"}).consolidate_metadata()
    root = zarrow.open_group(tmp_path, mode="r+")
    # This process changed the consolidated metadata, so the handle reads them again.
    zarrow.open_group(tmp_path, mode="r+").create_group("x")
    shutil.rmtree(tmp_path)
    for look in (
        lambda: root.attrs.get("kind", "none"),
        lambda: "kind" in root.attrs,
        lambda: root.attrs.pop("kind", None),
        lambda: root.attrs.setdefault("kind", "none"),
    ):
        with pytest.raises(zarrow.NotFoundError):
            look()


def change(folder: Path, number: int) -> None:
    for round_ in range(10):
        zarrow.open(folder).attrs[f"{number}-{round_}"] = round_


def test_changes_of_processes_are_not_lost(tmp_path):
    zarr.open_group(tmp_path, mode="w")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=change, args=(tmp_path, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(zarrow.open(tmp_path).attrs) == 40
    assert [path.name for path in tmp_path.iterdir()] == ["zarr.json"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_that_could_not_be_read_again_are_refused(tmp_path, zarr_format):
    large = {"large": "x" * (17 << 20)}
    with pytest.raises(ValueError, match="size"):
        zarrow.create_group(tmp_path / "no.zarr", attributes=large, zarr_format=zarr_format)
    group = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    with pytest.raises(ValueError, match="size"):
        group.attrs.update(large)
    assert zarrow.open(tmp_path).attrs == {} and not (tmp_path / "no.zarr" / "zarr.json").exists()
    # The limit of consolidated metadata does not apply to the rest of the document.
    group.consolidate_metadata()
    with pytest.raises(ValueError, match="size"):
        group.attrs.update(large)
    assert zarrow.open(tmp_path).attrs == {}


# Python's extensions of JSON: zarr-python's attributes contain them.
OF_PYTHON = {
    "nan": math.nan,
    "infinite": [math.inf, -math.inf, {"deep": math.nan}],
    "large": [2**64, -(2**63) - 1, 10**400],
    "half": "\ud800 and \udc00",
    "pair": "\U0001f600",
    "\udfff": "a key",
    "float": [1e400, 0.1, 5e-324, -0.0],
}


def equal(found: object, expected: object) -> bool:
    """Return whether the values are equal to the last digit, including NaN."""
    return repr(found) == repr(expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
def test_attributes_of_python_round_trip(tmp_path, zarr_format, consolidated):
    """From zarr-python's store, through every edit, and back to zarr-python."""
    root = zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format, attributes=OF_PYTHON)
    root.create_array("x", shape=(2,), dtype="i4", attributes=OF_PYTHON)
    if consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(tmp_path, zarr_format=zarr_format)
    for path in ("", "x"):
        node = zarrow.open(tmp_path)["x"] if path else zarrow.open(tmp_path)
        assert equal(dict(node.attrs), OF_PYTHON)
        node.attrs["more"] = 1
        del node.attrs["more"]
        assert equal(dict(node.attrs), OF_PYTHON)
        read = zarr.open(tmp_path, mode="r", zarr_format=zarr_format)
        assert equal((read[path] if path else read).attrs.asdict(), OF_PYTHON)
    assert equal(zarrow.open(tmp_path)["x"].metadata["attributes"], OF_PYTHON)
    assert equal(zarrow.open(tmp_path, "x").attrs.asdict(), OF_PYTHON)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_python_values_are_stored_like_pythons_json(tmp_path, zarr_format):
    root = zarrow.create_group(tmp_path, attributes=OF_PYTHON, zarr_format=zarr_format)
    array = root.create_array("x", shape=(2,), dtype="i4", attributes={"a": 1})
    array.attrs.update(OF_PYTHON)
    array.attrs["\udfff"] = "changed"
    array.attrs["\ud801"] = "another"
    assert array.attrs.pop("\ud801") == "another"
    root.consolidate_metadata()
    expected = {"a": 1, **OF_PYTHON, "\udfff": "changed"}
    assert equal(dict(array.attrs), expected)
    assert equal(dict(zarrow.open(tmp_path)["x"].attrs), expected)
    read = zarr.open_group(tmp_path, mode="r", zarr_format=zarr_format)
    assert equal(read.attrs.asdict(), OF_PYTHON) and equal(read["x"].attrs.asdict(), expected)
    array.attrs.put({"\ud802": math.nan})
    assert equal(dict(zarrow.open(tmp_path)["x"].attrs), {"\ud802": math.nan})


def test_every_byte_of_other_keys_stays(tmp_path):
    """Also spellings of numbers and escapes that values lose."""
    others = (
        '"a": 1.0e+00,\n "b" : [NaN, 1E400,-Infinity] , "\\u0063\\ud800": "\\ud83d\\ude00\\udfff", "d": 1e-0'
    )
    folder = tmp_path / "g"
    folder.mkdir()
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    (folder / ".zattrs").write_text(f'{{"x": 1, {others}}}')
    group = zarrow.open(folder)
    group.attrs["x"] = 10**30
    assert (folder / ".zattrs").read_text() == f'{{"x": {10**30}, {others}}}'
    del group.attrs["x"]
    assert (folder / ".zattrs").read_text() == f"{{{others}}}"
    assert equal(dict(group.attrs), json.loads(f"{{{others}}}"))


# JSON reads two consecutive halves of a pair as one character.
TEXT = st.text(st.characters(exclude_categories=()), max_size=6).map(
    lambda text: json.loads(json.dumps(text))
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(10**60), 10**60) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.dictionaries(TEXT, JSON, max_size=4), st.data())
def test_attributes_behave_like_a_dict(attributes, data):
    """Any JSON from Python, created, changed and read: the result equals the dict."""
    store = zarrow.MemoryStore()
    group = zarrow.create_group(store, attributes=attributes, zarr_format=data.draw(st.sampled_from([2, 3])))
    expected = dict(attributes)
    for _ in range(data.draw(st.integers(0, 3))):
        if expected and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(expected)))
            del group.attrs[key], expected[key]
        else:
            key, value = data.draw(TEXT), data.draw(JSON)
            group.attrs[key] = expected[key] = value
    assert equal(dict(group.attrs), expected) and equal(dict(zarrow.open(store).attrs), expected)


@pytest.mark.parametrize(
    "text", ['{"a": nan}', '{"a": Infinite}', '{"a": +1}', '{"a": "\\ud8"}', '{"a": 01e999}']
)
def test_documents_that_python_refuses_are_refused(tmp_path, text):
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / ".zattrs").write_text(text)
    with pytest.raises(ValueError):
        json.loads(text)
    with pytest.raises(zarrow.MetadataError):
        zarrow.open(tmp_path)


CHANGES: dict[str, Any] = {
    "append": lambda attrs: attrs["list"].append(1),
    "item": lambda attrs: attrs["list"].__setitem__(0, 1),
    "nested": lambda attrs: attrs["dict"]["inner"][0].update(a=2),
    "values": lambda attrs: [value.clear() for value in attrs.values()],
    "dict": lambda attrs: dict(attrs)["list"].sort(),
    "get": lambda attrs: attrs.get("list").extend([1]),
    "setdefault": lambda attrs: attrs.setdefault("new", []).append(1),
    "variable": lambda attrs: (value := attrs["list"]).reverse() or value.pop(),
}


@pytest.fixture
def nested() -> zarrow.Group:
    values = {"list": [2, 1], "dict": {"inner": [{"a": 1}]}}
    return zarrow.create_group(zarrow.MemoryStore(), attributes=values)


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_change_of_a_value_that_is_not_stored_warns(nested: zarrow.Group, change: Any) -> None:
    before = nested.attrs.asdict() | ({"new": []} if change is CHANGES["setdefault"] else {})
    with pytest.warns(zarrow.ZarrowWarning, match=r"a change of attrs\['\w+'\] is not stored") as caught:
        change(nested.attrs)
    assert Path(caught[0].filename).samefile(__file__) and nested.attrs == before


def test_a_change_that_is_stored_does_not_warn(nested: zarrow.Group) -> None:
    value = nested.attrs["list"]
    value.append(3)
    nested.attrs["list"] = value
    nested.attrs["list"] += [4]
    whole = dict(nested.attrs)
    whole["dict"]["inner"][0]["a"] = 5
    nested.attrs.update(whole)
    assert nested.attrs == {"list": [2, 1, 3, 4], "dict": {"inner": [{"a": 5}]}}
    renamed = nested.attrs["dict"]
    renamed["inner"].append(1)
    other = zarrow.create_group(zarrow.MemoryStore(), attributes={"other": renamed["inner"]})
    assert other.attrs["other"] == [{"a": 5}, 1]
    nested.attrs.asdict()["list"].append(1)
    nested.attrs.pop("list").append(1)
    for copied in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        plain = copied(nested.attrs["dict"])
        assert type(plain) is dict and plain == {"inner": [{"a": 5}]}
        if copied is not copy.copy:
            plain["inner"].append(1)
    assert json.dumps(nested.attrs["dict"]) == '{"inner": [{"a": 5}]}'


def test_a_change_that_is_never_stored_warns_at_the_end() -> None:
    program = (
        "import zarrow\n"
        "group = zarrow.create_group(zarrow.MemoryStore(), attributes={'list': [1]})\n"
        "value = group.attrs['list']\n"
        "value.append(2)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stderr.count("a change of attrs['list'] is not stored") == 1
