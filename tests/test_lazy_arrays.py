"""Arrays outside of memory are stored part by part, with their attributes and other metadata."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import zarrow
from zarrow.interchange import lazy_arrays

VALUES = np.arange(42, dtype="f4").reshape(6, 7)


def zarr_source(folder: Path, zarr_format: Any = 3) -> zarr.Array[Any]:
    names: dict[str, Any] = {"dimension_names": ["y", "x"]} if zarr_format == 3 else {}
    attributes: dict[str, Any] = {"units": "K"}
    if zarr_format == 2:
        attributes["_ARRAY_DIMENSIONS"] = ["y", "x"]
    source = zarr.create_array(
        folder / f"zarr{zarr_format}",
        shape=VALUES.shape,
        dtype="f4",
        chunks=(2, 3),
        fill_value=np.nan,
        attributes=attributes,
        zarr_format=zarr_format,
        **names,
    )
    source[:] = VALUES
    return source


def hdf5_source(folder: Path) -> h5py.Dataset:
    file = h5py.File(folder / "source.h5", "w")
    source = file.create_dataset("t", data=VALUES, chunks=(2, 3), fillvalue=np.nan)
    source.attrs["units"] = np.bytes_(b"K")
    source.dims[0].label = "y"
    file["x"] = np.arange(7.0)
    file["x"].make_scale("x")
    source.dims[1].attach_scale(file["x"])
    return source


def source_of(kind: str, folder: Path) -> Any:
    match kind:
        case "zarr2" | "zarr3":
            return zarr_source(folder, int(kind[-1]))
        case "zarr in memory":
            stored = zarr_source(folder)
            made = zarr.from_array({}, data=stored)
            assert made.attrs["units"] == "K"
            return made
        case "zarrow":
            return zarrow.open(zarr_source(folder).store.root)
        case _:
            return hdf5_source(folder)


@pytest.mark.parametrize("part_nbytes", [1, 1 << 26])
@pytest.mark.parametrize("kind", ["zarr2", "zarr3", "zarr in memory", "zarrow", "hdf5"])
def test_attributes_and_metadata_are_kept(
    kind: str, part_nbytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_arrays, "_PART_NBYTES", part_nbytes)
    source, group = source_of(kind, tmp_path), zarrow.create_group(tmp_path / "new")
    made = group.create_array("a", data=source, chunks=(4, 4))
    group["b"] = source
    zarrow.save(tmp_path / "c", source)
    for array in (made, group["b"], zarrow.open(tmp_path / "c")):
        assert np.array_equal(array, VALUES) and array.dtype == VALUES.dtype
        assert array.dimension_names == ("y", "x") and array.attrs["units"] == "K"
        assert np.isnan(array.fill_value)
    assert made.chunks == (4, 4)
    given = group.create_array(
        "d", data=source, attributes={"units": "C"}, dimension_names=["v", "u"], fill_value=-1, dtype="f8"
    )
    assert given.attrs["units"] == "C" and given.dimension_names == ("v", "u") and given.fill_value == -1
    assert given.dtype == "f8" and np.array_equal(given, VALUES)


def test_two_gibibytes_are_copied_in_little_memory(tmp_path: Path) -> None:
    zarrow.create_array(
        tmp_path / "old", shape=(1 << 14, 1 << 14), dtype="f8", chunks=1024, fill_value=np.nan
    )
    program = (
        "import pathlib, re, sys, zarr, zarrow\n"
        "source = zarr.open_array(sys.argv[1] + '/old', mode='r')\n"
        "made = zarrow.create_array(sys.argv[1] + '/new', data=source, chunks=(512, 2048))\n"
        # Peak of this program alone: `ru_maxrss` starts with the parent's value.
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(re.search(r'VmHWM:\\s*(\\d+) kB', status)[1], made.fill_value)\n"
    )
    command = [sys.executable, "-c", program, tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split()
    assert int(said[0]) < 512 * 1024 and said[1] == "nan"


def test_a_failing_source_leaves_the_store_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_arrays, "_PART_NBYTES", 1)
    source = zarrow.open(zarr_source(tmp_path).store.root)
    group = zarrow.create_group(tmp_path / "new")
    group["t"] = [1, 2]
    (tmp_path / "zarr3" / "c" / "2" / "1").write_bytes(b"corrupt")

    def entries() -> list[str]:
        return sorted(path.name for path in (tmp_path / "new").iterdir())

    before = entries()
    for create in (
        lambda: group.__setitem__("t", source),
        lambda: group.create_array("t", data=source, overwrite=True),
        lambda: group.create_array("u", data=source),
        lambda: zarrow.save(tmp_path / "new", t=source),
    ):
        with pytest.raises(zarrow.CodecError):
            create()
        assert group["t"][...].tolist() == [1, 2] and entries() == before


def test_netcdf_attributes_are_read_by_xarray(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["title"] = "rain"
        dataset = file.create_dataset("t", data=np.array([[0.0, -9.0]], "f4"))
        dataset.attrs["_FillValue"] = np.array([-9.0], "f4")
        dataset.attrs["reference"] = dataset.ref
        dataset.dims[0].label, dataset.dims[1].label = "y", "x"
        for zarr_format in (2, 3):
            group = zarrow.create_group(tmp_path / str(zarr_format), zarr_format=zarr_format)  # type: ignore[arg-type]
            with pytest.warns(zarrow.ZarrowWarning, match="JSON cannot hold them: 'reference'"):
                group["all"] = file
            assert group["all"].attrs["title"] == "rain"
            path = tmp_path / str(zarr_format) / "all"
            with xr.open_zarr(path, consolidated=False) as found:
                assert np.array_equal(found["t"], [[0, np.nan]], equal_nan=True)
                assert found["t"].dims == ("y", "x")


class Endless:
    """A sequence that contains itself: each element is a new one."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> Endless:
        return self


class StoresItself(Endless):
    """Like `AnnData`."""

    def write_zarr(self, path: str) -> None:
        raise NotImplementedError(path)


def test_a_sequence_without_end_is_refused(tmp_path: Path) -> None:
    program = (
        "import sys, zarrow\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from test_lazy_arrays import Endless\n"
        "for take in (zarrow.asarray, lambda x: zarrow.save('new.zarr', x)):\n"
        "    try:\n"
        "        take(Endless())\n"
        "    except TypeError as error:\n"
        "        print(error)\n"
    )
    command = [sys.executable, "-c", program, Path(__file__).parent]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path)
    assert ended.stdout.count("Endless is not an array") == 2, ended.stderr
    assert not (tmp_path / "new.zarr").exists()


def test_an_object_that_stores_itself_is_refused(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path)
    for store in (
        lambda: zarrow.save(tmp_path / "a", StoresItself()),
        lambda: zarrow.save(tmp_path, a=StoresItself()),
        lambda: zarrow.create_array(tmp_path / "a", data=StoresItself()),
        lambda: group.__setitem__("a", StoresItself()),
    ):
        with pytest.raises(TypeError, match=r"StoresItself is not an array .* type x\.write_zarr\(path\)"):
            store()
    assert group.keys() == []
