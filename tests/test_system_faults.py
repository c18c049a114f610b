"""Changes of nodes under system errors: each raises an error with its reason, and is made completely or not
at all.

The faults: system calls that fail the same way each time, a store with a removed folder, and consolidated
metadata that cannot be written: beyond the limit for files, or in another user's folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> Any:
    return request.param


HEAD = """
    import errno, os, resource, shutil, signal, sys, time, warnings
    from pathlib import Path
    import numpy as np
    import seccomp, zarrow

    folder = Path(sys.argv[1])
    warnings.simplefilter("always")

    def outcome(change):
        '''What came of a change: "done", "warned", or the kind of the error.'''
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                change()
            except zarrow.ZarrowError as error:
                return error.kind
            except KeyboardInterrupt:
                return "interrupted"
        assert all("consolidate_metadata()" in str(warning.message) for warning in caught), caught
        return "warned" if caught else "done"
"""


def run(program: str, *arguments: object) -> str:
    code = textwrap.dedent(HEAD) + textwrap.dedent(program)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


CHANGES = """
    root = zarrow.create_group(folder / "g")
    root["x"] = np.arange(32, dtype="i4")
    root["y"] = np.arange(32, dtype="i4")
    root.consolidate_metadata()
    x = root["x"]
    changes = {
        "create a group": lambda: root.create_group("q"),
        "create": lambda: root.create_array("n/new", shape=4, dtype="i4"),
        "create with data": lambda: root.create_array("data", data=np.arange(9)),
        "replace": lambda: root.create_array("y", data=np.arange(9), overwrite=True),
        "append": lambda: x.append(np.arange(5, dtype="i4")),
        "grow": lambda: x.resize(50),
        "shrink": lambda: x.resize(3),
        "attribute": lambda: x.attrs.update(name="rain"),
        "part": lambda: x.__setitem__(1, 5),
        "consolidate": root.consolidate_metadata,
        "delete": lambda: root.__delitem__("y"),
        "save": lambda: zarrow.save(folder / "saved", np.arange(5)),
    }
