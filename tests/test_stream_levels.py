"""A writer of frames stores the lower levels of an image, as `zarrow.ome.pyramid` computes them."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from kill_counts import kills
from zarrow.ome import downscaling
from zarrow.stream import Writer, follow, levels


def expect_levels(image: zarrow.Group, frames: np.ndarray, **options: Any) -> None:
    """Check all levels against a pyramid of the whole first level."""
    found = image.multiscales
    np.testing.assert_array_equal(np.asarray(found[0].array[...]), frames)
    expected = zarrow.MemoryStore()
    axes = [axis.name for axis in found.axes]
    zarrow.ome.pyramid(found[0].array, expected, axes=axes, levels=len(found), **options)
    for own, other in zip(found, zarrow.open(expected).multiscales, strict=True):
        assert own.array.dtype == other.array.dtype
        assert own.array.shape == other.array.shape
        assert own.array[...].numpy().tobytes() == other.array[...].numpy().tobytes()


def created(store: Any, *, levels: int, **options: Any) -> zarrow.Group:
    """Create an image with this number of levels, or fewer if it is small."""
    try:
        return zarrow.ome.create(store, levels=levels, **options)
    except ValueError:
        return created(store, levels=levels - 1, **options)


@pytest.mark.parametrize("seed", range(80))
def test_levels_are_those_of_a_pyramid(seed: int) -> None:
    """Any type, method, factors, axis, chunks, flushes, and writers that continue."""
    chance = random.Random(seed)
    axes = chance.choice(["tyx", "zyx", "tczyx", "czyx"])
    axis = chance.choice([at for at, name in enumerate(axes) if name in "tz"])
    method = chance.choice(["mean", "mode", "nearest"])
    dtype = chance.choice(
        ["u1", "i1", ">u2", "i4", "u8", "f2", "f4", ">f8", "c8"] + ["?"] * (method != "mean")
    )
    if dtype == "c8" and method == "mode":
        dtype = "f8"
    shape = [chance.randint(1, 2) if name in "tc" else chance.randint(1, 9) for name in axes]
    shape[axis] = 0
    factors = {name: chance.choice([1, 2, 2, 3]) for name in axes if name in "zyx"} | {"x": 2}
    chunks = [chance.randint(1, 4) for _ in axes]
    options: dict[str, Any] = {"version": chance.choice(["0.4", "0.5"])}
    if options["version"] == "0.5" and chance.random() < 0.4:
        options["shards"] = [step * chance.randint(1, 3) for step in chunks]
    image = created(
        zarrow.MemoryStore(),
        levels=chance.randint(1, 4),
        shape=shape,
        dtype=dtype,
        axes=axes,
        chunks=chunks,
        factors=factors,
        method=method,
        **options,
    )
    for level in image.multiscales.levels[1:] if chance.random() < 0.5 else ():
        layout: dict[str, Any] = {
            "shape": level.array.shape,
            "dtype": dtype,
            "zarr_format": image.zarr_format,
        }
        own = [chance.randint(1, 5) for _ in axes]
        zarrow.create_array(image.__reduce__()[1][0], level.path, **layout, chunks=own, overwrite=True)
    shape[axis] = count = chance.randint(0, 40)
    most = 2 if dtype == "?" else chance.choice([5, 100])
    frames = np.random.default_rng(seed).integers(0, most, shape).astype(dtype)
    along = np.moveaxis(frames, axis, 0)
    done = 0
    while True:
        memory = chance.choice([1 << 16, 1 << 22])
        with Writer(image, axis, memory_nbytes=memory, interval=chance.choice([0, 0.001, 10])) as writer:
            while done < count:
                step = min(chance.choice([1, 1, 2, 7]), count - done)
                part = np.moveaxis(along[done : done + step], 0, axis).copy()
                writer.append(along[done].copy() if step == 1 else part)
                part[...] = 0
                done += step
                if chance.random() < 0.15:
                    writer.flush()
                    so_far = np.moveaxis(along[:done], 0, axis)
                    expect_levels(image, so_far, factors=factors, method=method)
                if chance.random() < 0.1:
                    break
        if done == count:
            break
    expect_levels(image, frames, factors=factors, method=method)


def movie(store: Any, **options: Any) -> zarrow.Group:
    given: dict[str, Any] = {"axes": "zyx", "chunks": (2, 4, 4), "levels": 3, "dtype": "u2"} | options
    return zarrow.ome.create(store, shape=(0, 10, 9), **given)


def numbered(start: int, stop: int) -> np.ndarray[Any, Any]:
    return np.arange(start * 90, stop * 90).astype("u2").reshape(-1, 10, 9)


def lengths(image: zarrow.Group) -> list[int]:
    return [level.array.shape[0] for level in image.multiscales]


def test_images_and_arrays_grow_together(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "scan.zarr")
    for name in ("left", "right"):
        movie(tmp_path / "scan.zarr" / name, version="0.5")
    at = root.create_array("at", shape=(0,), chunks=(10,), dtype="f8")
    left, right = zarrow.open(tmp_path / "scan.zarr/left"), zarrow.open(tmp_path / "scan.zarr/right")
    with Writer({"left": left, "right": right, "at": at}) as writer:
        for number in range(7):
            frame = numbered(number, number + 1)[0]
            writer.append({"left": frame, "right": frame + 1, "at": number / 2})
        assert writer.flush() == 7
    expect_levels(left, numbered(0, 7))
    expect_levels(right, numbered(0, 7) + 1)
    assert at[...].tolist() == [number / 2 for number in range(7)]


def test_levels_of_other_paths_factors_and_methods_are_computed(tmp_path: Path) -> None:
    """`save` stores no method; each level has its own factors."""
    values = numbered(0, 1).astype("f4")
    zarrow.ome.save(
        tmp_path, {"full": values, "small": values[:, ::3, ::2], "least": values[:, ::6, ::4]}, axes="tyx"
    )
    image = zarrow.open(tmp_path)
    with Writer(image, method="nearest") as writer:
        writer.append(numbered(1, 6).astype("f4"))
    for level, (y, x) in zip(image.multiscales, [(1, 1), (3, 2), (6, 4)], strict=True):
        np.testing.assert_array_equal(level.array[...], numbered(0, 6)[:, ::y, ::x].astype("f4"))


def test_levels_are_computed_by_the_thread_of_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()

    def recorded(*given: Any) -> None:
        threads.add(threading.current_thread().name)
        downscaling.downscale(*given)

    monkeypatch.setattr(levels, "downscale", recorded)
    image = movie(zarrow.MemoryStore())
    with Writer(image, interval=0) as writer:
        for number in range(9):
            writer.append(numbered(number, number + 1))
    assert threads == {"zarrow-stream"}


def test_levels_share_the_memory() -> None:
    image = movie(zarrow.MemoryStore())
    first, second, third = (2 * 10 * 9, 2 * 5 * 5, 2 * 3 * 3)
    least = 4 * (first + second + third) + 2 * (first + second)
    with pytest.raises(ValueError, match=f"need {least} bytes"):
        Writer(image, memory_nbytes=least - 1)
    for memory_nbytes in (least, least + 1000, 10_000):
        with Writer(image, memory_nbytes=memory_nbytes) as writer:
            ring = writer._rings[""]
            assert isinstance(ring, levels.ImageRing)
            each = [ring, *ring._levels]
            used = sum(one._frames.nbytes for one in each) + sum(one._window.nbytes for one in ring._levels)
            assert memory_nbytes // 2 < used <= memory_nbytes
            writer.append(numbered(0, 30))
    expect_levels(image, np.concatenate([numbered(0, 30)] * 3))


def test_levels_without_frames_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "_READ_NBYTES", 1000)
    for count in (1, 2, 7, 16):
        image = movie(zarrow.MemoryStore())
        image.multiscales[0].array.append(numbered(0, count))
        Writer(image).close()
        expect_levels(image, numbered(0, count))
        image["1"].resize((1, 5, 5))
        image["2"].resize((1, 3, 3))
        with Writer(image) as writer:
            writer.append(numbered(count, count + 3))
        expect_levels(image, numbered(0, count + 3))


KILLED = """
import itertools, sys
sys.path.insert(0, sys.argv[2])
import zarrow
from test_stream_levels import lengths, numbered
from zarrow.stream import Writer
image = zarrow.open(sys.argv[1])
writer = Writer(image, memory_nbytes=20_000, interval=0)
for number in itertools.count(lengths(image)[0]):
    writer.append(numbered(number, number + 1))
    if number % 5 == 0:
        writer.flush()
        print(number + 1, flush=True)
