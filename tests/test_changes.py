"""Changes that collide or fail: handles notice, documents agree, and no change is left half-done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from zarrow.errors import StaleHandleError


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "new.zarr" if request.param == "folder" else zarrow.MemoryStore()


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> Any:
    return request.param


def together(*functions: Any) -> list[Any]:
    """Return the results or exceptions of functions called in concurrent threads."""
    start, results = threading.Barrier(len(functions)), [None] * len(functions)

    def call(number: int, function: Any) -> None:
        start.wait()
        try:
            results[number] = function()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=call, args=item) for item in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_one_creator_of_a_node_succeeds(store: Any) -> None:
    zarrow.open(store, mode="a")
    for number in range(40):
        path = f"g/{number}"
        zarrow.create_group(store, "g", overwrite=True) if number % 10 == 0 else None
        results = together(
            lambda path=path: zarrow.create_array(store, path, shape=(1,), dtype="i1"),
            lambda path=path: zarrow.create_array(store, path, data=[1, 2]),
            lambda path=path: zarrow.create_group(store, path),
        )
        made = [result for result in results if not isinstance(result, Exception)]
        assert len(made) == 1, results
        assert all(isinstance(result, zarrow.NodeExistsError) for result in results if result is not made[0])
        assert type(zarrow.open(store, path)) is type(made[0])


def test_an_append_does_not_change_the_replacement(store: Any) -> None:
    """The new array keeps its document, whichever of the two comes last."""
    root, stale = zarrow.open(store, mode="a"), 0
    for _ in range(30):
        root.create_array("a", shape=(1,), dtype="i4", chunks=100, overwrite=True)
        old = root["a"]
        results = together(
            lambda old=old: old.append(np.arange(50_000, dtype="i4")),
            lambda: root.create_array("a", data=np.zeros((3, 2), "f8"), overwrite=True),
        )
        assert isinstance(results[1], zarrow.Array), results
        if isinstance(results[0], Exception):
            assert isinstance(results[0], zarrow.StaleHandleError | zarrow.NotFoundError), results
            stale += 1
        found = zarrow.open(store)["a"]
        assert found.shape == (3, 2) and found[...].tolist() == [[0, 0]] * 3
    assert isinstance(store, zarrow.MemoryStore) or stale > 0


def test_stale_handles_say_so(store: Any, zarr_format: Any) -> None:
    root = zarrow.create_group(store, zarr_format=zarr_format)
    root["a"] = np.arange(10)
    old = root["a"]
    root["a"].resize(4)
    with pytest.raises(zarrow.StaleHandleError, match="smaller") as raised:
        old[5] = 1
    assert isinstance(raised.value, OSError) and raised.value.kind == "stale"
    old[3] = 30
    root["a"].resize(10)
    assert root["a"][...].tolist() == [0, 1, 2, 30] + [0] * 6
    old[9] = 9
    root["a"] = ["text"]
    for refused in (
        lambda: old.__setitem__(0, 1),
        lambda: old.append([1]),
        lambda: old.resize(3),
        lambda: old.attrs.update(a=1),
    ):
        with pytest.raises(zarrow.StaleHandleError, match="replaced"):
            refused()
    assert root["a"][...].tolist() == ["text"] and root["a"].attrs == {}
    old.refresh()
    assert old[...].tolist() == ["text"]
    del root["a"]
    for refused in (lambda: old.__setitem__(0, "x"), lambda: old.append(["x"])):
        with pytest.raises(FileNotFoundError):
            refused()
    assert "a" not in root
    if isinstance(store, Path):
        assert not (store / "a").exists()


def test_one_handle_of_many_threads_has_the_last_shape(store: Any) -> None:
    log = zarrow.create_array(store, shape=(0,), dtype="i4", chunks=7)
    log.attrs["x"] = 0
    together(
        *[lambda: [log.append([1]) for _ in range(10)]] * 3,
        lambda: [log.attrs.update(x=i) for i in range(10)],
    )
    assert log.shape == (30,) == zarrow.open(store).shape and log.attrs == {"x": 9}
    assert log[...].tolist() == [1] * 30


def test_a_consolidated_group_shows_its_members_changes(store: Any, zarr_format: Any) -> None:
    root = zarrow.create_group(store, zarr_format=zarr_format)
    root["t"], root["g/u"] = [1, 2], [3]
    root.consolidate_metadata()
    member, inner = root["t"], root["g"]
    member.append([3])
    member.attrs["units"] = "K"
    assert root["t"].shape == (3,) and root["t"].attrs == {"units": "K"}
    member.resize(1)
    assert root["t"].shape == (1,)
    inner["v"] = [1]
    inner.attrs["title"] = "inner"
    assert root.keys() == ["g", "t"] and root["g"].keys() == ["u", "v"]
    assert root["g"].attrs == {"title": "inner"}
    del inner["u"]
    assert "g/u" not in root and "g/v" in root
    zarrow.open(store)["t"].attrs["units"] = "C"
    assert root["t"].attrs == {"units": "C"}


def test_nodes_of_another_version_are_not_consolidated(tmp_path: Path, zarr_format: Any) -> None:
    """Readers of the copies would not find them."""
    root = zarrow.create_group(tmp_path / "root", zarr_format=zarr_format)
    root["x"], root["g/z"] = [1], [3]
    zarrow.create_group(tmp_path / "root/g/other", zarr_format=5 - zarr_format)["y"] = [2]
    with pytest.raises(zarrow.UnsupportedError, match=rf"zarr_format={zarr_format}, or erase it .*g/other"):
        root.consolidate_metadata()
    assert zarrow.open(tmp_path / "root")["g/other/y"][...].tolist() == [2]
    del root["g/other"]
    root.consolidate_metadata()
    assert zarrow.open(tmp_path / "root").keys() == ["g", "x"]


@pytest.mark.parametrize("path", ["", "x", "deep/x"])
def test_data_that_cannot_be_stored_keep_the_old_node(tmp_path: Path, path: str) -> None:
    """An element that cannot be encoded, in the last chunk."""
    zarrow.create_array(tmp_path, path, data=["old"])
    new = np.array(["new"] * 5000, object)

    def entries() -> list[str]:
        return sorted(str(entry.relative_to(tmp_path)) for entry in tmp_path.rglob("*"))

    before = entries()
    limits = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    program = f"""
        import signal, sys, numpy as np, zarrow
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        {limits}
        try:
            zarrow.create_array(sys.argv[1], sys.argv[2], data=np.random.bytes(400_000), overwrite=True)
        except OSError as error:
            print(error.kind)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path), path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "no_space"
    assert entries() == before and zarrow.open(tmp_path, path)[...].tolist() == ["old"]
    zarrow.create_array(tmp_path, path, data=new, overwrite=True)
    assert zarrow.open(tmp_path, path).shape == (5000,) and not list(tmp_path.rglob(".zarrow-*"))


