"""Opening a missing array or group: the message names existing nodes, similar names, and a remedy."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.storage

import zarrow
from zarrow.api import opening
from zarrow.hints import not_found

pytestmark = pytest.mark.small_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = zarrow.create_group("data.zarr")
    root["temperature"] = np.arange(3.0)
    root["pressure"] = np.arange(3.0)
    root.create_group("model")["rain"] = [1, 2]
    return tmp_path


def hdf5(path):
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/zarr.json", "{}")


def icechunk(path):
    (path / "refs").mkdir(parents=True)
    (path / "snapshots").mkdir()


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        ("dta.zarr", None, r"there is no such folder; did you mean '.*/data\.zarr'\?"),
        ("nothing-like-it", None, "there is no such folder$"),
        ("missing/deeper/data.zarr", None, "there is no folder '.*/missing'$"),
        ("~/data.zarr", None, r"os\.path\.expanduser\('~/data\.zarr'\)"),
        ("empty", os.mkdir, 'the folder is empty: mode="a" creates a group in it'),
        ("file.txt", lambda path: path.write_text("x"), "this is a file; a store is a folder"),
        (
            "a.zip",
            zipped,
            r"file has no zarr\.json, .*, but there is one in a folder: zarrow\.open\('a\.zip', 'data'\)$",
        ),
        ("a.nc", hdf5, "HDF5 or netCDF-4 file, not Zarr: open it with h5py or xarray"),
        ("a.npy", lambda path: np.save(path, [1]), r"open it with numpy\.load"),
        ("ice", icechunk, "Icechunk repository"),
        (".", None, r"no zarr\.json, \.zarray or \.zgroup, but a folder below it has: 'data\.zarr'"),
        ("data.zarr/zarr.json", None, r"metadata document of a node: open its folder, 'data\.zarr'"),
        ("data.zarr/pressure/c", None, r"belongs to the node at '.*/data\.zarr/pressure'"),
    ],
)
def test_paths_without_a_node_name_their_contents(folder, name, make, told):
    if make is not None:
        make(folder / name)
    with pytest.raises(zarrow.NotFoundError, match=told) as raised:
        zarrow.open(name)
    assert isinstance(raised.value, FileNotFoundError) and raised.value.store == name


def test_a_node_of_a_replaced_folder_is_to_be_opened_again(folder):
    group = zarrow.open("data.zarr")
    shutil.move("data.zarr", "moved")
    shutil.copytree("moved", "data.zarr")
    shutil.rmtree("moved")
    with pytest.raises(zarrow.NotFoundError, match="was replaced after this node was opened"):
        group.attrs["unit"] = "m"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("temprature", r'did you mean "temperature"\?'),
        ("Pressure", r'did you mean "pressure"\?'),
        ("model/rian", r'did you mean "rain"\?'),
        ("modle/rain", r'did you mean "model" instead of "modle"\?'),
        ("pressure/x", '"/pressure" is an array, which has no members'),
        ("humidity", r'path "humidity"\)$'),
    ],
)
@pytest.mark.parametrize("consolidated", [False, True])
def test_close_names_are_suggested(folder, path, told, consolidated):
    if consolidated:
        zarrow.consolidate_metadata("data.zarr")
    for opened in (lambda: zarrow.open("data.zarr")[path], lambda: zarrow.open("data.zarr", path)):
        with pytest.raises(KeyError, match=told):
            opened()


def test_outdated_consolidated_metadata_are_named(folder):
    zarrow.consolidate_metadata("data.zarr")
    shutil.copytree("data.zarr/pressure", "data.zarr/copied")
    with pytest.raises(KeyError, match=r"not in the consolidated metadata.*call consolidate_metadata\(\)"):
        zarrow.open("data.zarr")["copied"]
    zarrow.consolidate_metadata("data.zarr")
    assert zarrow.open("data.zarr")["copied"].shape == (3,)


OPENING = {
    "open": zarrow.open,
    "open_group": zarrow.open_group,
    "open_group with attributes": lambda *given: zarrow.open_group(*given, attributes={"a": 1}),
    "open_array": zarrow.open_array,
    "open_array with a shape": lambda *given: zarrow.open_array(*given, shape=3, dtype="i4"),
    "load": zarrow.load,
    "consolidate_metadata": zarrow.consolidate_metadata,
    "open_async": lambda *given: asyncio.run(zarrow.open_async(*given)),
}


@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "w-", "x"])
@pytest.mark.parametrize("store", ["data.zarr", "new.zarr"])
@pytest.mark.parametrize("opens", OPENING.values(), ids=list(OPENING))
def test_a_mode_passed_as_the_path(folder, store, mode, opens):
    def names():
        return sorted(path.relative_to(folder) for path in folder.rglob("*"))

    before = names()
    with pytest.raises(zarrow.NotFoundError, match="to set the mode, pass mode=") as raised:
        opens(store, mode)
    if store == "data.zarr" and opens is zarrow.open:
        assert f'no array or group has the path "{mode}"' in str(raised.value)
    assert f'mode="{mode}"' in str(raised.value) and names() == before


@pytest.mark.parametrize(
    ("file_mode", "mode"), [("w+", "w"), ("wb", "w"), ("a+", "a"), ("ab", "a"), ("rw", "r+")]
)
@pytest.mark.parametrize("store", ["data.zarr", "new.zarr"])
@pytest.mark.parametrize("name", ["open", "open_group", "open_array", "open_array with a shape"])
def test_a_mode_of_files_passed_as_the_path(folder, store, file_mode, mode, name):
    before = sorted(folder.rglob("*"))
    with pytest.raises(zarrow.NotFoundError, match=re.escape(f"to set the mode, pass mode='{mode}'")):
        OPENING[name](store, file_mode)
    assert sorted(folder.rglob("*")) == before


def test_a_path_that_reads_like_a_mode(folder):
    assert zarrow.create_array("data.zarr", "x", data=[1, 2]).path == "x"
    assert zarrow.open_array("data.zarr", "x", shape=3, dtype="f4").shape == (2,)
    assert zarrow.create_group("data.zarr", "w").path == "w"
    assert zarrow.open_group("data.zarr", "w", attributes={"a": 1}).attrs == {"a": 1}
    assert zarrow.open_group("data.zarr", path="a").path == "a"
    assert zarrow.open_group("data.zarr", "r", mode="a").path == "r"
    for create in (zarrow.create_group, lambda *given: zarrow.create_array(*given, data=[1])):
        with pytest.raises(TypeError, match=r"got the mode 'w-' as the path of a node: type overwrite=True"):
            create("data.zarr", "w-")
        with pytest.raises(TypeError, match=r"got the mode 'rw' as the path of a node: type overwrite=True"):
            create("data.zarr", "rw")
    before = sorted(folder.rglob("*"))
    with pytest.raises(TypeError, match=r"got the mode 'r\+' as the path of a node: type if_exists="):
        zarrow.copy(zarrow.open("data.zarr"), "copy.zarr", "r+")
    assert sorted(folder.rglob("*")) == before
    assert zarrow.create_group("data.zarr", path="w-").path == "w-"


def test_a_path_like_a_mode_in_code_without_a_module(folder: Path) -> None:
    names = {"create": zarrow.create_array, "store": folder / "new.zarr"}
    exec('made = create(store, "x", data=[1])', names)
    assert zarrow.open(folder / "new.zarr")["x"].shape == (1,)
    with pytest.raises(TypeError, match="got the mode 'rw' as the path"):
        exec('create(store, "rw", data=[1])', names)


@pytest.mark.parametrize("name", ["rb", "wb", "rw", "r+", "w-", "w"])
def test_nodes_named_like_modes_are_made_and_copied(folder: Path, name: str) -> None:
    store = zarrow.MemoryStore()
    root = zarrow.create_group(store)
    root.create_array(name, data=[1, 2])
    for target in (zarrow.MemoryStore(), folder / "target.zarr"):
        zarrow.copy(root, target)
        zarrow.copy(root[name], target, f"deep/{name}", zarr_format=3)
        zarrow.zeros((3,), store=target, path="zeros/" + name)
        assert zarrow.open(target)[name][...].tolist() == [1, 2]
    other = zarrow.MemoryStore()
    zarrow.copy(root[name], other, path=name)
    assert zarrow.open(other)[name][...].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: zarrow.open(5), TypeError, r"a store is a folder or a zip file .*, got int"),
        (
            lambda: zarrow.open({"a": b""}),
            FileNotFoundError,
            r"no Zarr array or group here \(store <dict>\)$",
        ),
        (lambda: zarrow.open("hdfs://host/x"), NotImplementedError, "hdfs:// URLs are not supported"),
        (
            lambda: zarrow.open("SWIFT://host/x"),
            NotImplementedError,
            "URLs are not supported: expected a folder",
        ),
        (lambda: zarrow.open("file://x"), ValueError, "needs an absolute path"),
        (
            lambda: zarrow.open("data.zarr", 5),
            TypeError,
            "expected the path of an array or a group as a str.*got int|this group is a table",
        ),
        (
            lambda: zarrow.open("data.zarr")[0],
            TypeError,
            "expected the path of an array or a group as a str.*got int|this group is a table",
        ),
        (lambda: zarrow.open("data.zarr", mode="q"), ValueError, 'mode is "q", expected "r"'),
        (lambda: zarrow.open("data.zarr", limits=3), TypeError, r"expected a zarrow\.DecodeLimits"),
        (lambda: zarrow.DecodeLimits(max_ndim=-1), ValueError, "max_ndim is -1, expected an integer from 0"),
        (lambda: zarrow.DecodeLimits(max_ratio="7"), TypeError, "integer"),
        (lambda: zarrow.set_num_threads(0), ValueError, "0 threads: expected 1 or more"),
        (lambda: zarrow.set_num_threads(-3), ValueError, "-3 threads: expected 1 or more"),
        (
            lambda: zarrow.create_group("data.zarr"),
            FileExistsError,
            "a group is already here.*overwrite=True",
        ),
        (
            lambda: zarrow.create_group("new.zarr", "a/../b"),
            ValueError,
            'invalid path.*"\\.\\." are not allowed',
        ),
        (lambda: zarrow.create_group("new.zarr", "a//b"), ValueError, "a name between its slashes is empty"),
        (
            lambda: zarrow.create_group("new.zarr", "a/__b"),
            ValueError,
            'begin with "__" are reserved by Zarr',
        ),
        (lambda: zarrow.open("data.zarr", ".zarrow-1"), ValueError, "are reserved for writers"),
        (lambda: zarrow.open("data.zarr/pressure").resize((3, 3)), ValueError, "each of the 1 axes.*got"),
        (
            lambda: zarrow.open("data.zarr", mode="r")["pressure"].write(0, 1),
            OSError,
            r'read-only.*mode="r\+"',
        ),
    ],
)
def test_wrong_arguments_name_the_right_ones(folder, call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_groups_contain_only_names(folder):
    root = zarrow.open("data.zarr")
    assert 5 not in root and None not in root and "model" in root and root.get("temprature") is None


def test_a_missing_library_says_how_to_install_it(folder):
    lines = (
        "import sys, zarrow",
        "sys.modules['polars'] = sys.modules['pyarrow'] = None",
        "del sys.modules['polars'], sys.modules['pyarrow']",
        "sys.meta_path.insert(0, type('Nothing', (), {'find_spec': staticmethod(",
        "    lambda name, *rest: (_ for _ in ()).throw(ModuleNotFoundError(name, name=name))",
        "    if name in ('polars', 'pyarrow') else None)}))",
        "tensor = zarrow.open('data.zarr')['pressure'][:]",
        "for face in (tensor.polars, tensor.arrow):",
        "    try:",
        "        face()",
        "    except ModuleNotFoundError as error:",
        "        print(error, error.name)",
    )
    finished = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert finished.stdout.splitlines() == [
        "this needs polars, which is not installed: pip install 'zarrow[polars]' polars",
        "this needs pyarrow, which is not installed: pip install 'zarrow[arrow]' pyarrow",
    ]


def test_an_invalid_number_of_threads_warns():
    for value, warned in (("abc", True), ("0", True), ("-2", True), ("3", False), ("", False)):
        command = [sys.executable, "-W", "always", "-c", "import zarrow"]
        environment = {**os.environ, "ZARROW_NUM_THREADS": value}
        finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert (f'ZARROW_NUM_THREADS is "{value}" and is ignored' in finished.stderr) == warned


def test_unknown_options_are_not_arrays(tmp_path):
    with pytest.raises(TypeError, match="save takes no zarr_format"):
        zarrow.save(tmp_path / "a.zarr", a=[1], zarr_format=2)
    with pytest.raises(TypeError, match="save takes no overwrite"):
        zarrow.save(tmp_path / "a.zarr", [1], overwrite=True)
    assert not (tmp_path / "a.zarr").exists()
    zarrow.save(tmp_path / "a.zarr", {"overwrite": [True]})
    with pytest.raises(TypeError, match="unknown option 'cach_bytes' of open: did you mean cache_bytes"):
        zarrow.open(tmp_path / "a.zarr", cach_bytes=1)
    with pytest.raises(ValueError, match="stores the missing elements of data=: pass data="):
        zarrow.create_array(tmp_path / "b.zarr", shape=3, dtype="i4", missing="fill")


def test_nested_groups_are_loaded(tmp_path):
    zarrow.save(tmp_path, {"a": {"b": [1, 2]}, "c": 3.5})
    loaded = zarrow.load(tmp_path)
    assert isinstance(loaded, dict)
    assert loaded["a"]["b"].tolist() == [1, 2] and loaded["c"].item() == 3.5


@pytest.mark.parametrize("path", ["", "model", "missing", "model/missing"])
@pytest.mark.parametrize("replacements", [0, 1, 2, 3, 4])
def test_a_missing_node_is_opened_again_only_if_its_folder_was_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, replacements: int
) -> None:
    store, original = folder / "data.zarr", opening._open_members
    numbers = itertools.count(1)

    def open_members(*arguments: Any) -> Any:
        number = next(numbers)
        if number > replacements:
            return original(*arguments)
        # Another process replaces the root, or the group at the path.
        replaced = store / path.rpartition("/")[0] if number % 2 else store
        replaced.rename(folder / f"old{number}")
        try:
            return original(*arguments)
        finally:
            shutil.copytree(folder / f"old{number}", replaced)

    monkeypatch.setattr(opening, "_open_members", open_members)
    if "missing" in path or replacements == 4:
        with pytest.raises(zarrow.NotFoundError):
            zarrow.load(store, path)
        assert next(numbers) - 1 <= min(2 + replacements, 4)
    else:
        assert "rain" in (zarrow.load(store, path) if path else zarrow.load(store)["model"])
        assert next(numbers) - 1 == replacements + 1


def test_a_missing_folder_is_opened_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, opened = opening._open_members, list[object]()

    def open_members(store: Any, path: str) -> Any:
        opened.append(store)
        return original(store, path)

    monkeypatch.setattr(opening, "_open_members", open_members)
    for store in ("nothing-like-it", zarrow.MemoryStore(), {}):
        with pytest.raises(zarrow.NotFoundError):
            zarrow.load(store)
    assert len(opened) == 3


def test_a_table_with_an_invalid_column_replaces_nothing(tmp_path):
    zarrow.save(tmp_path, {"a": [1, 1, 1], "b": [2, 2, 2]})
    with pytest.raises(ValueError) as raised:
        zarrow.save(tmp_path, {"a": [9, 9], "b": [[1], [2, 3]]})
    assert raised.value.__notes__ == ["nothing was stored"]
    assert zarrow.open(tmp_path)["a"][...].tolist() == [1, 1, 1]
    circle = {}
    circle["circle"] = circle
    with pytest.raises(ValueError, match="contains itself"):
        zarrow.save(tmp_path / "circle", circle)


def test_an_unknown_form_of_missing_elements(tmp_path):
    with pytest.raises(ValueError, match="expected 'optional', 'fill', 'anndata'"):
        zarrow.create_array(tmp_path, data=[1, 2], missing="nonsense")


def test_a_store_in_memory_names_the_key_that_is_in_the_way() -> None:
    with pytest.raises(zarrow.StoreError, match='path "a/b"'):
        zarrow.MemoryStore({"a": b"", "a/b": b""})


def test_devices_and_broken_links(folder):
    os.mkfifo("pipe")
    (folder / "link").symlink_to("nowhere")
    for place, told in [
        ("/dev/zero", "this is a device, a pipe or a socket; a store is a folder"),
        ("pipe", "this is a device, a pipe or a socket; a store is a folder"),
        ("link", "this is a link to 'nowhere', which does not exist"),
    ]:
        with pytest.raises(zarrow.NotFoundError, match=told) as raised:
            zarrow.open(place)
        assert "did you mean" not in str(raised.value)


def test_a_folder_that_appears_meanwhile_is_not_a_device(folder: Path) -> None:
    assert not_found._special(folder) is None
    assert not_found._special(folder / "data.zarr" / "zarr.json") is None


def test_a_link_without_a_target_is_named(folder: Path) -> None:
    (folder / "link").symlink_to("nowhere")
    group = zarrow.create_group(folder / "g")
    (folder / "g/lost").symlink_to(folder / "nothing")
    (folder / "g/circle").symlink_to("circle")
    store = '\'?"?link"?\'? is a symbolic link to "nowhere", which does not exist: remove the link'
    node = f'"lost" is a symbolic link to "{folder}/nothing", which does not exist'
    for call in (
        lambda: zarrow.create_group("link"),
        lambda: zarrow.create_array("link", shape=3, dtype="i4"),
        lambda: zarrow.save("link", [1, 2]),
        lambda: zarrow.open("link", mode="a"),
    ):
        with pytest.raises(zarrow.StoreError, match=store):
            call()
    for call in (
        lambda: group["lost"],
        lambda: group["lost/below"],
        lambda: zarrow.open("g", "lost"),
        lambda: group.create_array("lost", shape=3, dtype="i4"),
        lambda: group.create_group("lost/below"),
        lambda: group.__setitem__("lost", [1, 2]),
    ):
        with pytest.raises(zarrow.ZarrowError, match=node):
            call()
    assert (folder / "g/lost").is_symlink() and "lost" not in list(group)


@pytest.mark.parametrize("url", ["s3://bucket/a.zarr", "https://host/a.zarr", "gs://bucket/a/b"])
def test_a_path_made_of_a_url_says_to_pass_the_url(url: str) -> None:
    for call in (zarrow.open, zarrow.create_group, zarrow.load):
        with pytest.raises(ValueError, match=f"pass it as a str, .{url}"):
            call(Path(url))


def test_archives_in_the_cloud_by_zip_urls(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path of the node: open\(.https://host/a.zip., .x/y"):
        zarrow.open("zip://x/y::https://host/a.zip")
    with pytest.raises(ValueError, match=r"ending in \.zip"):
        zarrow.open("zip://s3://bucket/a", storage_options={"anon": True})


def test_a_store_path_says_what_to_type() -> None:
    store = zarr.storage.MemoryStore()
    zarr.create_group(store, path="a")
    with pytest.raises(TypeError, match=r"store_path\.store, 'a'"):
        zarrow.open(zarr.storage.StorePath(store, "a"))
