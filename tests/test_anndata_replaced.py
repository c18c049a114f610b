"""Saving an AnnData where one exists: the old one or the new one is there, whatever fails."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anndata as ad
import numpy as np
import pytest

import zarrow
from zarrow.anndata import elements


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="anndata|zarr")
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*(setting|zarr v3)")
        yield


def made(number: int) -> ad.AnnData:
    return ad.AnnData(
        np.full((4, 3), float(number)),
        layers={f"layer{at}": np.full((4, 3), float(number)) for at in range(4)},
        uns={f"key{number}": number, **{f"u{at}": np.full(3, number) for at in range(20)}},
    )


def number_of(adata: ad.AnnData) -> int:
    """Return the number of a whole AnnData; raise if it is mixed of two."""
    number = int(adata.X[0, 0])
    arrays = [adata.X, *(adata.layers[f"layer{at}"] for at in range(4))]
    assert all((array == number).all() for array in arrays) and adata.uns[f"key{number}"] == number
    assert len(adata.uns) == 21 and all((adata.uns[f"u{at}"] == number).all() for at in range(20))
    return number


def check_whole(folder: Path, *numbers: int) -> None:
    assert number_of(zarrow.load(folder)) in numbers
    assert number_of(ad.read_zarr(folder)) in numbers


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


NAMES = [".", "..", "__x", "zarr.json", "x" * 300, "é" * 130, "a\x00b", "a\\b", ".zarrow-x"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["uns", "obs", "layers", "obsm"])
def test_a_name_that_zarr_refuses_keeps_the_old_anndata(tmp_path: Path, name: str, place: str) -> None:
    adata = ad.AnnData(np.ones((2, 2)))
    if place == "obs":
        adata.obs[name] = [1, 2]
    else:
        getattr(adata, place)[name] = np.ones((2, 2))
    for store in (tmp_path / "a.zarr", zarrow.MemoryStore()):
        zarrow.save(store, made(1))
        with pytest.raises(zarrow.ExchangeError, match=place):
            zarrow.save(store, adata)
        assert number_of(zarrow.load(store)) == 1
    with pytest.raises(zarrow.ExchangeError, match=place):
        zarrow.save(tmp_path / "new.zarr", adata)
    assert names_in(tmp_path) == ["a.zarr"]


CHILD = """
import resource, signal, sys, warnings
warnings.simplefilter("ignore")
import anndata as ad, numpy as np, zarrow
adata = ad.AnnData(np.ones((2, 2)), uns={"long": np.random.default_rng(0).random(60_000)})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for folder in sys.argv[2:]:
    try:
        zarrow.save(folder, adata, path=sys.argv[1])
    except zarrow.StoreError as error:
        print(error.__notes__)
    else:
        raise AssertionError("saved")
