"""The engine "zarrow" gives what xarray's own engine gives: values, types, attributes and encodings."""

from __future__ import annotations

import asyncio
import itertools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from xarray.backends.plugins import detect_parameters
from xarray.backends.zarr import ZarrBackendEntrypoint
from xarray.core import indexing

import zarrow
import zarrow.xarray
from xarray_cases import DATASETS, cf, kinds, quiet, same, tree, write
from xarray_marks import marks
from zarr_versions import needs_new_zarr
from zarrow.xarray.arrays import ZarrowArray
from zarrow.xarray.entrypoint import ZarrowBackendEntrypoint
from zarrow.xarray.variables import _extents

pytestmark = marks("The specified chunks separate")
ENGINE = ZarrowBackendEntrypoint


def both(path: Any, **options: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """Open a dataset by both engines."""
    return xr.open_dataset(path, engine=ENGINE, **options), xr.open_dataset(path, engine="zarr", **options)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("chunks", [None, {}, 2, "auto"])
def test_datasets_are_as_xarray_opens_them(tmp_path: Path, name: str, version: int, chunks: Any) -> None:
    dataset = DATASETS[name]()
    if chunks == "auto":
        # dask does not divide texts.
        dataset = dataset.drop_vars(
            [name for name, each in dataset.variables.items() if each.dtype.kind in "OT"]
        )
    path = write(dataset, tmp_path / "data.zarr", zarr_format=version)
    same(*both(path, chunks=chunks))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize(
    "options",
    [
        {"decode_cf": False},
        {"mask_and_scale": False},
        {"decode_times": False},
        {"decode_timedelta": True},
        {"decode_times": xr.coders.CFDatetimeCoder(time_unit="s")},
        {"concat_characters": False},
        {"decode_coords": False},
        {"decode_coords": "all"},
        {"drop_variables": "x"},
        {"drop_variables": ["packed", "time", "strings"]},
        {"create_default_indexes": False},
        {"cache": False},
        {"zarr_format": None, "cache_members": False},
        {"consolidated": True},
        {"consolidated": False},
    ],
    ids=lambda options: str(options).partition(" object at ")[0],
)
def test_options_are_as_xarray_takes_them(
    tmp_path: Path, name: str, version: int, options: dict[str, Any]
) -> None:
    path = write(DATASETS[name](), tmp_path / "data.zarr", zarr_format=version)
    same(*both(path, **options))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
@pytest.mark.parametrize("group", [None, "cf", "/none", "none/below"])
def test_trees_are_as_xarray_opens_them(
    tmp_path: Path, version: int, consolidated: bool, group: str | None
) -> None:
    path = write(tree(), tmp_path / "tree.zarr", zarr_format=version, consolidated=consolidated)
    options: dict[str, Any] = {"group": group, "consolidated": consolidated}
    same(xr.open_datatree(path, engine=ENGINE, **options), xr.open_datatree(path, engine="zarr", **options))
    ours = xr.open_groups(path, engine=ENGINE, **options)
    stock = xr.open_groups(path, engine="zarr", **options)
    assert set(ours) == set(stock)
    for name in stock:
        same(ours[name], stock[name])
    same(*both(path, **options))


def test_signatures_are_xarrays() -> None:
    for method in ("open_dataset", "open_datatree", "open_groups_as_dict"):
        stock = detect_parameters(getattr(ZarrBackendEntrypoint, method))
        assert detect_parameters(getattr(ZarrowBackendEntrypoint, method)) == stock
    ours, stock = detect_parameters(zarrow.xarray.open_zarr), _parameters(xr.open_zarr)
    assert ours == stock
    # zarr-python is installed: its engine opens what no engine is named for.
    assert not ENGINE().guess_can_open("data.zarr")


def _parameters(function: Any) -> tuple[str, ...]:
    import inspect

    return tuple(name for name in inspect.signature(function).parameters if name != "kwargs")


def test_the_entry_point_is_installed() -> None:
    assert isinstance(xr.backends.list_engines()["zarrow"], ZarrowBackendEntrypoint)


def stores_of(folder: Path) -> dict[str, Any]:
    """Return a store object of each kind over one hierarchy."""
    memory = {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()
    }
    archive = folder.with_suffix(".zip")
    import shutil

    shutil.make_archive(str(folder.with_suffix("")), "zip", folder)
    buffers = zarr.core.buffer.default_buffer_prototype().buffer
    return {
        "path": folder,
        "text": f"{folder}/",
        "local": zarr.storage.LocalStore(folder, read_only=True),
        "memory": zarr.storage.MemoryStore({key: buffers.from_bytes(value) for key, value in memory.items()}),
        "zip": zarr.storage.ZipStore(archive, mode="r"),
    }


@pytest.mark.parametrize("kind", ["path", "text", "local", "memory", "zip"])
def test_stores_of_each_kind(tmp_path: Path, kind: str) -> None:
    store = stores_of(write(cf(), tmp_path / "data.zarr"))[kind]
    ours, stock = both(store)
    same(ours.load(), stock.load())


def test_groups_and_paths_of_zarr_are_stores(tmp_path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", np.arange(3.0))})
    dataset.to_zarr(tmp_path / "a.zarr", group="below", consolidated=False)
    root = zarr.open_group(tmp_path / "a.zarr", mode="r")
    for store, group in ((root, "below"), (root["below"], None), (root.store_path / "below", None)):
        options: dict[str, Any] = {"group": group, "consolidated": False}
        for found in (
            xr.open_dataset(store, engine="zarrow", **options),
            zarrow.xarray.open_zarr(store, chunks=None, **options),
        ):
            xr.testing.assert_identical(found, dataset)
            assert str(tmp_path / "a.zarr") in found.encoding["source"]


def test_a_mapping_of_bytes_is_a_store() -> None:
    values: dict[str, Any] = {}
    zarrow.save(values, rain=[1.0, 2.0])
    zarrow.create_array(values, "wind", data=[1, 2], dimension_names=["x"])
    found = xr.open_dataset(values, engine=ENGINE, consolidated=False, drop_variables="rain")
    assert found["wind"].values.tolist() == [1, 2]


@pytest.mark.parametrize("version", [2, 3])
def test_fill_values_mask_where_xarray_says_so(tmp_path: Path, version: int) -> None:
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=version)
    names: dict[str, Any] = {"dimension_names": ["x"]} if version == 3 else {}
    attributes = {"_ARRAY_DIMENSIONS": ["x"]} if version == 2 else {}
    for dtype, fill in (("i4", 7), ("f8", -1.0), ("u1", 0), ("bool", True), ("U3", "no"), ("f4", np.nan)):
        array = group.create_array(
            f"of_{dtype}", shape=4, chunks=2, dtype=dtype, fill_value=fill, attributes=attributes, **names
        )
        array[:1] = array[:1]
    same(*both(tmp_path / "a.zarr", consolidated=False))
    masked = xr.open_dataset(
        tmp_path / "a.zarr", engine=ENGINE, consolidated=False, use_zarr_fill_value_as_mask=True
    )
    assert np.isnan(masked["of_i4"].values).all()
    plain = xr.open_dataset(
        tmp_path / "a.zarr", engine=ENGINE, consolidated=False, use_zarr_fill_value_as_mask=False
    )
    assert plain["of_i4"].values.tolist() == [7] * 4


@pytest.mark.parametrize("compressor", ["blosc", "zstd", "gzip", "zlib", "none", "filters"])
@pytest.mark.parametrize("version", [2, 3])
def test_encodings_survive_a_round_trip(tmp_path: Path, version: int, compressor: str) -> None:
    import numcodecs
    from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

    chosen: dict[str, Any] = {
        "blosc": numcodecs.Blosc("zstd", 3, 2) if version == 2 else BloscCodec(cname="lz4", clevel=3),
        "zstd": numcodecs.Zstd(3) if version == 2 else ZstdCodec(level=3),
        "gzip": numcodecs.GZip(3) if version == 2 else GzipCodec(level=3),
        "zlib": numcodecs.Zlib(3) if version == 2 else None,
        "none": None,
        "filters": None,
    }
    encoding: dict[str, Any] = {"chunks": (3,), "compressors": chosen[compressor]}
    if compressor == "filters" and version == 2:
        encoding["filters"] = [numcodecs.Delta("<i4")]
    dataset = xr.Dataset({"a": ("x", np.arange(10, dtype="i4"))})
    path = write(dataset, tmp_path / "a.zarr", zarr_format=version, encoding={"a": encoding})
    ours, stock = both(path)
    same(ours, stock)
    again = write(ours.load(), tmp_path / "b.zarr", zarr_format=version)
    document = "a/zarr.json" if version == 3 else "a/.zarray"
    assert json.loads((again / document).read_text()) == json.loads((path / document).read_text())


@pytest.mark.parametrize("shards", [(4, 8), (8, 16)])
def test_chunks_for_dask_are_shards(tmp_path: Path, shards: tuple[int, int]) -> None:
    dataset = xr.Dataset({"a": (("y", "x"), np.arange(256.0).reshape(16, 16))})
    encoding = {"a": {"chunks": (2, 4), "shards": shards}}
    path = write(dataset, tmp_path / "a.zarr", encoding=encoding)
    ours, stock = both(path, chunks={})
    xr.testing.assert_identical(ours, stock)
    assert ours["a"].data.chunksize == shards and stock["a"].data.chunksize == (2, 4)
    assert ours["a"].encoding["preferred_chunks"] == dict(zip("yx", shards, strict=True))
    for name in ("chunks", "shards", "compressors", "filters", "serializer"):
        assert ours["a"].encoding[name] == stock["a"].encoding[name]
    # xarray refuses to write them by parts of shards.
    write(ours, tmp_path / "b.zarr")
    xr.testing.assert_identical(*both(tmp_path / "b.zarr"))


def test_large_shards_are_divided_for_dask(tmp_path: Path) -> None:
    zarrow.create_array(
        tmp_path / "a.zarr",
        "a",
        shape=(1 << 14, 1 << 14),
        dtype="f8",
        chunks=(512, 512),
        shards=(1 << 14, 1 << 14),
        dimension_names=["y", "x"],
    )
    found = xr.open_dataset(tmp_path / "a.zarr", engine=ENGINE, chunks={}, consolidated=False)
    assert found["a"].data.chunksize == (1024, 1 << 14)


@needs_new_zarr
def test_unequal_chunks(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        group = zarr.create_group(tmp_path / "a.zarr")
        array = group.create_array(
            "a", shape=(6, 5), chunks=((1, 2, 3), (2, 2, 1)), dtype="i4", dimension_names=["y", "x"]
        )
        array[...] = np.arange(30).reshape(6, 5)
        ours, stock = both(tmp_path / "a.zarr", consolidated=False, chunks={})
        xr.testing.assert_identical(ours, stock)
        assert ours["a"].encoding["preferred_chunks"] == stock["a"].encoding["preferred_chunks"]
        assert ours["a"].chunks == stock["a"].chunks


@needs_new_zarr
def test_shards_of_unequal_shapes(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        group = zarr.create_group(tmp_path / "a.zarr")
        array = group.create_array(
            "a", shape=(7,), chunks=(1,), shards=((1, 2, 4),), dtype="i4", dimension_names=["x"]
        )
        array[...] = np.arange(7)
        ours, stock = both(tmp_path / "a.zarr", consolidated=False)
        xr.testing.assert_identical(ours, stock)
        for name in ("chunks", "shards"):
            assert ours["a"].encoding[name] == stock["a"].encoding[name]
        assert ours["a"].encoding["preferred_chunks"] == {"x": (1, 2, 4)}


def test_closing_leaves_nothing_open_and_may_be_repeated(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    for options in ({}, {"parallel": True}):
        with xr.open_mfdataset([path], engine="zarrow", **options) as found:
            assert found.sizes["time"] == 7
        found.close()
    with xr.open_dataset(path, engine=ENGINE) as found:
        pass
    with xr.open_datatree(path, engine=ENGINE) as opened:
        assert opened.to_dataset().identical(found)


# Indexing


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> tuple[xr.Dataset, xr.Dataset]:
    """Open an array of three dimensions by both engines."""
    values = np.arange(7 * 6 * 5).reshape(7, 6, 5)
    dataset = xr.Dataset({"a": (("z", "y", "x"), values), "s": ("y", np.array(list("abcdef"), object))})
    path = tmp_path_factory.mktemp("cube") / "a.zarr"
    write(dataset, path, encoding={"a": {"chunks": (2, 3, 5)}})
    with quiet():
        ours, stock = both(path, cache=False)
    # xarray's own engine fails for empty slices with a negative step.
    return ours, stock.load()


SIZES = {"z": 7, "y": 6, "x": 5}


def slices(size: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-size - 1, size + 1)
    return st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, 3, -1, -2]))


def one_index(size: int) -> st.SearchStrategy[Any]:
    position = st.integers(-size, size - 1)
    return (
        position
        | slices(size)
        | st.lists(position, min_size=0, max_size=4).map(lambda found: np.array(found, dtype=int))
        | st.lists(st.booleans(), min_size=size, max_size=size).map(np.array)
    )


def fit(index: Any, size: int) -> Any:
    """Return an index within an axis of this size; None if there is none."""
    if isinstance(index, slice):
        return index
    if size == 0:
        return None
    if isinstance(index, np.ndarray):
        return np.resize(index, size) if index.dtype == bool else np.clip(index, -size, size - 1)
    return max(-size, min(index, size - 1))


BASIC_AND_OUTER = st.fixed_dictionaries({}, optional={name: one_index(size) for name, size in SIZES.items()})


@given(steps=st.lists(BASIC_AND_OUTER, min_size=1, max_size=3))
@settings(max_examples=150)
def test_selections_are_xarrays(cube: tuple[xr.Dataset, xr.Dataset], steps: list[dict[str, Any]]) -> None:
    ours, stock = (dataset["a"] for dataset in cube)
    for step in steps:
        fitted = {name: fit(index, stock.sizes[name]) for name, index in step.items() if name in stock.dims}
        fitted = {name: index for name, index in fitted.items() if index is not None}
        ours, stock = ours.isel(fitted), stock.isel(fitted)
    xr.testing.assert_identical(ours.copy(), stock.copy())
    assert asyncio.run(ours.copy().load_async()).identical(stock)


@st.composite
def points(draw: st.DrawFn) -> dict[str, xr.DataArray | slice]:
    """Draw lists of positions of two dimensions each, and slices for the others."""
    shape = draw(st.sampled_from([(2,), (3, 2), (0,)]))
    found: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from("zyx"), min_size=1, max_size=3, unique=True)):
        size = SIZES[name]
        count = int(np.prod(shape))
        values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
        found[name] = xr.DataArray(np.array(values, int).reshape(shape), dims=("p", "q")[: len(shape)])
    for name in set("zyx") - set(found):
        if draw(st.booleans()):
            found[name] = draw(slices(SIZES[name]))
    return found


