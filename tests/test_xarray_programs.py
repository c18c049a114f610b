"""Programs of xarray: unchanged ones with `enable`, `open_zarr`, `load`, and round trips to a server."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from xarray.backends.common import BACKEND_ENTRYPOINTS
from xarray.backends.zarr import ZarrBackendEntrypoint

import zarrow
import zarrow.xarray
from round_trips import Rounds, in_few_round_trips
from xarray_cases import DATASETS, cf, kinds, many, same, tree, write
from xarray_marks import marks
from zarrow.xarray import loading
from zarrow.xarray.arrays import ZarrowArray
from zarrow.xarray.entrypoint import ZarrowBackendEntrypoint

pytestmark = marks("The specified chunks separate")


def is_ours(dataset: xr.Dataset | xr.DataTree) -> bool:
    """Whether a variable that is not in memory is read by zarrow."""
    variables = dataset.variables.values()
    found = set()
    for variable in variables:
        data: Any = variable._data
        if hasattr(data, "dask"):
            data = next(iter(dict(data.dask.layers[f"original-{data.name}"]).values()))
            data = getattr(data, "value", data)
        while hasattr(data, "array") and not isinstance(data, ZarrowArray):
            data = data.array
        if not isinstance(variable, xr.IndexVariable):
            found.add(isinstance(data, ZarrowArray))
    assert len(found) == 1
    return found.pop()


# Unchanged programs


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", DATASETS)
def test_unchanged_programs_read_by_zarrow(tmp_path: Path, name: str, version: int) -> None:
    path = write(DATASETS[name](), tmp_path / "data.zarr", zarr_format=version)
    stock = [xr.open_zarr(path), xr.open_dataset(path), xr.open_dataset(path, engine="zarr", chunks={})]
    with zarrow.xarray.enable():
        ours = [xr.open_zarr(path), xr.open_dataset(path), xr.open_dataset(path, engine="zarr", chunks={})]
    for found, expected in zip(ours, stock, strict=True):
        if name != "nothing":
            assert is_ours(found) and not is_ours(expected)
        same(found, expected)


def test_unchanged_programs_read_trees_by_zarrow(tmp_path: Path) -> None:
    path = write(tree(), tmp_path / "tree.zarr")
    stock = xr.open_datatree(path, engine="zarr")
    with zarrow.xarray.enable():
        ours = xr.open_datatree(path, engine="zarr")
        assert is_ours(ours)
        same(ours, stock)
        assert set(xr.open_groups(path, engine="zarr")) == {node.path for node in stock.subtree}


def test_enable_can_be_undone_and_nested(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    stock = BACKEND_ENTRYPOINTS["zarr"]
    outer = zarrow.xarray.enable()
    with zarrow.xarray.enable():
        assert is_ours(xr.open_zarr(path))
    assert is_ours(xr.open_zarr(path))
    assert xr.backends.list_engines()["zarr"].__class__ is not ZarrBackendEntrypoint
    outer.disable()
    outer.disable()
    assert BACKEND_ENTRYPOINTS["zarr"] == stock and not is_ours(xr.open_zarr(path))
    with outer:
        assert is_ours(xr.open_zarr(path))
    assert BACKEND_ENTRYPOINTS["zarr"] == stock
    assert type(xr.backends.list_engines()["zarr"]) is ZarrBackendEntrypoint


def test_chunks_for_dask_of_unchanged_programs_stay(tmp_path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", np.arange(64.0))})
    path = write(dataset, tmp_path / "a.zarr", encoding={"a": {"chunks": (2,), "shards": (16,)}})
    stock = xr.open_zarr(path)
    with zarrow.xarray.enable():
        same(xr.open_zarr(path), stock)
    assert zarrow.xarray.open_zarr(path)["a"].data.chunksize == (16,)


def test_what_zarrow_does_not_open_xarray_opens(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr", consolidated=False)

    class Unknown(zarr.storage.MemoryStore):
        """A store that only zarr-python can ask."""

        async def get(self, *arguments: Any, **options: Any) -> Any:
            raise RuntimeError("the store is closed")

    with zarrow.xarray.enable():
        for missing in (tmp_path / "none.zarr", f"{path}/none"):
            with pytest.raises(FileNotFoundError) as ours:
                xr.open_zarr(missing)
        with pytest.raises(RuntimeError, match="the store is closed"):
            xr.open_zarr(Unknown(), consolidated=False)
        with pytest.raises(KeyError, match="dimension_names"):
            xr.open_zarr(_without_names(tmp_path), consolidated=False)
    with pytest.raises(FileNotFoundError) as stock:
        xr.open_zarr(f"{path}/none")
    assert str(ours.value) == str(stock.value)


def _without_names(folder: Path) -> Path:
    zarrow.create_array(folder / "unnamed.zarr", "a", data=[1, 2])
    return folder / "unnamed.zarr"


# open_zarr


@pytest.mark.parametrize("chunks", [{}, None, {"x": 1}])
def test_open_zarr_is_xarrays(tmp_path: Path, chunks: Any) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    for options in (
        {},
        {"chunks": chunks},
        {"decode_cf": False},
        {"drop_variables": ["x"], "decode_times": False},
    ):
        ours, stock = zarrow.xarray.open_zarr(path, **options), xr.open_zarr(path, **options)
        assert is_ours(ours)
        same(ours, stock)
    write(tree(), tmp_path / "tree.zarr")
    same(
        zarrow.xarray.open_zarr(tmp_path / "tree.zarr", "cf/deep"),
        xr.open_zarr(tmp_path / "tree.zarr", "cf/deep"),
    )


# load


@pytest.mark.parametrize("chunks", [None, {}])
@pytest.mark.parametrize("name", DATASETS)
def test_load_gives_what_xarray_loads(tmp_path: Path, name: str, chunks: Any) -> None:
    path = write(DATASETS[name](), tmp_path / "data.zarr")
    ours = xr.open_dataset(path, engine="zarrow", chunks=chunks)
    assert zarrow.xarray.load(ours) is ours
    assert all(variable._in_memory for variable in ours.variables.values())
    same(ours, xr.open_dataset(path, engine="zarr", chunks=chunks).load())


def test_load_reads_selections_and_computes_the_rest(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    ours, stock = (xr.open_dataset(path, engine=engine, chunks={}) for engine in ("zarrow", "zarr"))
    for change in (
        lambda dataset: dataset.isel(time=slice(1, 5), x=0),
        lambda dataset: dataset + dataset["label"],
        lambda dataset: dataset.chunk(time=3),
        lambda dataset: dataset["packed"].mean("time").to_dataset(),
    ):
        with xr.set_options(keep_attrs=True):
            xr.testing.assert_identical(
                zarrow.xarray.load(change(ours.drop_vars(["stamp", "lead"]))),
                change(stock.drop_vars(["stamp", "lead"])).load(),
            )
    lazy = xr.open_dataset(path, engine="zarrow").isel(time=[3, 1], x=slice(None, None, -1))
    xr.testing.assert_identical(
        zarrow.xarray.load(lazy), stock.isel(time=[3, 1], x=slice(None, None, -1)).load()
    )


def test_load_takes_names_arrays_and_trees(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    ours, stock = (xr.open_dataset(path, engine=engine) for engine in ("zarrow", "zarr"))
    zarrow.xarray.load(ours, "packed")
    assert ours.variables["packed"]._in_memory and not ours.variables["lead"]._in_memory
    with pytest.raises(KeyError, match="'none'"):
        zarrow.xarray.load(ours, ["packed", "none"])
    not_opened: Any = "data.zarr"
    with pytest.raises(TypeError, match="expected a Dataset, a DataArray or a DataTree, got str"):
        zarrow.xarray.load(not_opened)
    assert not ours.variables["lead"]._in_memory
    array = zarrow.xarray.load(xr.open_dataset(path, engine="zarrow")["packed"])
    assert array.variable._in_memory and array.coords["height"].variable._in_memory
    xr.testing.assert_identical(array, stock["packed"])
    # Also of another engine.
    xr.testing.assert_identical(zarrow.xarray.load(stock), ours)
    path = write(tree(), tmp_path / "tree.zarr")
    ours, stock = (xr.open_datatree(path, engine=engine) for engine in ("zarrow", "zarr"))
    zarrow.xarray.load(ours, ["a", "cf/deep/b"])
    assert ours["cf/deep/b"].variable._in_memory and not ours["none/below/c"].variable._in_memory
    same(zarrow.xarray.load(ours), stock.load())


def test_load_puts_elements_into_given_arrays(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    ours, stock = (xr.open_dataset(path, engine=engine) for engine in ("zarrow", "zarr"))
    out = np.full((2, 7), 5.0, "f4").T
    zarrow.xarray.load(ours, out={"packed": out})
    assert ours["packed"].values is out
    assert np.array_equal(out, stock["packed"].values.astype("f4"), equal_nan=True)
    fresh = xr.open_dataset(path, engine="zarrow")
    for name, wrong, error in (
        ("packed", np.zeros((7, 3)), ValueError),
        ("packed", np.zeros((7, 2), "i4"), TypeError),
        ("none", np.zeros(3), KeyError),
        ("time", np.zeros(7, "M8[ns]"), ValueError),
    ):
        with pytest.raises(error, match=name):
            zarrow.xarray.load(fresh, out={name: wrong})
    assert not fresh.variables["packed"]._in_memory


@pytest.mark.parametrize("chunks", [None, {}])
def test_load_reads_into_given_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: Any) -> None:
    data = np.arange(48.0, dtype="f4").reshape(6, 8)
    given = xr.Dataset(
        {
            "plain": (("y", "x"), data),
            "scaled": (("y", "x"), data),
            "whole": (("y", "x"), data.astype("i8")),
            "rest": ("x", [str(part) for part in range(8)]),
        }
    )
    given["scaled"].encoding = {"scale_factor": 0.5, "dtype": "i2", "_FillValue": -1}
    given["plain"].encoding = {"_FillValue": None}
    path = write(given, tmp_path / "a.zarr")
    direct: list[int] = []
    read_into = loading._read_into

    def counted(items: Any, outs: Any) -> None:
        direct.extend(id(out) for out in outs)
        read_into(items, outs)

    monkeypatch.setattr(loading, "_read_into", counted)
    for select in ({}, {"y": slice(None, None, -2), "x": 3}, {"y": [4, 1]}):
        direct.clear()
        lazy = xr.open_dataset(path, engine="zarrow", chunks=chunks).isel(select)
        expected = given.isel(select)
        # Memory of several variables may be interleaved.
        both = np.zeros((*expected["plain"].shape, 2), "f4")
        out = {
            "plain": both[..., 0],
            "scaled": np.zeros(expected["scaled"].shape, lazy["scaled"].dtype),
            "whole": np.zeros(expected["whole"].shape[::-1], "i8").T,
        }
        zarrow.xarray.load(lazy, out=out)
        for name, values in expected.items():
            assert (lazy[name].values == values.values).all()
        assert all(lazy[name].values is target for name, target in out.items())
        if not select or (chunks is None and "x" in select):
            assert direct == [id(out["plain"]), id(out["whole"])]
    lazy = xr.open_dataset(path, engine="zarrow")
    target = np.zeros((6, 8), "f4")
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        zarrow.xarray.load(lazy, out={"plain": target})
    assert not lazy.variables["plain"]._in_memory


def test_a_failed_load_changes_nothing(tmp_path: Path) -> None:
    path = write(kinds(), tmp_path / "data.zarr")
    next(file for file in (path / "float16/c").rglob("*") if file.is_file()).write_bytes(b"damaged")
    found = xr.open_dataset(path, engine="zarrow")
    with pytest.raises(zarrow.CodecError, match="float16"):
        zarrow.xarray.load(found)
    assert not any(v._in_memory for v in found.variables.values() if not isinstance(v, xr.IndexVariable))
    assert zarrow.xarray.load(found, ["bool", "strings"])["bool"].values.tolist() == [True, False, True]


# Round trips


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Rounds]]:
    """Serve a folder, and count round trips."""
    rounds = Rounds()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            rounds.wait()
            super().do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", rounds
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        rounds.close()


@pytest.mark.parametrize("version", [2, 3])
@in_few_round_trips(served)
def test_a_dataset_opens_in_two_round_trips_and_loads_in_one(
    server: tuple[str, Rounds], tmp_path: Path, version: int
) -> None:
    path = write(many(), tmp_path / "many.zarr", zarr_format=version)
    url, rounds = server
    for chunks in (None, {}):
        found = xr.open_dataset(f"{url}/many.zarr", engine="zarrow", chunks=chunks)
        rounds.expect(2)
        zarrow.xarray.load(found)
        rounds.expect(1)
        xr.testing.assert_identical(found, xr.open_dataset(path, engine="zarr"))


@in_few_round_trips(served)
def test_a_tree_opens_in_two_round_trips(server: tuple[str, Rounds], tmp_path: Path) -> None:
    nodes = {
        f"/{first}/{second}": xr.Dataset(
            {"a": (("time", "x"), np.zeros((2, 3)))},
            coords={"x": [1, 2, 3], "time": pd.date_range("2000", periods=2)},
        )
        for first in "abcde"
        for second in "fghij"
    }
    path = write(xr.DataTree.from_dict(nodes), tmp_path / "tree.zarr")
    url, rounds = server
    found = xr.open_datatree(f"{url}/tree.zarr", engine="zarrow")
    rounds.expect(2)
    zarrow.xarray.load(found)
    rounds.expect(1)
    xr.testing.assert_identical(found, xr.open_datatree(path, engine="zarr"))


def test_the_engine_class_can_be_passed(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "data.zarr")
    assert is_ours(xr.open_dataset(path, engine=ZarrowBackendEntrypoint))


@pytest.mark.parametrize("chunks", [None, {}])
def test_a_batch_has_other_byte_orders_joined_characters_and_elements_in_memory(
    tmp_path: Path, chunks: Any
) -> None:
    made = xr.Dataset(
        {
            "big": ("x", np.array([1, 2], ">i4")),
            "text": ("x", np.array(["a", "bc"], ">U2")),
            "plain": ("x", [1.5, 2.5]),
            "joined": (("x", "n"), np.array([[b"a", b"b"], [b"c", b""]], "S1")),
        }
    )
    made.to_zarr(tmp_path / "x.zarr", zarr_format=2)
    lazy = xr.open_dataset(tmp_path / "x.zarr", engine="zarrow", chunks=chunks)
    lazy["plain"].load()
    out = {"big": np.zeros(2, "i8"), "plain": np.zeros(2)}
    loaded = zarrow.xarray.load(lazy, out=out)
    xr.testing.assert_identical(loaded, xr.open_dataset(tmp_path / "x.zarr", engine="zarr").load())
    assert (out["big"].tolist(), out["plain"].tolist()) == ([1, 2], [1.5, 2.5])
    assert all(loaded[name].values is target for name, target in out.items())