"""


def test_a_killed_writer_leaves_levels_that_the_next_one_completes(tmp_path: Path) -> None:
    chance, flushed = random.Random(3), 0
    image = movie(tmp_path)
    image.create_array("1", shape=(0, 5, 5), chunks=(5, 5, 5), dtype="u2", overwrite=True)
    for _ in range(kills(8)):
        command = [sys.executable, "-c", KILLED, tmp_path, Path(__file__).parent]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 12)):
                flushed = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        count, *others = lengths(image)
        assert count >= flushed
        assert all(other <= -(-count // 2**at) for at, other in enumerate(others, 1))
        np.testing.assert_array_equal(image.multiscales[0].array[...], numbered(0, count))
        if chance.random() < 0.5:
            with Writer(image) as writer:
                writer.append(numbered(count, count + 2))
            expect_levels(image, numbered(0, count + 2))
    Writer(image).close()
    expect_levels(image, numbered(0, lengths(image)[0]))


def test_a_failing_store_ends_the_writer_and_the_next_one_continues(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
import zarrow
from test_stream_levels import movie, numbered
from zarrow.stream import Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
image = movie(sys.argv[1], compressors=None, chunks=(1, 10, 9))
with Writer(image, interval=0) as writer:
    writer.append(numbered(0, 5))
# A chunk of the first level does not fit, but chunks of the second one do.
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
writer = Writer(image, interval=0)
for call in (lambda: (writer.append(numbered(5, 9)), writer.flush()), writer.close):
    try:
        call()
    except zarrow.StoreError:
        pass
    else:
        sys.exit("no error")
"""
    command = [sys.executable, "-c", program, tmp_path, Path(__file__).parent, "170"]
    found = subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)
    assert found.stderr == ""
    image = zarrow.open(tmp_path)
    assert lengths(image)[0] == 5
    with Writer(image) as writer:
        writer.append(numbered(5, 12))
    expect_levels(image, numbered(0, 12))