"""


def test_a_write_that_fails_keeps_the_old_anndata(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", made(1))
    names = [str(tmp_path / name) for name in ("a.zarr", "new.zarr")]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "", *names], capture_output=True, text=True, timeout=120, check=True
    )
    assert all(f"nothing was changed at {name!r}" in done.stdout for name in names)
    check_whole(tmp_path / "a.zarr", 1)
    assert names_in(tmp_path) == ["a.zarr"]


def test_a_killed_save_leaves_the_old_or_the_new_anndata(tmp_path: Path) -> None:
    folder = tmp_path / "a.zarr"
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_anndata_replaced import made, zarrow\n"
        "while True:\n"
        "    for number in (1, 2):\n"
        f"        zarrow.save({str(folder)!r}, made(number))\n"
        "        print(number, flush=True)\n"
    )
    for at in range(4):
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.013 * at)
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=60)
        check_whole(folder, 1, 2)
    zarrow.save(folder, made(3))
    check_whole(folder, 3)
    assert names_in(tmp_path) == ["a.zarr"]


@pytest.mark.parametrize("consolidated", [False, True])
def test_an_anndata_below_a_group_is_replaced_whole(tmp_path: Path, consolidated: bool) -> None:
    folder = tmp_path / "g"
    root = zarrow.create_group(folder)
    root["other"] = np.arange(3)
    if consolidated:
        root.consolidate_metadata()
        root = zarrow.open(folder)
    for number in (1, 2):
        root["deep/a"] = made(number)
        check_whole(folder / "deep/a", number)
        assert root["deep/a/X"][0, 0] == number
    zarrow.save(folder, made(3), path="deep/a")
    again = zarrow.open(folder)
    assert again["deep/a/X"][0, 0] == 3 and again["other"][:].tolist() == [0, 1, 2]
    assert sorted(again["deep/a/uns"]) == sorted(made(3).uns)
    assert number_of(zarrow.load(folder, "deep/a")) == 3
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "deep/a", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "nothing was changed at 'deep/a'" in done.stdout
    check_whole(folder / "deep/a", 3)
    assert not list(tmp_path.rglob(".zarrow-*"))


def test_of_two_savers_the_last_one_wins(tmp_path: Path) -> None:
    folder, failed = tmp_path / "a.zarr", []

    def save(number: int) -> None:
        try:
            for _ in range(4):
                zarrow.save(folder, made(number))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failed
    check_whole(folder, 1, 2)
    assert names_in(tmp_path) == ["a.zarr"]


def test_a_load_during_which_the_anndata_is_replaced_reads_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, is_before = tmp_path / "a.zarr", iter([True, False])
    zarrow.save(folder, alike(0))
    original = elements.Batch.read

    def read(batch: elements.Batch) -> None:
        # Equal names: the new arrays could be read by the description of the old one.
        when = next(is_before, None)
        if when is True:
            zarrow.save(folder, alike(1))
        original(batch)
        if when is False:
            zarrow.save(folder, alike(2))

    monkeypatch.setattr(elements.Batch, "read", read)
    adata = zarrow.load(folder)
    assert adata.X[0, 0] == adata.uns["number"] == 2 and next(is_before, None) is None

    def replace_always(batch: elements.Batch) -> None:
        original(batch)
        zarrow.save(folder, alike(4))

    monkeypatch.setattr(elements.Batch, "read", replace_always)
    with pytest.raises(zarrow.StaleHandleError, match="replaced during each"):
        zarrow.load(folder)


def alike(number: int) -> ad.AnnData:
    return ad.AnnData(np.full((4, 3), float(number)), uns={"number": number})


def test_a_reader_beside_a_saver_gets_a_whole_anndata(tmp_path: Path) -> None:
    folder, is_saved = tmp_path / "a.zarr", threading.Event()
    zarrow.save(folder, made(0))

    def save() -> None:
        try:
            for number in range(30):
                zarrow.save(folder, made(number % 3))
        finally:
            is_saved.set()

    saver = threading.Thread(target=save)
    saver.start()
    try:
        while not is_saved.is_set():
            opened = zarrow.open(folder)
            # The folder that was opened may be replaced before its attributes are asked for.
            with contextlib.suppress(zarrow.NotFoundError):
                assert opened.attrs["encoding-type"] == "anndata"
            number_of(zarrow.load(folder))
    finally:
        saver.join(timeout=120)
    check_whole(folder, 2)


class Full(dict[str, bytes]):
    """A mapping that takes only some values."""

    left = 10**9

    def __setitem__(self, key: str, value: bytes) -> None:
        if self.left <= 0:
            raise OSError("full")
        self.left -= 1
        super().__setitem__(key, value)


def test_an_unfinished_anndata_says_so_and_is_replaced() -> None:
    full = Full()
    full.left = 40
    store = zarrow.PythonStore(full, sole_writer=True)
    with pytest.raises(zarrow.StoreError, match="full"):
        zarrow.save(store, made(1))
    with pytest.raises(zarrow.MetadataError, match=r"unfinished.*save"):
        zarrow.load(store)
    full.left = 10**9
    zarrow.save(store, made(2))
    assert number_of(zarrow.load(store)) == 2


def test_a_parent_that_cannot_be_written_and_links(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "below" / "a.zarr"
    zarrow.save(folder, made(1))
    (tmp_path / "link.zarr").symlink_to(folder)
    zarrow.save(tmp_path / "link.zarr", made(2))
    assert (tmp_path / "link.zarr").is_symlink()
    check_whole(folder, 2)
    zarrow.save(folder.as_uri(), made(3))
    check_whole(folder, 3)
    folder.chmod(0o750)
    zarrow.save(folder, made(4))
    assert folder.stat().st_mode & 0o777 == 0o750

    monkeypatch.setattr("zarrow.anndata.saving._create_whole_group", lambda *_, **__: False)
    zarrow.save(folder, made(5))
    check_whole(folder, 5)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    zarrow.save(".", made(7))
    check_whole(Path(), 7)
    monkeypatch.undo()
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    zarrow.save(other, made(6))
    check_whole(other, 6)
    assert (other / "notes.txt").read_text() == "mine"


USER = """
import os, sys, warnings
warnings.simplefilter("ignore")
import anndata as ad, numpy as np, zarrow
folder = sys.argv[1]
for _ in range(2):
    zarrow.save(folder + "-first", ad.AnnData(np.ones((3, 3))))  # imports everything
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
zarrow.save(folder, ad.AnnData(np.ones((3, 3))))
array = zarrow.open(folder)["X"]
array[...]
zarrow.save(folder, ad.AnnData(np.ones((3, 3))))
try:
    print(array[...])
