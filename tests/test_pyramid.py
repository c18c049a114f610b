"""Levels of OME-Zarr images, against levels that NumPy computes from the whole array."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, MutableMapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from zarrow.jobs.work import New
from zarrow.ome import blocks

pytestmark = pytest.mark.small_files

COMMAND = Path(sys.executable).with_name("zarrow")


def level_after(values: np.ndarray, factors: tuple[int, ...], method: str) -> np.ndarray:
    """Compute the next level: each window by itself, integers as exact fractions."""
    shape = [-(-extent // factor) for extent, factor in zip(values.shape, factors, strict=True)]
    result = np.empty(shape, values.dtype)
    for place in np.ndindex(*shape):
        windows = (slice(at * factor, (at + 1) * factor) for at, factor in zip(place, factors, strict=True))
        window = values[tuple(windows)].ravel()
        if method == "nearest":
            result[place] = window[0]
        elif method == "mode":
            found, counts = np.unique(window, return_counts=True, equal_nan=False)
            result[place] = found[np.argmax(counts)]
        elif values.dtype.kind in "iu":
            result[place] = round(Fraction(sum(map(int, window)), len(window)))
        else:
            result[place] = window.astype(np.result_type(values.dtype, "f8")).mean()
    return result


def levels_of(image: Any, base: np.ndarray, factors: tuple[int, ...], method: str) -> None:
    expected = base
    for level in image:
        found = level.array[...].numpy()
        if base.dtype.kind in "fc" and method == "mean":
            np.testing.assert_allclose(found, expected, rtol=1e-3 if base.dtype == "f2" else 1e-6)
        else:
            np.testing.assert_array_equal(found, expected)
        # The levels are computed from the stored ones, which are rounded.
        expected = level_after(found, factors, method)


@pytest.mark.parametrize("seed", range(60))
def test_levels_are_those_of_the_whole_array(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    axes = chosen.choice(["yx", "zyx", "cyx", "tczyx"])
    method = chosen.choice(["mean", "mode", "nearest"])
    types = ["u1", "i1", "u2", ">i2", "u4", "i8", "u8", "f2", "f4", ">f8"] + ["?"] * (method != "mean")
    dtype = np.dtype(chosen.choice(types))
    most = 24 if len(axes) < 5 else 7
    shape = tuple(chosen.randint(1, most if axis in "zyx" else 3) for axis in axes)
    chunks = [chosen.randint(1, extent + 1) for extent in shape]
    factors = {axis: chosen.choice([1, 2, 2, 3]) for axis in axes if axis in "zyx"} | {"x": 2}
    by_axis = tuple(factors.get(axis, 1) for axis in axes)
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu" and chosen.random() < 0.5:
        base = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype.newbyteorder("="), True)
    else:
        base = rng.integers(0, 4, shape)
    base = base.astype(dtype)
    version = chosen.choice(["0.4", "0.5"])
    is_beside = chosen.random() < 0.5
    options: dict[str, Any] = {}
    if version == "0.5" and chosen.random() < 0.5:
        options["shards"] = [step * chosen.randint(1, 3) for step in chunks]
    if chosen.random() < 0.3:
        options["chunks"] = [chosen.randint(1, extent + 1) for extent in shape]
        if "shards" in options:
            options["shards"] = [step * 2 for step in options["chunks"]]
    source = zarrow.create_array(
        tmp_path / "image", "0", data=base, chunks=chunks, zarr_format=2 if version == "0.4" else 3
    )
    zarrow.ome.pyramid(
        zarrow.open(tmp_path / "image", mode="r+") if is_beside else source,
        None if is_beside else tmp_path / "new",
        axes=axes,
        method=method,
        factors=factors,
        levels=chosen.randint(1, 1 + (max(np.array(shape)[np.array(by_axis) > 1]) > 1)),
        version=version,
        memory_nbytes=chosen.choice([8 * 24**3, 1 << 28]),
        **options,
    )
    root = tmp_path / ("image" if is_beside else "new")
    levels_of(zarrow.open(root).multiscales, base, by_axis, method)
    assert {path.name for path in tmp_path.iterdir()} <= {"image", "new"}


class Counted(MutableMapping[str, bytes]):
    """A store that counts its reads."""

    def __init__(self) -> None:
        self.values_by_key: dict[str, bytes] = {}
        self.reads: Counter[str] = Counter()

    def __getitem__(self, key: str) -> bytes:
        self.reads[key] += 1
        return self.values_by_key[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.values_by_key[key] = bytes(value)

    def __delitem__(self, key: str) -> None:
        del self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.values_by_key))

    def __len__(self) -> int:
        return len(self.values_by_key)


@pytest.mark.parametrize("memory_nbytes", [2_000, 1 << 28])
def test_each_chunk_of_the_first_level_is_read_once(memory_nbytes: int) -> None:
    counted = Counted()
    store = zarrow.PythonStore(counted, sole_writer=True)
    base = np.random.default_rng(0).integers(0, 99, (3, 70, 50), dtype="u1")
    zarrow.create_array(store, "0", data=base, chunks=(1, 16, 8))
    counted.reads.clear()
    plan = zarrow.ome.plan_pyramid(
        store, axes="cyx", levels=4, memory_nbytes=memory_nbytes, ledger=zarrow.MemoryStore()
    )
    plan.complete()
    chunks = [count for key, count in counted.reads.items() if key.startswith("0/c/")]
    assert len(chunks) == 3 * 5 * 7
    assert set(chunks) == {1}
    levels_of(zarrow.open(store).multiscales, base, (1, 2, 2), "mean")


@pytest.mark.parametrize("seed", range(200))
def test_blocks_are_whole_write_units_within_memory(seed: int) -> None:
    chosen = random.Random(seed)
    ndim = chosen.randint(1, 4)
    shape = tuple(chosen.choice([1, 9, 100, 4096, 100_000]) for _ in range(ndim))
    factors = tuple(chosen.choice([1, 2, 3]) for _ in shape)
    shapes = blocks.shapes(shape, factors, chosen.randint(1, 6))
    units = [tuple(chosen.choice([1, 7, 64, 96]) for _ in shape) for _ in shapes]
    found = blocks.choose(shapes, units, factors, 2, 1 << 26)
    least = blocks.choose(shapes, units, factors, 2, 1)
    assert found.nbytes <= max(1 << 26, least.nbytes)
    for level, (extents, unit, block) in enumerate(zip(shapes, units, found.blocks, strict=True)):
        for axis, (extent, step, size) in enumerate(zip(extents, unit, block, strict=True)):
            assert size == extent or (size < extent and size % step == 0)
            if level:
                finer, below = found.blocks[level - 1][axis], shapes[level - 1][axis]
                assert size == extent or (size * factors[axis] % finer == 0)
                assert finer == below or finer % factors[axis] == 0


def test_a_plan_takes_little_memory_for_any_size() -> None:
    base = zarrow.zeros((10, 1_000_000, 1_000_000), "u2", chunks=(1, 512, 512))
    plan = zarrow.ome.plan_pyramid(base, zarrow.MemoryStore(), axes="cyx", ledger=zarrow.MemoryStore())
    assert len(plan.units) > 64
    item = plan._work.items[""]
    assert item.chosen.nbytes < 256 << 20
    assert "is read 1.00 times" in plan.describe()


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_metadata_say_where_elements_are(version: Any, tmp_path: Path) -> None:
    base = np.arange(2 * 600 * 300, dtype="u4").reshape(2, 600, 300)
    zarrow.save(tmp_path / "base", base)
    zarrow.ome.pyramid(
        tmp_path / "base",
        tmp_path / "image",
        axes="cyx",
        scale=[1, 0.5, 0.25],
        unit="nanometer",
        version=version,
    )
    root = zarr.open_group(tmp_path / "image", mode="r")
    assert root.metadata.zarr_format == (2 if version == "0.4" else 3)
    content = root.attrs["ome"] if version == "0.5" else root.attrs
    image = content["multiscales"][0]
    assert image["type"] == "mean"
    assert [axis.get("unit") for axis in image["axes"]] == [None, "nanometer", "nanometer"]
    assert image["datasets"][2] == {
        "path": "2",
        "coordinateTransformations": [
            {"type": "scale", "scale": [1.0, 2.0, 1.0]},
            {"type": "translation", "translation": [0.0, 0.75, 0.375]},
        ],
    }
    for level, dataset in enumerate(image["datasets"]):
        array = root[dataset["path"]]
        assert array.shape == (2, -(-600 >> level), -(-300 >> level)) or level
        assert array.metadata.dimension_names == ("c", "y", "x") if version == "0.5" else True
    nearest = tmp_path / "nearest"
    zarrow.ome.pyramid(tmp_path / "base", nearest, axes="cyx", method="nearest", translation=[0, 3, 4])
    assert {level.translation for level in zarrow.open(nearest).multiscales} == {(0.0, 3.0, 4.0)}


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_levels_are_added_to_an_image_and_its_labels(version: Any, tmp_path: Path) -> None:
    base = np.random.default_rng(0).integers(0, 9, (2, 40, 40), dtype="u2")
    omero = {"channels": [{"color": "FF0000"}, {"color": "00FF00"}]}
    attributes = {"omero": omero} if version == "0.4" else {"ome": {"omero": omero}, "by": "me"}
    zarrow.ome.save(
        tmp_path / "image",
        [base],
        axes="cyx",
        name="cells",
        scale=[1, 2, 2],
        translation=[0, 5, 6],
        labels={"nuclei": [base[0]]},
        version=version,
        attributes=attributes,
    )
    zarrow.ome.pyramid(tmp_path / "image", levels=3)
    zarrow.ome.pyramid(tmp_path / "image" / "labels" / "nuclei", levels=3, method="mode")
    image = zarrow.open(tmp_path / "image").multiscales
    assert (image.name, len(image), image[1].scale, image[0].translation) == (
        "cells",
        3,
        (1.0, 4.0, 4.0),
        (0.0, 5.0, 6.0),
    )
    levels_of(image, base, (1, 2, 2), "mean")
    levels_of(image.labels["nuclei"], base[0], (2, 2), "mode")
    root = zarrow.open(tmp_path / "image")
    assert (root.attrs["omero"] if version == "0.4" else root.attrs["ome"]["omero"]) == omero
    label = root["labels/nuclei"].attrs
    assert "image-label" in (label if version == "0.4" else label["ome"])
    with pytest.raises(FileExistsError):
        zarrow.ome.pyramid(tmp_path / "image", levels=3)
    zarrow.ome.pyramid(tmp_path / "image", levels=2, overwrite=True, method="nearest")
    assert len(zarrow.open(tmp_path / "image").multiscales) == 2


def test_levels_that_are_replaced_leave_the_metadata_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarrow.create_array(tmp_path / "image", "0", data=np.ones((40, 40), "u1"))
    zarrow.ome.pyramid(tmp_path / "image", axes="yx", levels=3)
    create = New.create

    def failing(self: New, *, overwrite: bool = False) -> Any:
        if overwrite and self.path == "1":
            raise OSError("no space")
        return create(self, overwrite=overwrite)

    monkeypatch.setattr(New, "create", failing)
    with pytest.raises(OSError, match="no space"):
        zarrow.ome.pyramid(tmp_path / "image", axes="yx", levels=3, overwrite=True)
    assert [level.path for level in zarrow.open(tmp_path / "image").multiscales] == ["0"]


@pytest.mark.parametrize("images", [5, [], [{}], [{"datasets": "x"}], None])
def test_malformed_metadata_at_the_target_are_replaced(images: Any, tmp_path: Path) -> None:
    zarrow.save(tmp_path / "base", np.ones((40, 40), "u1"))
    root = zarrow.create_group(tmp_path / "image", attributes={"ome": {"multiscales": images}, "by": "me"})
    root["0"] = np.zeros((3, 3))
    zarrow.ome.pyramid(tmp_path / "base", tmp_path / "image", axes="yx", levels=2, overwrite=True)
    assert len(zarrow.open(tmp_path / "image").multiscales) == 2
    assert zarrow.open(tmp_path / "image").attrs["by"] == "me"
    if images is not None:
        zarrow.open(tmp_path / "image").attrs["ome"] = {"multiscales": images}
        with pytest.raises(zarrow.MetadataError):
            zarrow.ome.pyramid(tmp_path / "image", axes="yx", levels=2, overwrite=True)


def killed_after(folder: Path, units: int) -> int:
    """Compute the levels in another process, which is killed after some units."""
    code = (
        "import os, sys, zarrow\n"
        f"def ended(done, total):\n    if done >= {units}: os.kill(os.getpid(), 9)\n"
        f"zarrow.ome.pyramid({str(folder / 'base')!r}, {str(folder / 'image')!r}, axes='cyx', levels=3,\n"
        "                   memory_nbytes=6000, progress=ended)\n"
    )
    return subprocess.run([sys.executable, "-c", code], timeout=100, check=False).returncode


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed by a signal")
def test_a_killed_pyramid_is_continued(tmp_path: Path) -> None:
    base = np.random.default_rng(0).integers(0, 1000, (6, 50, 30), dtype="u2")
    zarrow.create_array(tmp_path / "base", data=base, chunks=(1, 16, 16))
    assert killed_after(tmp_path, 2) == -9
    assert "ome" not in zarrow.open(tmp_path / "image").attrs
    done: list[int] = []
    assert killed_after(tmp_path, 4) == -9
    zarrow.ome.pyramid(
        tmp_path / "base",
        tmp_path / "image",
        axes="cyx",
        levels=3,
        memory_nbytes=6000,
        progress=lambda at, total: done.append(at),
    )
    # A unit is repeated only if it was finished and not yet entered.
    assert done in ([5, 6], [4, 5, 6])
    levels_of(zarrow.open(tmp_path / "image").multiscales, base, (1, 2, 2), "mean")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base", "image"]


def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    base = zarrow.create_array(tmp_path / "base", data=np.ones((64, 64), "u2"), chunks=16)
    flags = zarrow.create_array(tmp_path / "flags", data=np.ones((64, 64), "?"))
    frames = zarrow.zeros((2, 8, 8), "u2")
    text = zarrow.create_array(tmp_path / "text", data=np.array([["a", "b"]]))
    target = tmp_path / "image"
    for source, options, message in (
        (base, {}, "pass axes=, such as 'zyx'"),
        (base, {"axes": "zyx"}, "z, y, x"),
        (frames, {"axes": "tyx", "factors": {"t": 2}}, "expected axes of type space"),
        (base, {"axes": "yx", "factors": 0}, "expected integers from 1"),
        (base, {"axes": "yx", "factors": 1}, "expected a factor above 1"),
        (base, {"axes": "yx", "levels": 0}, "at least 1"),
        (base, {"axes": "yx", "levels": 9}, "pass levels=7 or fewer"),
        (base, {"axes": "yx", "levels": 3, "memory_nbytes": 100}, "memory_nbytes is 100"),
        (base, {"axes": "yx", "method": "median"}, "expected 'mean', 'mode' or 'nearest'"),
        (base, {"axes": "yx", "scale": [0, 1]}, "expected positive numbers"),
        (base, {"axes": "yx", "chunks": {"z": 3}}, "chunks has the axis 'z'"),
        (base, {"axes": "yx", "version": "0.6"}, "version is '0.6'"),
        (base, {"axes": "yx", "methods": "mean"}, "method"),
        (flags, {"axes": "yx"}, "pass method='mode'"),
        (text, {"axes": "yx"}, "expected numbers"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            zarrow.ome.pyramid(source, target, **options)
    with pytest.raises(ValueError, match="pass target="):
        zarrow.ome.pyramid(base, axes="yx")
    with pytest.raises(ValueError, match="in an array"):
        zarrow.ome.pyramid(tmp_path / "base", tmp_path / "base", axes="yx", overwrite=True)
    with pytest.raises(TypeError, match="has no array '0'"):
        zarrow.ome.pyramid(zarrow.create_group(tmp_path / "empty"))
    assert not target.exists()


def test_the_command_computes_levels(tmp_path: Path) -> None:
    base = np.arange(600 * 40, dtype="u2").reshape(600, 40)
    zarrow.save(tmp_path / "base", base)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, "pyramid", *map(str, arguments)], capture_output=True, text=True, timeout=100
        )

    given = (tmp_path / "base", tmp_path / "image", "--axes", "yx", "--scale", "0.5,0.5", "--factors", "y=2")
    described = run(*given, "--dry-run")
    assert "each byte of" in described.stdout
    assert not (tmp_path / "image").exists()
    finished = run(*given, "--json")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert json.loads(finished.stdout)["left"] == 0
    image = zarrow.open(tmp_path / "image").multiscales
    levels_of(image, base, (2, 1), "mean")
    assert image[1].scale == (1.0, 0.5)
    assert run(*given).returncode == 1
    assert run(*given, "--factors", "2,2").returncode == 2
    assert "'q'" in run(*given, "--axes", "qx", "--overwrite").stderr