INTERRUPTED = """
    import os, signal, sys, threading
    import numpy as np
    import zarrow

    root = zarrow.open(sys.argv[1])
    values = np.random.default_rng(0).integers(0, 99, (4000, 1 << 12), np.uint8)

    def interrupt():
        # Wait until the first chunks exist, in any folder.
        while not any(path.endswith("c") for path, *_ in os.walk(sys.argv[1])):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        if sys.argv[2] == "append":
            root["x"].append(values)
        else:
            root["x"] = values
        print("done")
    except KeyboardInterrupt:
        print("stopped")
    thread.join()
"""


@pytest.mark.parametrize("how", ["append", "replace"])
def test_ctrl_c_keeps_the_old_array(tmp_path: Path, how: str) -> None:
    root = zarrow.open(tmp_path, mode="a")
    root.create_array("x", shape=(3, 1 << 12), chunks=(2, 1 << 12), dtype="u1", fill_value=7)
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(tmp_path), how]
    ended = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    array = root["x"]
    assert not list(tmp_path.rglob(".zarrow-*"))
    if array.shape == (3, 1 << 12):
        assert ended == "stopped"
        array.resize((4003, 1 << 12))
        assert (array[...].numpy() == 7).all()
    else:
        # The signal came after the last change: Python raises then too.
        values = np.random.default_rng(0).integers(0, 99, (4000, 1 << 12), np.uint8)
        assert np.array_equal(array[-4000:], values)
        assert array.shape[0] == (4003 if how == "append" else 4000)


