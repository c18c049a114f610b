"""File systems without locks, and with locks that are invisible to other machines.

Writes work there, and files of live writers are never removed.

The kernel is made to refuse `flock`, or to report success without locking, and to hide the type of the file
system: so it looks like a network file system.
"""

from __future__ import annotations

import errno
import os
import select
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

WITHOUT = {"ENOLCK": errno.ENOLCK, "ENOSYS": errno.ENOSYS, "EOPNOTSUPP": errno.EOPNOTSUPP}

HEAD = """
    import errno, multiprocessing, os, signal, sys, threading, time
    from pathlib import Path
    import numpy as np
    import seccomp, zarrow

    folder = Path(sys.argv[1])

    def reserved():
        '''What writers left, below the folder.'''
        return sorted(path.name for path in folder.rglob(".zarrow-*"))

    def create(**settings):
        return zarrow.create_array(folder / "a", shape=32, chunks=8, dtype="u4", **settings)
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


@pytest.mark.parametrize("error", WITHOUT.values(), ids=WITHOUT)
def test_everything_can_be_written_without_locks(tmp_path, error):
    program = """
        seccomp.refuse({"flock": int(sys.argv[2]), "fstatfs": errno.ENOSYS})
        a = create()
        a[:] = 1
        a[3:5] = 2
        a[:8] = 0
        a.append(np.full(4, 7, "u4"))
        a.resize(34)
        a.attrs["name"] = "rain"
        sharded = zarrow.create_array(folder / "s", shape=32, chunks=4, shards=16, dtype="u4")
        sharded[2:20] = 3
        assert a[:].tolist() == [0] * 8 + [1] * 24 + [7] * 2
        assert sharded[:].tolist() == [0] * 2 + [3] * 18 + [0] * 12
        assert zarrow.open(folder / "a").attrs["name"] == "rain"
        assert reserved() == [], reserved()
    """
    run(program, tmp_path, error)


def test_without_any_lock_nodes_are_created_and_changes_refused(tmp_path):
    """Neither `flock` nor links: atomic operations work, and read-modify-write is an error."""
    program = """
        seccomp.refuse({"flock": errno.ENOLCK, "symlinkat": errno.EPERM, "fstatfs": errno.ENOSYS})
        root = zarrow.create_group(folder / "g")
        a = root.create_array("a", shape=32, chunks=8, dtype="u4")
        a[:] = 7
        root["b"] = np.arange(5)
        a = root.create_array("a", shape=16, chunks=8, dtype="u4", overwrite=True)
        assert a[:].tolist() == [0] * 16
        a[:8] = 1
        changes = [
            lambda: a.attrs.update(name="rain"),
            lambda: a.resize(3),
            lambda: a.append(np.ones(8, "u4")),
            lambda: a.__setitem__(3, 5),
        ]
        for change in changes:
            try:
                change()
            except zarrow.errors.UnsupportedError as error:
                assert "locks" in str(error), error
            else:
                raise AssertionError("changed without a lock")
        a = zarrow.open(folder / "g", "a")
        assert a[:].tolist() == [1] * 8 + [0] * 8 and dict(a.attrs) == {}
        del root["b"]
        assert list(root) == ["a"] and reserved() == [], reserved()
    """
    run(program, tmp_path)


def test_writes_of_parts_of_one_chunk_are_serialized_without_flock(tmp_path):
    """Threads and processes of one machine lose nothing, as with locks."""
    program = """
        seccomp.refuse({"flock": errno.ENOLCK, "fstatfs": errno.ENOSYS})
        a = create()

        def count(place):
            for number in range(1, 41):
                a[place] = number
                assert a[place] == number

        child = os.fork()
        if child == 0:
            signal.alarm(100)
            count(0)
            os._exit(0)
        threads = [threading.Thread(target=count, args=(place,)) for place in (1, 2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert os.waitpid(child, 0)[1] == 0
        assert a[:3].tolist() == [40] * 3 and reserved() == []
    """
    run(program, tmp_path)


def test_a_killed_writer_of_this_machine_blocks_no_writer_without_locks(tmp_path):
    program = """
        seccomp.refuse({"flock": errno.ENOLCK, "fstatfs": errno.ENOSYS})
        a = create()
        held = 0
        while not held:
            child = os.fork()
            if child == 0:
                while True:
                    a[0] = 1
            while not reserved():
                time.sleep(0.001)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            held = sum("lock" in name for name in reserved())
        a[1] = 5
        a[:8] = np.arange(8, dtype="u4")
        assert a[:8].tolist() == list(range(8))
        assert not [name for name in reserved() if "lock" in name or "claim" in name]
    """
    run(program, tmp_path)


def test_a_lock_of_another_machine_is_waited_for_and_then_an_error(tmp_path):
    """The owner cannot be checked, so the lock is not broken."""
    program = """
        seccomp.refuse({"flock": errno.ENOLCK, "fstatfs": errno.ENOSYS})
        a = create()
        lock = folder / "a" / "c" / ".zarrow-lock-0"
        lock.parent.mkdir(exist_ok=True)
        os.symlink("abc-1-1-1-1", lock)
        os.utime(lock, (1, 1), follow_symlinks=False)
        for value in (np.uint32(1), np.arange(8, dtype="u4")):
            try:
                a[: value.size] = value
            except OSError as error:
                assert "remove it" in str(error) and ".zarrow-lock-0" in str(error), error
            else:
                raise AssertionError("written over a lock")
        assert os.readlink(lock) == "abc-1-1-1-1"
        lock.unlink()
        a[0] = 9
        assert a[0] == 9 and reserved() == []
    """
    run(program, tmp_path)


# A process with a half-written new chunk, which is then killed or continues.
LEAVE = """
    def leave(end):
        '''What a writer leaves that ends so, in the folder of chunks.'''
        child = os.fork()
        if child == 0:
            while True:
                a[:] = np.random.default_rng().integers(1, 9, 32, "u4")
        names = []
        while not [name for name in names if "lock" not in name]:
            os.kill(child, signal.SIGCONT)
            time.sleep(0.0005)
            os.kill(child, signal.SIGSTOP)
            names = reserved()
        os.kill(child, end)
        if end == signal.SIGKILL:
            os.waitpid(child, 0)
        return child, [name for name in names if "lock" not in name]
"""


def test_files_of_other_machines_and_live_writers_are_kept(tmp_path):
    """Every lock succeeds: other machines' locks are invisible."""
    program = textwrap.dedent(LEAVE) + textwrap.dedent("""
        seccomp.refuse({"flock": 0, "fstatfs": errno.ENOSYS})
        a = create()
        a[:] = 1
        chunks = folder / "a" / "c"
        living, kept = leave(signal.SIGSTOP)
        dead, left = leave(signal.SIGKILL)
        left = [name for name in left if name not in kept]
        # Name of a file from a writer on another machine: only the machine differs.
        other = ".zarrow-" + "-".join(["abc", *kept[0].removeprefix(".zarrow-").split("-")[1:]])
        (chunks / other).write_bytes(b"half")
        (chunks / ".zarrow-1-2-3").write_bytes(b"of an older version")
        fresh = os.fork()
        if fresh == 0:
            # The first write of a process to a folder removes leftovers.
            program = "import sys, zarrow; zarrow.open(sys.argv[1])[:8] = 3"
            os.execv(sys.executable, [sys.executable, "-c", program, str(folder / "a")])
        assert os.waitpid(fresh, 0)[1] == 0
        names = reserved()
        assert set(kept) | {other, ".zarrow-1-2-3"} <= set(names), names
        assert not set(left) & set(names), (left, names)
        os.kill(living, signal.SIGKILL)
        os.waitpid(living, 0)
    """)
    run(program, tmp_path)


def unshared() -> list[str] | None:
    """Return the command to start a program in another time namespace; None if it is not allowed."""
    command = ["unshare", "--user", "--map-root-user", "--time", "--boottime", "100000", "--fork"]
    try:
        return command if subprocess.run([*command, "true"], check=False).returncode == 0 else None
    except FileNotFoundError:
        return None


def test_a_writer_in_another_time_namespace_lives(tmp_path):
    """Its start time is shifted. A process outside must not treat it, or its lock, as dead."""
    program = """
        def encode(data):
            print("encodes", flush=True)
            sys.stdin.readline()
            return data

        zarrow.codecs.register("slow", encode=encode, decode=bytes)
        seccomp.refuse({"flock": errno.ENOLCK, "fstatfs": errno.ENOSYS})
        if sys.argv[2] == "create":
            create(compressors="slow")
        else:
            zarrow.open_array(folder / "a", mode="r+")[int(sys.argv[2])] = 1
    """
    if (inside := unshared()) is None:
        pytest.skip("no namespace of time can be made")
    run(program, tmp_path, "create")
    code = textwrap.dedent(HEAD) + textwrap.dedent(program)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}

    def write(place: int, *prefix: str) -> subprocess.Popen[str]:
        command = [*prefix, sys.executable, "-c", code, str(tmp_path), str(place)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe)

    with write(0, *inside) as first:
        assert first.stdout.readline() == "encodes\n"
        with write(1) as second:
            try:
                # The second one waits for the first, which holds the lock.
                # `select` takes no descriptors above 1,024.
                poll = select.poll()
                poll.register(second.stdout, select.POLLIN)
                assert not poll.poll(1000)
                first.communicate("\n", timeout=60)
                second.communicate("\n", timeout=60)
            finally:
                first.kill()
                second.kill()
    stored = np.frombuffer((tmp_path / "a" / "c" / "0").read_bytes(), "u4")
    assert stored.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