except zarrow.StoreError:
    print("error")
"""


def test_an_array_of_the_old_anndata_is_never_its_fill_value() -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", USER, f"{parent}/a.zarr"], capture_output=True, text=True, timeout=120
        )
    assert done.stdout == "error\n", done.stderr


def test_a_handle_of_the_old_anndata(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", made(1))
    old = zarrow.open(tmp_path / "a.zarr")
    zarrow.save(tmp_path / "a.zarr", made(2))
    with pytest.raises(zarrow.ZarrowError):
        old["X"][...]
    check_whole(tmp_path / "a.zarr", 2)


def test_what_only_looks_like_an_anndata_is_a_dict_with_a_warning(tmp_path: Path) -> None:
    for attributes, text in (
        ({}, "''"),
        ({"encoding-type": "MuData", "encoding-version": "0.1.0"}, "MuData"),
    ):
        zarrow.save(tmp_path / "a.zarr", made(1))
        root = zarrow.open(tmp_path / "a.zarr", mode="r+")
        root.attrs.clear()
        root.attrs.update(attributes)
        with pytest.warns(zarrow.ZarrowWarning, match=f"{text}.*dict"):
            assert isinstance(zarrow.load(tmp_path / "a.zarr"), dict)
        zarrow.create_group(tmp_path / "a.zarr", overwrite=True)
    zarrow.save(tmp_path / "b.zarr", made(1))
    root = zarrow.open(tmp_path / "b.zarr", mode="r+")
    del root["obs"]
    with pytest.raises(zarrow.MetadataError, match="without obs"):
        zarrow.load(tmp_path / "b.zarr")


@pytest.mark.parametrize("node", ["X", "obs", "uns/u0", ""])
def test_an_unknown_version_names_anndata(tmp_path: Path, node: str) -> None:
    zarrow.save(tmp_path / "a.zarr", made(1))
    root = zarrow.open(tmp_path / "a.zarr", mode="r+")
    (root[node] if node else root).attrs["encoding-version"] = "5.0"
    with pytest.raises(zarrow.UnsupportedError, match=r"'5\.0'.*anndata\.read_zarr"):
        zarrow.load(tmp_path / "a.zarr")