"""

FAULTS = {
    "openat ENOENT": '{"openat": errno.ENOENT}',
    "fstat ENOENT": '{"fstat": errno.ENOENT, "newfstatat": errno.ENOENT, "statx": errno.ENOENT}',
    "mkdirat EEXIST": '{"mkdirat": errno.EEXIST}',
    "mkdirat ENOENT": '{"mkdirat": errno.ENOENT}',
    "flock EAGAIN": '{"flock": errno.EAGAIN}',
    "renameat ENOENT": '{"renameat": errno.ENOENT, "renameat2": errno.ENOENT}',
    "symlinkat EEXIST": '{"flock": errno.ENOLCK, "symlinkat": errno.EEXIST}',
    "pread EINTR": '{"pread64": errno.EINTR, "preadv": errno.EINTR, "openat": errno.EINTR}',
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_change_ends_if_a_call_always_fails(tmp_path: Path, fault: str) -> None:
    """Ctrl-C ends the wait for a lock, which another process may hold; everything else ends without it."""
    program = """
        def raised(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, raised)
        seccomp.refuse(%s)
        for name, change in changes.items():
            start = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 2)
            try:
                print(name, outcome(change))
            except OSError as error:
                # Python itself opens files too.
                print(name, error)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert time.monotonic() - start < 8, name
    """
    output = run(textwrap.dedent(CHANGES) + textwrap.dedent(program % fault), tmp_path)
    assert "internal" not in output and len(output.splitlines()) == 12, output
    waits = "flock" in fault
    assert ("interrupted" in output) == waits, output


def test_interrupted_calls_are_repeated(tmp_path: Path) -> None:
    """A signal interrupts each third system call on files, as on a file system of another machine."""
    program = """
        def work(folder):
            root = zarrow.create_group(folder / "new" / "g")
            root["x"] = np.arange(32, dtype="i4")
            root.create_array("y", data=np.arange(4096).reshape(64, 64), chunks=(8, 8), shards=(16, 16))
            root.consolidate_metadata()
            x, y = root["x"], root["y"]
            x.append(np.arange(5, dtype="i4"))
            x.resize(50)
            x.resize(36)
            x[3] = 7
            y[5:20, 3] = 1
            x.attrs.update(name="rain")
            zarrow.create_array(folder / "new" / "g", "x2", data=np.arange(9), durability="full")
            root.create_array("x2", data=np.arange(7), overwrite=True)
            root["folder/inner"] = np.ones(3)
            del root["folder"]
            root = zarrow.open(folder / "new" / "g")
            assert sorted(root) == ["x", "x2", "y"] and root["x"].attrs == {"name": "rain"}
            assert root["x2"][:].tolist() == list(range(7)) and root["x"].shape == (36,)
            assert root["x"][:].tolist() == [0, 1, 2, 7, *range(4, 32), 0, 1, 2, 3]
            expected = np.arange(4096).reshape(64, 64)
            expected[5:20, 3] = 1
            assert (root["y"][:].numpy() == expected).all() and root["y"][63, 1] == 4033
            zarrow.create_array(folder / "raw", data=np.arange(9), compressors=None)
            assert zarrow.open(folder / "raw").read(mmap=True).tolist() == list(range(9))
            assert zarrow.open(folder / "a.zip")[:].tolist() == [1, 2]
            zarrow.save(folder / "new" / "g" / "x2", np.ones(3))
            assert not list(folder.rglob(".zarrow-*"))

        for name in ("before", "interrupted"):
            (folder / name).mkdir()
            zarrow.save(folder / name / "zipped", np.array([1, 2]))
            shutil.make_archive(folder / name / "a", "zip", folder / name / "zipped")
        work(folder / "before")  # imports everything
        calls = set(seccomp.NUMBERS) - {"mmap", "linkat"}
        seccomp.interrupt_each(3, calls)
        work(folder / "interrupted")
        print("done")
    """
    assert run(program, tmp_path) == "done\n"


def test_a_read_that_signals_keep_interrupting_ends_by_ctrl_c(tmp_path: Path) -> None:
    """As on a file system of another machine that does not answer."""
    program = """
        zarrow.save(folder / "x", np.arange(9))
        array, out = zarrow.open(folder / "x"), np.zeros(9, int)
        requests = [(array, ...)]
        array[...], zarrow.read_many(requests)  # imports everything
        reads = (lambda: array[...], lambda: array.read(out=out), lambda: zarrow.read_many(requests))
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        seccomp.interrupt_each(1, ["pread64", "preadv", "preadv2"])
        for read in reads:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                read()
            except KeyboardInterrupt:
                print("interrupted")
    """
    assert run(program, tmp_path) == "interrupted\n" * 3


def test_a_store_that_was_removed_says_so_at_once(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "g")
    array = root.create_array("x", data=np.arange(9))
    shutil.rmtree(tmp_path / "g")
    changes: list[Callable[[], Any]] = [
        lambda: root.create_group("q"),
        lambda: root.create_array("q", shape=3, dtype="i4"),
        lambda: root.__setitem__("q", [1]),
        lambda: root.__delitem__("x"),
        root.consolidate_metadata,
        lambda: root.attrs.update(a=1),
        lambda: array.append([1]),
        lambda: array.resize(3),
        lambda: array.__setitem__(0, 5),
    ]
    for change in changes:
        with pytest.raises(OSError) as raised:
            change()
        assert isinstance(raised.value, zarrow.ZarrowError)
    assert not (tmp_path / "g").exists()


def test_folders_without_nodes_are_never_erased(tmp_path: Path, zarr_format: int) -> None:
    root = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    root["y"] = np.arange(5)
    (tmp_path / "docs").mkdir()
    for name in ("notes.txt", "docs/readme"):
        (tmp_path / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    for name in ("docs", "notes.txt", "y/c", "y/0", "zarr.json", ".zgroup", "y/zarr.json", "nothing"):
        assert name not in root
        with pytest.raises(KeyError) as raised:
            del root[name]
        assert raised.value.kind == "not_found"
        assert ("no Zarr document" in str(raised.value)) == (tmp_path / name).exists()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_change_with_unwritable_copies_is_made_once(tmp_path: Path, zarr_format: int) -> None:
    """Only the consolidated metadata exceed the limit of file sizes."""
    program = """
        root = zarrow.create_group(folder / "g", zarr_format=int(sys.argv[2]))
        root["x"] = np.arange(8, dtype="i4")
        root["old"] = np.arange(8, dtype="i4")
        root.create_group("much", attributes={"text": "x" * 100_000})
        root.consolidate_metadata()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        x, y = root["x"], zarrow.open(folder / "g")["x"]
        assert outcome(lambda: x.append(np.arange(4, dtype="i4"))) == "warned"
        assert x.shape == (12,) and zarrow.open(folder / "g/x").shape == (12,)
        assert outcome(lambda: x.resize(5)) == "warned"
        assert x.shape == (5,) and zarrow.open(folder / "g/x")[:].tolist() == [0, 1, 2, 3, 4]
        assert outcome(lambda: x.attrs.update(units="K")) == "warned"
        assert zarrow.open(folder / "g/x").attrs == {"units": "K"}
        assert outcome(lambda: root.create_array("p/new", data=np.arange(3))) == "warned"
        assert zarrow.open(folder / "g/p/new")[:].tolist() == [0, 1, 2]
        # A replacement must not be shown by copies that describe the old array: it is refused.
        assert outcome(lambda: root.create_array("old", data=np.ones(3), overwrite=True)) == "no_space"
        assert outcome(root.consolidate_metadata) == "no_space"
        assert root["old"][:].tolist() == list(range(8))
        assert zarrow.open(folder / "g")["x"].shape == (8,)
        assert outcome(lambda: root.__delitem__("old")) == "warned"
        assert outcome(lambda: root.__delitem__("old")) == "not_found"
        assert not (folder / "g/old").exists()
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert outcome(root.consolidate_metadata) == "done"
        assert root["x"].shape == (5,) and root["p/new"].shape == (3,) and "old" not in root
        assert not list(folder.rglob(".zarrow-*"))
    """
    run(program, tmp_path, zarr_format)


def test_an_unwritable_group_does_not_block_changes_of_its_members(tmp_path: Path, zarr_format: int) -> None:
    program = """
        root = zarrow.create_group(folder / "g", zarr_format=int(sys.argv[2]))
        root["in/x"] = np.arange(8, dtype="i4")
        root.consolidate_metadata()
        root = zarrow.open(folder / "g")
        x = root["in/x"]
        inner = zarrow.open(folder / "g", "in")
        repr(x[:].numpy())
        (folder / "g").chmod(0o555)
        if os.getuid() == 0:
            for path in (folder / "g").rglob("*"):
                os.chown(path, 65534, 65534)
            os.setuid(65534)
        for number in range(3):
            assert outcome(lambda: x.append(np.arange(4, dtype="i4"))) == "warned"
            assert x.shape == (12 + 4 * number,)
        assert outcome(lambda: x.resize(9)) == "warned" and x.shape == (9,)
        assert outcome(lambda: root.create_array("in/y", data=np.arange(3))) == "warned"
        assert outcome(lambda: root.create_array("in/x", data=np.ones(3), overwrite=True)) == "permission"
        assert x[:].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0]
        assert root["in/x"].shape == (8,) and inner["y"][:].tolist() == [0, 1, 2]
        assert outcome(lambda: inner.__delitem__("y")) in ("done", "warned")
        assert outcome(lambda: root.__delitem__("in/x")) == "warned"
        assert outcome(lambda: root.__delitem__("in/x")) == "not_found"
    """
    run(program, tmp_path, zarr_format)
    assert not (tmp_path / "g/in/x").exists() and not (tmp_path / "g/in/y").exists()
    (tmp_path / "g").chmod(0o755)


def test_an_exchange_that_fails_keeps_the_old_array_in_the_group(tmp_path: Path, zarr_format: int) -> None:
    program = """
        root = zarrow.create_group(folder / "g", zarr_format=int(sys.argv[2]))
        root["in/x"] = np.arange(8, dtype="i4")
        root.consolidate_metadata()
        zarrow.open(folder / "g", "in").consolidate_metadata()
        names = [folder / "g" / name for name in ("zarr.json", ".zmetadata", "in/zarr.json", "in/.zmetadata")]
        before = [path.read_bytes() if path.exists() else b"" for path in names]
        seccomp.refuse({"renameat2": errno.EIO})
        assert outcome(lambda: root.create_array("in/x", data=np.ones(3), overwrite=True)) == "write"
        assert outcome(lambda: root.__setitem__("in/x", np.ones(3))) == "write"
        assert [path.read_bytes() if path.exists() else b"" for path in names] == before
        for group in (root, zarrow.open(folder / "g")):
            assert group["in/x"][:].tolist() == list(range(8))
    """
    run(program, tmp_path, zarr_format)


def test_a_create_that_fails_leaves_no_node(tmp_path: Path, zarr_format: int) -> None:
    """Only this document exceeds the limit of file sizes."""
    program = """
        root = zarrow.create_group(folder / "g", zarr_format=int(sys.argv[2]))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        dtype = np.dtype([(f"field {number}", "i4") for number in range(1000)])
        attributes = {"units": "K"}

        def create(path):
            root.create_array(path, shape=3, dtype=dtype, attributes=attributes)

        for path in ("p/q/x", "x"):
            assert outcome(lambda: create(path)) == "no_space"
        files = [path.name for path in folder.rglob("*") if path.is_file()]
        assert len(files) == 1 and list(root) == [], files
        attributes["text"] = "x" * 100_000
        dtype = "i4"
        assert outcome(lambda: create("p/x")) == "no_space"
        attributes.clear()
        assert outcome(lambda: create("p/x")) == "done"
    """
    run(program, tmp_path, zarr_format)


FULL = """
    root = zarrow.create_group(folder / "g", zarr_format=int(sys.argv[2]))
    root["x"] = np.arange(8, dtype="i4")
    root.create_array("old/a", data=np.random.default_rng(0).integers(0, 1 << 60, 50_000), compressors=None)
    root.create_array("old/b", data=np.arange(3))
    root.create_group("much", attributes={"text": "x" * 100_000})
    root.consolidate_metadata()
    with open(folder / "rest", "wb", buffering=0) as rest:
        try:
            while True:
                rest.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
    print(outcome(lambda: root.create_array("x", data=np.ones(30_000), overwrite=True)))
    print(outcome(lambda: root.__delitem__("old")))
    print(sorted(zarrow.open(folder / "g")), (folder / "g/old").exists(), root["x"][:].tolist())
    print(outcome(lambda: root.create_array("x", data=np.ones(3), overwrite=True)))
    print(sorted(path.name for path in folder.rglob(".zarrow-*")))
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs to mount a file system")
def test_erasing_makes_room_on_a_full_disk(tmp_path: Path, zarr_format: int) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", tmp_path], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed")
    try:
        output = run(FULL, tmp_path, zarr_format)
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)
    assert output.splitlines() == [
        "no_space",
        "done",
        "['much', 'x'] False [0, 1, 2, 3, 4, 5, 6, 7]",
        "done",
        "[]",
    ]


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        ("fsync", "EINVAL", "refuses `fsync`, which this durability needs"),
        ("fsync", "ENOSYS", "refuses `fsync`, which this durability needs"),
        ("utimensat", "EPERM", r"refuses to set modification times (`utimensat`)"),
    ],
)
def test_a_call_that_the_file_system_refuses_is_named(
    tmp_path: Path, call: str, error: str, named: str
) -> None:
    program = """
        array = zarrow.create_array(folder / "x", data=np.arange(9), durability="full")
        seccomp.refuse({sys.argv[2]: getattr(errno, sys.argv[3])})
        try:
            array[1:3] = 7
        except zarrow.UnsupportedError as refused:
            print(refused)
        assert array[...].tolist() == list(range(9))
    """
    assert named in run(program, tmp_path, call, error)