@given(selection=points(), then=st.integers(0, 1))
@settings(max_examples=150)
def test_points_are_xarrays(
    cube: tuple[xr.Dataset, xr.Dataset], selection: dict[str, Any], then: int
) -> None:
    ours, stock = (dataset["a"].isel(selection) for dataset in cube)
    if stock.sizes["p"] > then:
        ours, stock = ours.isel(p=then), stock.isel(p=then)
    xr.testing.assert_identical(ours.copy(), stock.copy())
    assert asyncio.run(ours.copy().load_async()).identical(stock)


def test_sliced_axes_follow_those_of_points(cube: tuple[xr.Dataset, xr.Dataset]) -> None:
    values = cube[1]["a"].values
    array = ZarrowArray(_leaf(cube[0]["a"]).node, values.dtype)
    positions = np.array([[0, 2], [3, 1], [4, 4]])
    for key in itertools.product([slice(1, 4), positions, positions[::-1]], repeat=3):
        if all(isinstance(part, slice) for part in key):
            continue
        asked = indexing.VectorizedIndexer(key)
        expected = indexing.NumpyIndexingAdapter(values).vindex[asked]
        assert np.array_equal(array[asked], expected)
        assert np.array_equal(asyncio.run(array.async_getitem(asked)), expected)


def _leaf(array: xr.DataArray) -> ZarrowArray:
    """Return the lazy array below xarray's wrappers."""
    data: Any = array.variable._data
    while not isinstance(data, ZarrowArray):
        data = data.array
    return data


