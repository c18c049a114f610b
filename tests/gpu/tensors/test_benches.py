"""The GPU benchmarks run to their end with the available readers, and report the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from benches.gpu import cufile, data
from benches.gpu.__main__ import parse
from benches.gpu.frames import frames
from numcodecs import LZ4, Zstd

import zarrow

from .conftest import DRIVER

ROOT = Path(__file__).parents[3]


def test_the_command_line() -> None:
    default = parse([])
    assert default.rows == list(data.ROWS) and default.threads == [1, 2, 4, 8, 16] and not default.cufile
    assert parse(["raw", "--threads", "3", "--cufile"]).threads == [3]
    with pytest.raises(SystemExit):
        parse(["raw", "snappy"])


@pytest.mark.parametrize("row", [row for row in data.ROWS if row != "raw"])
def test_frames_are_those_of_the_chunks(tmp_path: Path, row: str) -> None:
    path = data.write(tmp_path, row, 2)
    codec = row.rpartition("-")[2]
    decoded = []
    for content, nbytes in frames(path, row):
        if codec == "zstd":
            part = bytes(Zstd().decode(content))
        elif codec == "lz4":
            part = bytes(LZ4().decode(nbytes.to_bytes(4, "little") + content))
        else:
            part = zlib.decompress(content, wbits=31)
        assert len(part) == nbytes
        decoded.append(part)
    stored = zarrow.open_array(path)[...].numpy()
    if row.startswith("blosc"):  # shuffled, and some streams are stored uncompressed
        assert 0 < sum(map(len, decoded)) <= stored.nbytes
    else:
        assert np.array_equal(np.sort(np.frombuffer(b"".join(decoded), "f4")), np.sort(stored.ravel()))


def test_a_library_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    missing = tmp_path / "libcufile.so.0"
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        cufile.opened(missing)
    source = tmp_path / "hangs.c"
    source.write_text(
        "#include <unistd.h>\nint cuFileDriverOpen(void) { pause(); return 0; }\n"
        "void cuFileHandleRegister(void) {}\nvoid cuFileRead(void) {}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", missing, source], check=True)
    with pytest.raises(RuntimeError, match="did not return within"):
        cufile.opened(missing, seconds=0.1)


@pytest.mark.skipif(DRIVER is None, reason="on a GPU `make bench-gpu` runs them")
def test_they_run_to_their_end(tmp_path: Path) -> None:
    folders = [*sys.path, os.environ.get("PYTHONPATH", "")]
    line = [
        "--mib",
        "2",
        "--rounds",
        "1",
        "--threads",
        "1",
        "2",
        "--data",
        tmp_path,
        "--json",
        tmp_path / "a.json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "benches.gpu", *map(str, line), "raw", "zstd"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "a.json").read_text())
    assert [(row["row"], row["threads"]) for row in report["rows"]] == [
        ("raw", 1), ("raw", 2), ("zstd", 1), ("zstd", 2),
    ]  # fmt: skip
    assert all({"zarrow", "zarr-python + zarrow.gpu"} <= set(row["times"]) for row in report["rows"])
    # Each skipped reader has a reason.
    for name, why in report["missing"].items():
        assert why and f"without {name}: {why}" in done.stdout
    assert {"damacy", "cuFile"} <= set(report["missing"])


def test_without_a_gpu_they_say_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benches.gpu"],
        cwd=ROOT,
        env={**os.environ, "ZARROW_CUDA_DRIVER": "libnothing.so"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout.startswith("skipped: ")) == (0, True), done.stderr