@pytest.mark.parametrize("level", ["0", "1"])
def test_frames_of_another_writer_are_found_and_the_next_one_continues(level: str) -> None:
    image = movie(zarrow.MemoryStore())
    writer = Writer(image, interval=10)
    writer.append(numbered(0, 4))
    writer.flush()
    array = zarrow.open(image.__reduce__()[1][0], level, mode="r+")
    array.append(np.zeros((1, *array.shape[1:]), "u2"))
    writer.append(numbered(4, 8))
    with pytest.raises(zarrow.StaleHandleError, match="another writer changed the length"):
        writer.close()
    if level == "0":
        Writer(image).close()
        expect_levels(image, np.asarray(image["0"][...]))


def test_images_that_cannot_be_streamed_are_refused(tmp_path: Path) -> None:
    image = movie(tmp_path / "a")
    with pytest.raises(zarrow.NodeTypeError, match="is not an OME-Zarr image"):
        Writer(zarrow.create_group(tmp_path / "group"))
    with pytest.raises(zarrow.ReadOnlyError, match="is read-only"):
        Writer(zarrow.open(tmp_path / "a", mode="r"))
    with pytest.raises(ValueError, match=r"'x' and 'y' are the same array"):
        Writer({"x": image, "y": image.multiscales[1].array})
    with pytest.raises(ValueError, match="method is 'median', expected 'mean', 'mode' or 'nearest'"):
        Writer(image, method="median")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected an array of a store, an image, or a mapping"):
        Writer({"x": image, "y": 5})  # type: ignore[dict-item]
    image["1"].resize((2, 5, 5))
    with pytest.raises(zarrow.ShapeError, match=r"level '1' has shape \(2, 5, 5\), but \(0, 5, 5\) follows"):
        Writer(image)
    other = movie(tmp_path / "b")
    other.create_array("1", shape=(0, 5, 4), dtype="u2", overwrite=True)
    with pytest.raises(zarrow.ShapeError, match=r"\(0, 5, 4\), but \(0, 5, 5\)"):
        Writer(other)
    other.create_array("1", shape=(0, 5, 5), dtype="u1", overwrite=True)
    with pytest.raises(zarrow.DataTypeError, match="level '1' has type uint8, but level '0' has uint16"):
        Writer(other)
    content = dict(image.attrs["ome"])
    content["multiscales"][0]["type"] = "gaussian"
    image.attrs["ome"] = content
    with pytest.raises(ValueError, match="were computed by 'gaussian'"):
        Writer(image)
    flags = zarrow.ome.create(
        tmp_path / "c", shape=(0, 4, 4), dtype="?", axes="tyx", levels=2, method="nearest"
    )
    with pytest.raises(zarrow.DataTypeError, match="elements of type bool have no mean"):
        Writer(flags, method="mean")


INTERRUPTED = """
import os, signal, sys, threading
sys.path.insert(0, sys.argv[1])
import zarrow
from test_stream_levels import expect_levels, movie, numbered
from zarrow.stream import Writer

class Blocked(dict):
    may = threading.Event()

    # Ctrl-C for the main thread, while the store of a lower level blocks.
    def __setitem__(self, key, value):
        if key.startswith("1/c/") and not self.may.is_set():
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            assert self.may.wait(60)
        super().__setitem__(key, value)

store = Blocked()
image = movie(zarrow.PythonStore(store, sole_writer=True))
writer = Writer(image, interval=10)
writer.append(numbered(0, 7))
try:
    writer.close()
except KeyboardInterrupt:
    store.may.set()
else:
    sys.exit("was not interrupted")
writer.close()
expect_levels(image, numbered(0, 7))
"""


def test_ctrl_c_ends_the_wait_for_levels() -> None:
    command = [sys.executable, "-c", INTERRUPTED, Path(__file__).parent]
    found = subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)
    assert found.stderr == ""


def test_a_level_is_followed(tmp_path: Path) -> None:
    image = movie(tmp_path, axes="tyx")
    parts = []

    def read() -> None:
        for part in follow(zarrow.open(tmp_path, "1"), start=0, interval=0.001, idle=60):
            parts.append(part.numpy())
            if sum(map(len, parts)) == 50:
                return

    reader = threading.Thread(target=read)
    reader.start()
    with Writer(image, interval=0) as writer:
        for number in range(50):
            writer.append(numbered(number, number + 1))
    reader.join(60)
    np.testing.assert_array_equal(np.concatenate(parts), image["1"][...])


def test_frames_count_as_stored_if_a_level_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no room")

    image = movie(zarrow.MemoryStore())
    monkeypatch.setattr(levels._Level, "add", fail)
    writer = Writer(image)
    with pytest.raises(OSError, match="no room"):
        writer.append(numbered(0, 20))
        writer.flush()
    assert 0 < writer.stored == image.multiscales[0].array.shape[0]