def test_results_are_writable_views_without_a_copy(cube: tuple[xr.Dataset, xr.Dataset]) -> None:
    values = cube[0]["a"].copy().values
    values[...] = 0
    assert values.flags.writeable and not values.flags.owndata


# Processes, threads and loops


def test_lazy_arrays_pickle_to_a_few_hundred_bytes(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    ours, stock = both(path)
    leaf = _leaf(ours["packed"])
    stored = pickle.dumps(leaf)
    assert len(stored) < 500
    loaded = pickle.loads(stored)
    assert loaded._array is None
    assert np.array_equal(loaded[indexing.BasicIndexer((slice(None),) * 2)], leaf.node[...].numpy())
    assert loaded._array is not None and pickle.dumps(pickle.loads(stored)) == stored
    same(pickle.loads(pickle.dumps(ours)), stock)
    assert len(pickle.dumps(ours)) < len(pickle.dumps(both(path)[1]))


def test_it_is_not_imported_with_zarrow() -> None:
    program = "import sys, zarrow; assert 'xarray' not in sys.modules; assert zarrow.xarray.load"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_many_files_in_parallel(tmp_path: Path) -> None:
    paths = [
        write(
            cf().assign_coords(time=cf()["time"] + np.timedelta64(7 * number, "D")),
            tmp_path / f"{number}.zarr",
        )
        for number in range(3)
    ]
    options: dict[str, Any] = {
        "parallel": True,
        "data_vars": "minimal",
        "coords": "minimal",
        "compat": "override",
    }
    ours = xr.open_mfdataset(paths, engine="zarrow", **options)
    stock = xr.open_mfdataset(paths, engine="zarr", **options)
    xr.testing.assert_identical(ours, stock)
    assert ours["packed"].chunks == stock["packed"].chunks


def test_dask_processes_reopen_arrays(tmp_path: Path, dask_processes: ProcessPoolExecutor) -> None:
    import dask

    path = write(cf(), tmp_path / "data.zarr")
    ours, stock = both(path, chunks={"time": 2})
    with dask.config.set(scheduler="processes", pool=dask_processes):
        xr.testing.assert_identical(ours.compute(), stock)


def test_threads_read_one_dataset(tmp_path: Path) -> None:
    path = write(kinds(), tmp_path / "data.zarr")
    ours, stock = both(path, cache=False)
    start = threading.Barrier(8)

    def read(_: int) -> bool:
        start.wait()
        return bool(ours.compute().identical(stock))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, range(8)))


