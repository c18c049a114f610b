"""Hints as code: what a message names runs and means the same, also in `from … import`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import zarrow
from zarrow import data
from zarrow.hints import functions_of_others
from zarrow.hints.familiar_module_names import MODULE, SUBMODULES
from zarrow.hints.familiar_module_names import MODULES as MODULES_OF_OTHERS

pytestmark = pytest.mark.small_files

MODULES = (
    "checks",
    "codecs",
    "dask",
    "data",
    "errors",
    "files",
    "gpu",
    "io",
    "jax",
    "jobs",
    "ome",
    "ray",
    "stream",
)


def _said(error: BaseException) -> str:
    return str(error).partition(": ")[2]


@pytest.mark.parametrize("name", [*MODULES, "xarray", "zarr_python"])
def test_import_from_shows_the_hint_of_the_attribute(name: str) -> None:
    module = pytest.importorskip(f"zarrow.{name}")
    unknown = next(iter(SUBMODULES.get(f"zarrow.{name}", ())), "write_table")
    with pytest.raises(AttributeError) as attribute:
        getattr(module, unknown)
    with pytest.raises(ImportError, match="cannot import name") as imported:
        exec(f"from zarrow.{name} import {unknown}", {})
    assert _said(imported.value) == _said(attribute.value) != ""
    assert imported.value.name == f"zarrow.{name}" and not hasattr(module, unknown)


def test_import_from_with_many_names_and_of_the_package() -> None:
    many = "\n".join(f"x{number} = {number}" for number in range(300))
    for module, name in (("zarrow.codecs", "ZstdCodec"), ("zarrow", "DataLoader")):
        with pytest.raises(ImportError, match="type ") as raised:
            exec(f"{many}\nfrom {module} import {name}", {})
        assert name in str(raised.value)
    exec("from zarrow import data, codecs, io", {})
    with pytest.raises(ImportError, match="cannot import name 'far_from_all'"):
        exec("from zarrow import far_from_all", {})
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("zarrow.far_from_all")


def test_no_hint_hides_a_name_of_zarrow() -> None:
    assert not [name for name in MODULE if name in dir(zarrow)]
    for module, names in SUBMODULES.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            continue
        assert not [name for name in names if name in getattr(found, "__all__", ())]


def _code(node: Any, name: str) -> str:
    with pytest.raises(AttributeError) as raised:
        getattr(node, name)
    return _said(raised.value).removeprefix("read the array first: ").removeprefix("type ")


def _run(code: str, **names: Any) -> Any:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("dask")
    importlib.import_module("zarrow.xarray")
    return eval(code, {"zarrow": zarrow, "xarray": xarray, **names})


@pytest.mark.filterwarnings("ignore:Failed to open Zarr store:RuntimeWarning")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("path", ["", "a", "a/b"])
def test_names_of_xarray_keep_names_and_chunks(path: str, zarr_format: int, tmp_path: Path) -> None:
    store = tmp_path / 'of "quotes".zarr'
    root = zarrow.create_group(store, zarr_format=zarr_format)
    group = root.create_group(path) if path else root
    values = np.arange(12.0).reshape(4, 3)
    group.create_array(
        "rain", data=values, chunks=(2, 3), dimension_names=["time", "x"], attributes={"u": "K"}
    )
    group.create_array("time", data=np.arange(4) * 10, dimension_names=["time"])
    for array in (group["rain"], zarrow.open(store / path / "rain")):
        found = _run(_code(array, "to_xarray"), array=array)
        assert (found.name, found.dims, found.attrs["u"]) == ("rain", ("time", "x"), "K")
        assert found.chunksizes["time"] == (2, 2) == _run(_code(array, "chunksizes"), array=array)[0]
        assert _run(_code(array, "sel"), array=array)(time=10).values.tolist() == values[1].tolist()
        frame = _run(_code(array, "to_dataframe"), array=array)()
        assert list(frame.index.names) == ["time", "x"] and frame["rain"].tolist() == values.ravel().tolist()
        assert "rain" in _run(_code(array, "parent"))
    assert _run(_code(group, "to_xarray")).sizes == {"time": 4, "x": 3}


@pytest.mark.parametrize("names", [None, ["y", "x"]])
def test_an_array_that_xarray_does_not_open_is_read_first(names: list[str] | None, tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "x.zarr")
    root.create_array("without", data=np.ones(3))
    alone = zarrow.create_array(tmp_path / "alone.zarr", data=np.ones((2, 3)), dimension_names=names)
    for array in (root.create_array("a", data=np.ones((2, 3)), dimension_names=names), alone):
        found = _run(_code(array, "to_xarray"), array=array)
        assert found.dims == (tuple(names) if names else ("dim_0", "dim_1")) and float(found.sum()) == 6
        assert len(_run(_code(array, "to_dataframe"), array=array)) == 6
    assert _code(alone, "parent") == "this is the root of its store, which has no parent"


@pytest.mark.filterwarnings("ignore:Failed to open Zarr store:RuntimeWarning")
def test_a_store_in_memory_is_shown_as_store() -> None:
    store = zarrow.MemoryStore()
    group = zarrow.create_group(store).create_group("a/b")
    array = group.create_array("x", data=np.arange(3), dimension_names=["t"])
    assert _run(_code(array, "to_xarray"), store=store).values.tolist() == [0, 1, 2]
    assert _run(_code(array, "parent"), store=store).path == "a/b"
    assert _run(_code(group, "parent"), store=store).path == "a"


def test_classes_of_loaders_keep_their_signature_and_their_pickles() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(8))
    loader = data.Loader(data.Plan(array, batch_size=4, order="sequential"))
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert pickle.loads(pickle.dumps(data.Plan)) is data.Plan

    class Own(data.Loader):
        def __init__(self, plan: data.Plan, colour: str, **options: Any) -> None:
            super().__init__(plan, **options)
            self.colour = colour

    assert Own(loader.plan, "red", rank=0).colour == "red"
    with pytest.raises(TypeError, match=r"has no parameter 'shuffle': type zarrow.data.Plan"):
        Own(loader.plan, "red", shuffle=True)
    with pytest.raises(ValueError, match="rank 3 is not one of 1 ranks"):
        Own(loader.plan, "red", rank=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        data.Plan()  # type: ignore[call-arg]


def test_the_finder_of_missing_modules_answers_only_import_of_zarrow() -> None:
    assert importlib.util.find_spec("zarrow.storage") is None
    assert importlib.util.find_spec("zarrow.data") is not None
    with pytest.raises(ModuleNotFoundError, match=r"'zarrow.storage': type a path or a URL") as raised:
        importlib.import_module("zarrow.storage")
    assert raised.value.name == "zarrow.storage"
    for name in ("storage", "far_from_all.storage", "numpy.storage"):
        with pytest.raises(ModuleNotFoundError) as plain:
            importlib.import_module(name)
        assert "type" not in str(plain.value)


@pytest.mark.parametrize("name", sorted(MODULES_OF_OTHERS))
def test_import_of_a_module_of_others_says_what_to_type(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'zarrow.{name}': "):
        importlib.import_module(f"zarrow.{name}")


def test_functions_of_others_exist_there() -> None:
    for library, names in (
        ("pandas", functions_of_others.PANDAS),
        ("polars", functions_of_others.POLARS),
        ("pyarrow", functions_of_others.ARROW),
        ("jax", functions_of_others.JAX),
        ("xarray", functions_of_others.XARRAY),
    ):
        module = pytest.importorskip(library)
        assert [name for name in names if not hasattr(module, name)] == []


def test_open_keeps_its_signature_and_its_pickle() -> None:
    assert pickle.loads(pickle.dumps(zarrow.open)) is zarrow.open
    assert list(inspect.signature(zarrow.open).parameters)[:3] == ["store", "path", "mode"]
    assert zarrow.open.__doc__ and zarrow.open.__name__ == "open"


@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "w-", "x"])
def test_a_mode_by_position_is_named_where_the_root_is_an_array(mode: str, tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2])
    for function in (zarrow.open, zarrow.open_array, zarrow.open_group):
        with pytest.raises(zarrow.NotFoundError, match=f"pass mode='{re.escape(mode)}'"):
            function(tmp_path / "a.zarr", mode)
    assert zarrow.open(tmp_path / "a.zarr").shape == (2,)


def test_a_store_before_the_shape_holds_the_array(tmp_path: Path) -> None:
    for function, value in ((zarrow.zeros, 0), (zarrow.ones, 1), (zarrow.empty, 0)):
        array = function(tmp_path / function.__name__, (2,), "i4")
        assert zarrow.open(array.store)[...].tolist() == [value] * 2
    memory = zarrow.MemoryStore()
    zarrow.full(memory, 3, 7, path="x")
    assert zarrow.open(memory, "x")[...].tolist() == [7.0] * 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'shape'"):
        zarrow.zeros(tmp_path / "none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "read_polars",
        "load_pandas",
        "get_dataframe",
        "scan_arrow",
        "read_xr",
        "open_lazy",
        "read_group",
        "load_dask",
        "write_arrow",
        "dump_df",
        "export_table",
        "append_table",
        "extend_dataframe",
    ],
)
@pytest.mark.filterwarnings("ignore:Failed to open Zarr store with")
def test_a_verb_and_a_library_name_a_line_that_works(tmp_path: Path, name: str) -> None:
    table = pd.DataFrame({"x": [1.0, 2.0]})
    store = tmp_path / "t.zarr"
    if name == "read_xr":
        xr.Dataset({"x": ("time", [1.0, 2.0])}).to_zarr(store, consolidated=False)
    elif name == "load_dask":
        zarrow.save(store, [1.0, 2.0])
    else:
        zarrow.save(store, table)
    with pytest.raises(AttributeError) as refused:
        getattr(zarrow, name)
    line = str(refused.value).partition(": type ")[2].partition(", which")[0]
    found = eval(line, {"zarrow": zarrow, "store": store, "x": table, "table": table})
    if name.startswith(("append", "extend")):
        assert zarrow.open(store).num_rows == 4
    elif not name.startswith(("write", "dump", "export")):
        assert len(found) in (1, 2)


@pytest.mark.parametrize("name", ["Loader", "loader", "dataloader", "batches"])
def test_loaders_are_named(name: str) -> None:
    with pytest.raises(AttributeError, match=r"zarrow\.data\.Loader\(array, batch_size=32\)"):
        getattr(zarrow, name)


def test_an_unknown_option_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unknown option 'colour' of load: its options are path, progress"):
        zarrow.load(tmp_path, colour="red")  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "compressors"),
    [
        ({"compression": "gzip"}, [{"name": "gzip"}]),
        ({"compression": "gzip", "compression_opts": 7}, [{"name": "gzip", "level": 7}]),
        ({"compression": 2}, [{"name": "gzip", "level": 2}]),
        ({"compression": True}, [{"name": "gzip"}]),
        ({"compression": "lzf", "shuffle": True}, [{"name": "blosc", "cname": "lz4", "shuffle": "shuffle"}]),
        (
            {"zlib": True, "complevel": 4, "shuffle": True, "fletcher32": True},
            [{"name": "blosc", "cname": "zlib", "clevel": 4, "shuffle": "shuffle"}, {"name": "crc32c"}],
        ),
        ({"zlib": True, "complevel": 1, "shuffle": False}, [{"name": "gzip", "level": 1}]),
        ({"clevel": 3, "shuffle": "bitshuffle"}, [{"name": "blosc", "clevel": 3, "shuffle": "bitshuffle"}]),
        ({"codec": "zstd", "level": 9}, [{"name": "zstd", "level": 9}]),
        ({"fletcher32": True}, [{"name": "crc32c"}]),
        ({"compression": None, "shuffle": False}, []),
        ({"zlib": False, "complevel": 4}, []),
    ],
    ids=str,
)
def test_options_of_compression_become_one_codec_with_their_values(
    options: dict[str, Any], compressors: list[dict[str, Any]]
) -> None:
    with pytest.raises(TypeError) as raised:
        zarrow.create_array(zarrow.MemoryStore(), shape=3, dtype="f4", **options)
    assert f"unknown option{'s' if len(options) > 1 else ''} " in str(raised.value)
    assert all(repr(name) in str(raised.value) for name in options)
    code = _said(raised.value).removeprefix("type compressors=").partition(", or leave")[0]
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.ones(3), compressors=eval(code))
    assert len(array.compressors) == len(compressors)
    for codec, expected in zip(array.compressors, compressors, strict=True):
        assert expected.items() <= {"name": codec["name"], **codec["configuration"]}.items()


@pytest.mark.parametrize(
    "options",
    [{"compression": "szip"}, {"compression": object()}, {"compression_opts": (1, 2)}, {"shuffle": "odd"}],
)
def test_unknown_values_of_compression_get_the_general_hint(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"of create_array: type compressors="):
        zarrow.create_array(zarrow.MemoryStore(), shape=3, dtype="f4", **options)


def test_all_unknown_options_are_in_one_message_without_the_first_error() -> None:
    with pytest.raises(TypeError) as raised:
        zarrow.create_array(
            zarrow.MemoryStore(), shape=3, dtype="f4", attrs={"u": "K"}, fillvalue=3, chunk=2, colour=1
        )
    assert str(raised.value).startswith(
        "unknown options 'attrs' of create_array: type attributes={'u': 'K'}; 'fillvalue': type "
        "fill_value=3; 'chunk': did you mean chunks?; 'colour': its options are attributes, "
    )
    assert raised.value.__suppress_context__
    with pytest.raises(TypeError, match=r"type attributes=\.\.\.$"):
        zarrow.create_array(zarrow.MemoryStore(), shape=3, dtype="f4", attrs={"long": "x" * 100})


@pytest.mark.parametrize(("mode", "own"), [("w+", "w"), ("rb", "r"), ("c", "r"), ("a+", "a")])
def test_modes_of_files_say_the_mode_of_a_store(mode: str, own: str, tmp_path: Path) -> None:
    for function in (zarrow.open, zarrow.open_group, zarrow.open_array):
        with pytest.raises(ValueError, match=f"type mode='{own}'"):
            function(tmp_path / "x.zarr", mode=mode)  # type: ignore[arg-type]
    assert not (tmp_path / "x.zarr").exists()


def test_functions_of_the_modules_of_zarr_python_say_what_to_type() -> None:
    for code in ("from zarrow.api.synchronous import open", "import zarrow.api.synchronous"):
        with pytest.raises(ModuleNotFoundError, match="functions are in zarrow itself"):
            exec(code, {})
    with pytest.raises(ImportError, match=r"type await asyncio\.to_thread\(zarrow\.load, \.\.\.\)"):
        exec("from zarrow.api.asynchronous import load", {})
    with pytest.raises(AttributeError, match=r"type zarrow\.open_group"):
        zarrow.api.open_group  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("id", "group['id']"),
        (["id", "name"], "group[['id', 'name']]"),
        (slice(1, 3), "group[1:3]"),
        (0, 'group[0:5] for rows, or group["name"] for a column'),
    ],
)
def test_a_stream_names_the_selection_of_its_group(key: Any, code: str, tmp_path: Path) -> None:
    zarrow.save(tmp_path / "t.zarr", {"id": [1, 2, 3], "name": ["a", "b", "c"]})
    group = zarrow.open(tmp_path / "t.zarr")
    with pytest.raises(TypeError) as raised:
        group.to_arrow()[key]
    assert _said(raised.value) == f"type {code}"
    assert np.asarray(group.to_arrow()).shape == () and len(list(group.to_arrow())) == 1
    for part in code.partition(" for ")[0::2] if key != 0 else ():
        assert part == "" or len(eval(part, {"group": group})) > 0


@pytest.mark.parametrize(
    ("name", "rest"), [("groupby", ".groupby(...)"), ("to_frame", ".to_frame()"), ("to_series", "")]
)
def test_methods_of_pandas_on_three_axes_name_the_method(name: str, rest: str) -> None:
    x = zarrow.asarray(np.arange(24.0).reshape(2, 3, 4))
    with pytest.raises(AttributeError) as raised:
        getattr(x, name)
    assert _said(raised.value) == f"type xarray.DataArray(x.numpy()).to_series(){rest}"
    series = eval("xarray.DataArray(x.numpy()).to_series()", {"xarray": xr, "x": x})
    assert series.groupby("dim_0").sum().tolist() == [66.0, 210.0]


def test_hints_of_a_categorical_name_what_pandas_has(tmp_path: Path) -> None:
    zarrow.save(tmp_path, pd.Categorical(["u", "v", None]), missing="anndata")
    x = zarrow.load(tmp_path)
    for name in dir(pd.Categorical):
        if name.startswith("_") or hasattr(type(x), name):
            continue
        with pytest.raises(AttributeError) as error:
            getattr(x, name)
        found = re.search(r"type (pandas\.Series\(x\.arrow\(\)\.to_pandas\(\)\)[.\w]+)$", str(error.value))
        if found is not None:
            eval(found[1], {"pandas": pd, "x": x})
    with pytest.raises(AttributeError, match=r"to_pandas\(\)\)\.isin$"):
        x.isin(["u"])
    with pytest.raises(AttributeError, match=r"to_pandas\(\)\)\.cat\.add_categories$"):
        x.add_categories(["w"])


@pytest.mark.parametrize(
    "name", ["byteswap", "copy_", "fill", "fill_", "partition", "put", "setfield", "zero_"]
)
def test_hints_for_changes_of_a_stored_array_store_them(name: str) -> None:
    array = zarrow.create_array({}, data=[1.0, 2.0])
    with pytest.raises(AttributeError, match=r"type array\[[a-z.]*\] = "):
        getattr(array, name)


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a"],
        np.array(["b", "a"]),
        np.array(["2000-01-01", "2001-01-01"], "M8[s]"),
        np.array([(1,)], "i4,"),
    ],
    ids=["text", "text of fixed width", "dates", "structures"],
)
def test_hints_fit_the_data_type(values: Any) -> None:
    from zarrow.hints import names_of_others as others

    x = zarrow.asarray(values)
    stored = zarrow.create_array({}, data=values)
    of_numbers = ["torch()", "jax()", "nan_to_num"] + ["isnan"] * (x.dtype.kind != "M")
    for name in sorted(others.TORCH_TENSOR | others.PANDAS_SERIES | others.XARRAY_ARRAY):
        for owner in (x, stored):
            if hasattr(owner, name):
                continue
            with pytest.raises(AttributeError) as error:
                getattr(owner, name)
            said = str(error.value).partition(": ")[2]
            assert not any(way in said for way in of_numbers), said
            found = re.search(r"type (\S+\.arrow\(\)\.to_pandas\(\)\.\w+)$", said)
            if found is not None:
                eval(found[1], {"x": x, "array": stored})


@pytest.mark.parametrize(
    ("name", "way"),
    [("to_dict", "attrs.asdict()"), ("delete", 'del attrs["name"]'), ("has_key", '"name" in attrs')],
)
def test_methods_of_dicts_that_attributes_lack(name: str, way: str) -> None:
    attrs = zarrow.create_group({}, attributes={"name": 1}).attrs
    with pytest.raises(AttributeError) as error:
        getattr(attrs, name)
    assert str(error.value).endswith(f"type {way}")
    exec(way, {"attrs": attrs})


@pytest.mark.parametrize(("call", "text"), [("load", "leave it out"), ("save", "replaces an array")])
def test_load_and_save_take_no_mode(call: str, text: str) -> None:
    store = {}
    zarrow.save(store, [1])
    arguments = (store,) if call == "load" else (store, [2])
    with pytest.raises(TypeError, match=f"mode.*{text}"):
        getattr(zarrow, call)(*arguments, mode="r")
