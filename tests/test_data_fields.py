"""Batches of several arrays by name: the fields of a path or a group, and the form of their batches."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data

COUNT = 60
X = np.arange(COUNT * 6, dtype=">f4").reshape(COUNT, 6)
LABELS = np.arange(COUNT) % 7
MASKED = np.ma.MaskedArray(np.arange(COUNT), np.arange(COUNT) % 3 == 0)
NAMES = [f"item {number}" for number in range(COUNT)]


@pytest.fixture(scope="module", params=[2, 3])
def path(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("fields") / "train.zarr"
    root = zarrow.create_group(path, zarr_format=request.param)
    root.create_array("x", data=X, chunks=(8, 6))
    root.create_array("label", data=LABELS, chunks=10)
    root.create_array("name", data=np.array(NAMES, np.dtypes.StringDType()), chunks=9)
    root.create_array("part/y", data=LABELS * 2, chunks=10)
    root.create_array("other", data=np.zeros(3))
    if request.param == 3:
        root.create_array("count", data=MASKED, chunks=7, missing="optional")
        root.create_array("sharded", data=X, chunks=(4, 6), shards=(12, 6))
    return path


def test_fields_in_a_list_are_tuples_in_this_order(path: Path) -> None:
    for fields in (["name", "x", "part/y"], ("name", "x", "part/y")):
        seen = []
        loader = data.Loader(str(path), fields=fields, batch_size=16, numbers=True, window_nbytes=900)
        for batch, numbers in loader:
            assert type(batch) is tuple
            names, x, y = batch
            assert names.tolist() == [NAMES[number] for number in numbers]
            assert np.array_equal(x, X[numbers]) and np.array_equal(y, LABELS[numbers] * 2)
            seen += numbers.tolist()
        assert sorted(seen) == list(range(COUNT)) and loader.stats().samples == COUNT


def test_one_name_and_a_dict_of_names(path: Path) -> None:
    (batch,) = data.Loader(path, fields="label", batch_size=COUNT, order="sequential")
    assert np.array_equal(batch, LABELS)
    (named,) = data.Loader(path, fields={"y": "label", "text": "name"}, batch_size=COUNT, order="sequential")
    assert list(named) == ["y", "text"] and np.array_equal(named["y"], LABELS)
    ((only,),) = data.Loader(path, fields=["label"], batch_size=COUNT, order="sequential")
    assert np.array_equal(only, LABELS)


def test_masked_and_sharded_fields(path: Path) -> None:
    root = zarrow.open_group(path)
    if "count" not in root:
        pytest.skip("Zarr v2 has no optional elements")
    plan = data.Plan(root, 16, fields=["count", "sharded", "label"], last="pad")
    for rank in range(3):
        for (counts, rows, labels), numbers in data.Loader(plan, rank=rank, world=3, numbers=True):
            assert np.array_equal(counts.mask, MASKED.mask[numbers])
            assert np.array_equal(rows, X[numbers]) and np.array_equal(labels, LABELS[numbers])


def test_sequences_of_sources_are_tuples_and_dicts_stay_dicts(path: Path) -> None:
    root = zarrow.open_group(path)
    windows = [data.Windows(root["x"], 3), data.Windows(root["label"], 1, offset=3)]
    plan = data.Plan(windows, 20, order="sequential")
    inputs, targets = next(iter(data.Loader(plan)))
    assert inputs.shape == (20, 3, 6) and np.array_equal(targets[:, 0], LABELS[3:23])
    training, _ = plan.split(0.5, 0.5)
    assert isinstance(next(iter(data.Loader(training))), tuple)
    named = next(iter(data.Loader({"name": root["name"], "x": root["x"]})))
    assert type(named) is dict and list(named) == ["name", "x"]
    chosen = data.Plan({"a": root["x"], "b": root["label"], "c": root["other"]}, fields=["b", "a"])
    assert [part.ndim for part in next(iter(data.Loader(chosen)))] == [1, 2]


def test_crops_by_path(path: Path) -> None:
    crops = [data.Crops(path / "x", (4, 3), 30), data.Crops(str(path / "x"), (4, 3), 30)]
    for first, second in data.Loader(crops, batch_size=8, cache_nbytes=1 << 20):
        assert np.array_equal(first, second) and first.shape[1:] == (4, 3)


def test_samples_by_number(path: Path) -> None:
    samples = data.RandomAccess(path, fields=["x", "name"])
    x, name = samples[5]
    assert np.array_equal(x, X[5]) and name == NAMES[5]
    assert [name for _, name in samples.__getitems__([3, 1])] == [NAMES[3], NAMES[1]]
    assert len(pickle.loads(pickle.dumps(samples))[0]) == 2


def test_states_resume_and_do_not_depend_on_the_form(path: Path) -> None:
    fields = ["x", "label"]
    loader = data.Loader(path, fields=fields, batch_size=8)
    whole = [labels.tolist() for _, labels in loader]
    loader.set_epoch(0)
    batches = iter(loader)
    next(batches)
    resumed = data.Loader(pickle.loads(pickle.dumps(data.Plan(path, 8, fields=fields))))
    resumed.load_state_dict(loader.state_dict())
    assert [labels.tolist() for _, labels in resumed] == whole[1:]
    other = data.Loader(path, fields={name: name for name in fields}, batch_size=8)
    other.load_state_dict(loader.state_dict())
    assert [batch["label"].tolist() for batch in other] == whole[1:]


def test_stores_are_sources_and_scalars_have_no_samples() -> None:
    store = zarrow.MemoryStore()
    root = zarrow.create_group(store)
    root.create_array("x", data=np.arange(9), dimension_names=["time"])
    root.create_array("crs", data=np.array(4326))
    assert len(data.RandomAccess(store, fields=["x"])[3]) == 1
    with pytest.raises(ValueError, match=r"array '/crs' has no axes, .*as fields=\["):
        data.Plan(store)


def test_the_transform_gets_the_tuple(path: Path) -> None:
    loader = data.Loader(path, fields=["x", "label"], transform=lambda batch: (batch[0] / 2, batch[1]))
    x, labels = next(iter(loader))
    assert np.array_equal(x[:, 0] * 2 // 6 % 7, labels)


def test_damaged_samples_of_fields(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("x", data=np.arange(20), chunks=5, compressors="zstd")
    root.create_array("y", data=np.arange(20), chunks=20, fill_value=9)
    (tmp_path / "a.zarr" / "x" / "c" / "1").write_bytes(b"no zstd")
    loader = data.Loader(root, fields=["x", "y"], batch_size=20, order="sequential", on_bad="skip")
    ((x, y),) = loader
    assert x.tolist() == y.tolist() == [*range(5), *range(10, 20)]
    assert loader.stats().bad == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        (["x", "lable"], zarrow.NotFoundError, "no field 'lable': did you mean label?"),
        (
            ["x", "colour"],
            zarrow.NotFoundError,
            "no field 'colour': there are .*label, name, other, part, .*x",
        ),
        (["x", "x"], ValueError, "a name twice"),
        ([], ValueError, "needs at least one array"),
        ({"x"}, TypeError, r'fields is set, expected a name, .*type fields=\["x", "y"\]'),
        ([0], TypeError, "a field is a name, found int"),
        (["part", "x"], TypeError, r"found the group '/part': pass one of its members, \['y'\]"),
        (["x", "other"], ValueError, "different numbers of samples: {'x': 60, 'other': 3}$"),
        ({"a": "x", "b": "y"}, zarrow.NotFoundError, "no field 'y': there are"),
    ],
)
def test_wrong_fields_name_the_fields_there_are(path: Path, fields: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        data.Plan(path, fields=fields)


def test_fields_need_names(path: Path) -> None:
    array = zarrow.open_array(path / "x")
    for sources in (array, path / "x", [array, array]):
        with pytest.raises(TypeError, match=r"found (Array|list): leave fields= out"):
            data.Plan(sources, fields=["x"])


def test_arrays_of_other_lengths_are_left_out_by_the_suggested_fields(path: Path) -> None:
    with pytest.raises(ValueError, match="choose some by name") as refused:
        data.Plan(path)
    suggested = re.search(r"fields=(\[.*\])$", str(refused.value))
    assert suggested and len(data.Plan(path, fields=eval(suggested[1]))) == COUNT


@pytest.mark.parametrize(
    ("call", "typed"),
    [
        ("data.Loader(path, keys=['x', 'label'])", "fields=['x', 'label']"),
        ("data.Loader(path, a='x', b='label')", "fields={'a': 'x', 'b': 'label'}"),
        ("data.Loader(path, ('x', 'label'), batch_size=8)", "fields=['x', 'label']"),
        ("data.Plan(path, ['x', 'label'], batch_size=8)", "fields=['x', 'label']"),
        ("data.Loader(path, 8, fields=['x'])", "batch_size=8"),
        ("data.Loader(path, shuffle=True, fields=['x'])", 'order="shuffle"'),
        ("data.Loader(path, drop_last=True, fields=['x'])", 'last="drop"'),
        ("data.RandomAccess(path, columns=['x'])", "fields=['x']"),
    ],
)
def test_parameters_of_other_loaders_name_one_that_works(path: Path, call: str, typed: str) -> None:
    names = {"data": data, "path": path}
    with pytest.raises(TypeError, match=rf": type {re.escape(typed)}") as refused:
        eval(call, names)
    line = str(refused.value).partition(": type ")[2].partition(", or ")[0].partition(" for ")[0]
    name = call.partition("(")[0]
    others = "" if "fields" in line else ", fields=['x']"
    assert len(eval(f"{name}(path, {line}{others})", names)) > 0


def test_a_plan_and_options_of_one_are_refused(path: Path) -> None:
    plan = data.Plan(path, fields=["x"])
    with pytest.raises(TypeError, match=r"'batch_size': type zarrow\.data\.Plan\(array, batch_size=8\)"):
        data.Loader(plan, batch_size=8)
    with pytest.raises(TypeError, match=r"'fields': type zarrow\.data\.Plan\(array, fields=\['x'\]\)"):
        data.RandomAccess(plan, fields=["x"])