def _sum(dataset: xr.Dataset, queue: Any) -> None:
    queue.put(float(dataset["packed"].sum()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_children_read_a_dataset_of_their_parent(tmp_path: Path, method: str) -> None:
    ours, stock = both(write(cf(), tmp_path / "data.zarr"), cache=False)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_sum, args=(ours, queue))
    child.start()
    assert queue.get(timeout=60) == float(stock["packed"].sum())
    child.join(60)
    assert child.exitcode == 0


def test_variables_load_asynchronously(tmp_path: Path) -> None:
    ours, stock = both(write(cf(), tmp_path / "data.zarr"))
    same(asyncio.run(ours.load_async()), stock)


# Errors


def test_missing_stores_and_groups(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(tmp_path / "none.zarr", engine=ENGINE)
    with pytest.raises(KeyError):
        xr.open_dataset(path, engine=ENGINE, group="none")
    with pytest.raises(TypeError, match="'packed' is an array"):
        xr.open_dataset(path, engine=ENGINE, group="packed")


def test_consolidated_metadata_are_required_or_ignored(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr", consolidated=False)
    with pytest.raises(ValueError, match="not consolidated"):
        xr.open_dataset(path, engine=ENGINE, consolidated=True)
    with pytest.warns(RuntimeWarning, match="consolidated"):
        xr.open_dataset(path, engine=ENGINE)
    zarrow.consolidate_metadata(path)
    zarr.create_array(path / "later", shape=(2,), dtype="i4", dimension_names=["x"])
    assert "later" not in xr.open_dataset(path, engine=ENGINE)
    assert "later" in xr.open_dataset(path, engine=ENGINE, consolidated=False)


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_without_names_of_dimensions(tmp_path: Path, version: int) -> None:
    zarrow.create_array(tmp_path / "a.zarr", "a", data=[1, 2], zarr_format=version)
    with pytest.raises(KeyError, match=r"_ARRAY_DIMENSIONS|dimension_names"):
        xr.open_dataset(tmp_path / "a.zarr", engine=ENGINE, consolidated=False)


def test_a_variable_that_cannot_be_opened_may_be_dropped(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr", consolidated=False)
    document = json.loads((path / "packed/zarr.json").read_text())
    document["codecs"].append({"name": "unheard_of", "configuration": {}})
    (path / "packed/zarr.json").write_text(json.dumps(document))
    with pytest.raises(zarrow.CodecError, match="unheard_of"):
        xr.open_dataset(path, engine=ENGINE, consolidated=False)
    found = xr.open_dataset(path, engine=ENGINE, consolidated=False, drop_variables="packed")
    assert "stamp" in found


def test_optional_elements_are_refused_with_a_remedy(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", "a", data=[1, None], missing="optional", dimension_names=["x"])
    found = xr.open_dataset(tmp_path / "a.zarr", engine=ENGINE, consolidated=False)
    with pytest.raises(zarrow.UnsupportedError, match="drop_variables"):
        found.load()


def test_a_damaged_coordinate_does_not_hide_the_others(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    chunk = next(file for file in (path / "x/c").rglob("*") if file.is_file())
    chunk.write_bytes(b"damaged")
    with pytest.raises(zarrow.CodecError):
        xr.open_dataset(path, engine=ENGINE)
    found = xr.open_dataset(path, engine=ENGINE, drop_variables="x")
    assert found.sizes["time"] == 7


def test_bytes_of_path_like_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(cf(), tmp_path / "data.zarr")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("data.zarr", "./data.zarr/", "~/data.zarr", os.path.relpath(tmp_path / "data.zarr")):
        assert xr.open_dataset(name, engine=ENGINE).sizes["time"] == 7


def test_too_many_unequal_chunks_are_refused() -> None:
    stored = [[1, 1 << 30], [2, 1], [1, 1]]
    with pytest.raises(zarrow.LimitError, match="drop_variables"):
        _extents(stored, (1 << 30) + 3)
    assert _extents([[1, 2], [3, 1]], 4) == (1, 1, 2)
    assert _extents([[2, 3]], 5) == 2 and _extents([], 0) == (0,)


def test_times_are_read_again_after_opening(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    ours, stock = both(path, cache=False)
    zarr.open_array(path / "stamp")[:] = 5
    xr.testing.assert_identical(ours["stamp"], stock["stamp"])


def test_it_reads_without_zarr_python(tmp_path: Path) -> None:
    for version in (2, 3):
        options: dict[str, Any] = {"zarr_format": version, "compressors": "zstd", "dimension_names": ["x"]}
        zarrow.create_array(tmp_path / f"{version}.zarr", "a", data=np.arange(4.0), **options)
    program = """
import sys
sys.modules["zarr"] = sys.modules["numcodecs"] = None
import xarray, zarrow
for version, name in ((2, "id"), (3, "name")):
    path = f"{version}.zarr"
    assert zarrow.xarray.ZarrowBackendEntrypoint().guess_can_open(path)
    found = xarray.open_dataset(path, consolidated=False)
    assert found["a"].values.tolist() == [0, 1, 2, 3]
    assert found["a"].encoding["compressors"][0][name] == "zstd"
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)