@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup"])
@pytest.mark.parametrize(
    "text", ["precious", "", "{}", "[]", '{"zarr_format": 99}', '{"a": {"zarr_format": 3}}']
)
def test_a_file_of_the_name_of_a_document_makes_no_node(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "thesis.tex").write_text("mine")
    for refused in (
        lambda: zarrow.create_group(tmp_path, overwrite=True),
        lambda: zarrow.create_array(tmp_path, data=[1], overwrite=True),
    ):
        with pytest.raises(FileExistsError):
            refused()
    assert (tmp_path / "thesis.tex").read_text() == "mine" and (tmp_path / name).read_text() == text


def test_a_node_that_cannot_be_opened_can_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "unheard of"}')
    zarrow.create_array(tmp_path, data=[1], overwrite=True)
    assert zarrow.open(tmp_path)[...].tolist() == [1]


def test_readers_of_a_consolidated_store_see_an_array_while_it_is_replaced(tmp_path: Path) -> None:
    root = zarrow.open(tmp_path, mode="a")
    root["x"] = np.zeros(1000, "i4")
    root.consolidate_metadata()
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            root["x"] = np.ones(1000, "i4")

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(300):
            assert zarrow.open(tmp_path)["x"].shape == (1000,)
    finally:
        stop.set()
        thread.join()


def test_foreign_files_are_never_erased(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    for refused in (
        lambda: zarrow.open(tmp_path, mode="w"),
        lambda: zarrow.create_group(tmp_path, overwrite=True),
        lambda: zarrow.create_array(tmp_path, data=[1], overwrite=True),
    ):
        with pytest.raises(FileExistsError, match=r"notes\.txt") as raised:
            refused()
        assert raised.value.kind == "foreign"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    # An array beside them may be replaced, with everything in its folder.
    zarrow.save(tmp_path, [1])
    assert notes.read_text() == "mine"
    zarrow.create_array(tmp_path, data=[2], overwrite=True)
    assert not notes.exists()
    (tmp_path / "empty").mkdir()
    zarrow.open(tmp_path / "empty", mode="w")


def test_a_deep_tree_with_odd_names_is_erased(tmp_path: Path) -> None:
    root = zarrow.open(tmp_path, mode="a")
    root["g/x"] = [1]
    names = [b"not \xff utf-8", b"two\nlines", b"x" * 255, "é".encode()]
    for name in names:
        odd = tmp_path / "g" / os.fsdecode(name)
        odd.mkdir()
        (odd / "inside").write_text("1")
        odd.chmod(0o500)
    here = os.open(tmp_path / "g", os.O_RDONLY)
    for _ in range(700):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    del root["g"]
    assert [path.name for path in tmp_path.iterdir()] == ["zarr.json"]


CONSOLIDATORS = """
    import sys
    import zarrow

    for _ in range(30):
        zarrow.consolidate_metadata(sys.argv[1])
"""
CREATORS = """
    import sys
    import zarrow

    for number in range(30):
        zarrow.create_array(sys.argv[1], f"{sys.argv[2]}-{number}", data=[number])
"""


def test_consolidating_misses_nothing_that_processes_create(tmp_path: Path) -> None:
    zarrow.open(tmp_path, mode="a")
    programs = [CONSOLIDATORS, CREATORS, CREATORS]
    processes = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), str(tmp_path), str(number)])
        for number, program in enumerate(programs)
    ]
    assert [process.wait(120) for process in processes] == [0] * 3
    zarrow.consolidate_metadata(tmp_path) if not (tmp_path / "zarr.json").read_text().count(
        "consol"
    ) else None
    assert len(zarrow.open(tmp_path).keys()) == 60


def test_require_finds_nodes_missing_from_consolidated_metadata(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    root.consolidate_metadata()
    zarr.create_group(tmp_path / "rain")
    assert "rain" not in root
    with pytest.raises(zarrow.NodeExistsError):
        root.create_group("rain")
    assert "rain" in root
    zarr.create_group(tmp_path / "snow")
    assert root.require_group("snow").path == "snow"
    assert root.keys() == ["rain", "snow"]


KILLED = """
    import os, random, sys
    import numpy as np
    import zarrow

    folder, started, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    root = zarrow.open(folder)
    os.write(started, b"!")
    number = 0
    while True:
        number += 1
        rows = rng.randrange(1, 40)
        # All elements of one array are equal; another array has 7 in space without written rows.
        root["replaced"] = np.full(rows * 1000, rows, "i4")
        root["log"].append(np.full(rows, 1, "i4"))
        root["log"].resize(rng.randrange(0, 60))
        root.create_array("typed", data=np.zeros(rows, rng.choice(["f8", "i1", "i4"])), overwrite=True)
        root.require_group("gone")["x"] = [1]
        del root["gone"]
        if number % 5 == 0:
            root.consolidate_metadata()
"""


def test_killed_changes_leave_the_old_or_the_new(tmp_path: Path) -> None:
    kills, seed = int(os.environ.get("ZARROW_KILLS", "40")) // 4, int(os.environ.get("ZARROW_SEED", "0"))
    rng = np.random.default_rng(seed)
    root = zarrow.open(tmp_path, mode="a")
    root["replaced"] = np.full(1000, 1, "i4")
    root.create_array("log", shape=(0,), chunks=7, dtype="i4", fill_value=7)
    root.create_array("typed", data=np.zeros(3))
    for kill in range(kills):
        reading, writing = os.pipe()
        command = [
            sys.executable,
            "-c",
            textwrap.dedent(KILLED),
            str(tmp_path),
            str(writing),
            str(seed + kill),
        ]
        process = subprocess.Popen(command, pass_fds=(writing,))
        assert os.read(reading, 1) == b"!"
        os.close(reading), os.close(writing)
        threading.Event().wait(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        # The consolidated copies may be older, so the nodes are opened directly.
        replaced, log, typed = (zarrow.open(tmp_path, name) for name in ("replaced", "log", "typed"))
        values = replaced[...].numpy()
        assert (values == len(values) // 1000).all(), kill
        assert (typed[...].numpy() == 0).all(), kill
        size = log.shape[0]
        assert np.isin(log[...].numpy(), (1, 7)).all(), kill
        log.resize(size + 100)
        assert (log[size:].numpy() == 7).all(), kill
        log.resize(0)
    # Another process removes leftovers beside the arrays that it writes.
    sweep = "import sys, zarrow; zarrow.consolidate_metadata(sys.argv[1])['replaced'] = [1]"
    subprocess.run([sys.executable, "-c", sweep, str(tmp_path)], check=True)
    assert not list(tmp_path.glob(".zarrow-*"))


def test_a_read_of_an_array_that_was_replaced_by_one_of_more_axes_says_so(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    array = root.create_array("x", data=np.arange(11.0), chunks=3)
    root.create_array("x", data=np.ones((40, 40)), chunks=(7, 9), overwrite=True)
    with pytest.raises(zarrow.StaleHandleError):
        array[...]


def test_a_batch_of_a_replaced_array_says_so(tmp_path):
    """The new chunk cannot be decoded with the old description."""
    group = zarrow.create_group(tmp_path)
    for name in ("a", "b"):
        group[name] = np.arange(100)
    handles = [group["a"], group["b"]]
    zarrow.open(tmp_path).create_array("b", data=np.arange(7, dtype="f4"), overwrite=True)
    for read in (handles[1].read, lambda: zarrow.read_many([(handle, ...) for handle in handles])):
        with pytest.raises(zarrow.StaleHandleError, match="replaced"):
            read()


def _as_user(number: int, umask: int, work: Callable[[], object]) -> int:
    """Fork a child of this user; it exits with 0 if the work succeeds. Return its process number."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(number)
            os.setuid(number)
            os.umask(umask)
            work()
            status = 0
        finally:
            os._exit(status)
    return child


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the user")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_users_of_a_shared_folder_take_turns(umask: int) -> None:
    # The folders above pytest's are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        path, going = Path(folder) / "a.zarr", Path(folder) / "going"
        zarrow.codecs.register(
            "slowly", decode=lambda data, *_: bytes(data), encode=lambda data, *_: bytes(data)
        )
        zarrow.create_array(path, data=np.arange(20), chunks=10, compressors=[{"name": "slowly"}])
        for entry in [Path(folder), *Path(folder).rglob("*")]:
            entry.chmod(0o777 if entry.is_dir() else 0o666)

        def first(seconds: float) -> None:
            def encode(data: Any, *_: object) -> bytes:
                going.touch()
                time.sleep(seconds)
                return bytes(data)

            zarrow.codecs.register("slowly", decode=lambda data, *_: bytes(data), encode=encode)
            zarrow.open_array(path)[3] = -1

        def second() -> None:
            zarrow.open_array(path)[4] = -1

        # A narrow umask closes the chunks that a user has written to others.
        for seconds, kills in ((0.5, False), (30, True)) if umask == 0o022 else ((30, True),):
            going.unlink(missing_ok=True)
            holder = _as_user(1001, umask, lambda seconds=seconds: first(seconds))
            while not going.exists():
                time.sleep(0.01)
            if kills:
                os.kill(holder, signal.SIGKILL)
                os.waitpid(holder, 0)
            other = _as_user(1002, umask, second)
            assert os.waitpid(other, 0)[1] == 0
            if not kills:
                assert os.waitpid(holder, 0)[1] == 0


def test_a_creation_after_a_killed_one_shows_the_groups(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("a", data=np.arange(3))
    root.consolidate_metadata()
    consolidated = (tmp_path / "a.zarr/zarr.json").read_bytes()
    for name in ("x/y/z", "x/y"):
        zarrow.create_array(tmp_path / "a.zarr", "x/y/z", data=np.arange(3), overwrite=True)
        # As after a kill before the copies were renewed.
        (tmp_path / "a.zarr/zarr.json").write_bytes(consolidated)
        zarrow.create_array(tmp_path / "a.zarr", "x/y/z", data=np.arange(3), overwrite=True)
        again = zarrow.open_group(tmp_path / "a.zarr", mode="r")
        assert sorted(again) == ["a", "x"] and name in again and again["x/y"].keys() == ["z"]


def test_a_member_that_its_groups_metadata_do_not_describe_names_the_remedy(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "x.zarr")
    root.create_array("a", data=np.arange(3))
    zarrow.consolidate_metadata(tmp_path / "x.zarr")
    # A store that is opened at the member's folder does not see the group above.
    zarrow.create_array(tmp_path / "x.zarr/a", data=np.ones((2, 2)), overwrite=True)
    member = zarrow.open_group(tmp_path / "x.zarr").get_array("a")
    remedy = r"differs from the consolidated metadata of a group above: call consolidate_metadata\(\)"
    for change in (lambda: member.read(), lambda: member.write(0, 1), lambda: member.attrs.update(a=1)):
        with pytest.raises(StaleHandleError, match=remedy):
            change()
    zarrow.consolidate_metadata(tmp_path / "x.zarr")
    assert zarrow.open_group(tmp_path / "x.zarr").get_array("a").shape == (2, 2)
