"""Plans for one target: unfinished, dead, refused, and with something else at their places."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from test_copy import command
from test_two_passes import PENCILS, intermediate, layers, names
from zarrow import jobs
from zarrow.checks import digest
from zarrow.jobs.intermediates import store_beside

pytestmark = pytest.mark.small_files

OTHER = {**PENCILS, "memory_nbytes": 40_000}


def kill(at: int) -> Callable[[int, int], None]:
    """Return a progress function that ends a copy after this unit."""

    def progress(done: int, total: int) -> None:
        if done >= at:
            raise KeyboardInterrupt

    return progress


def killed(source: Path, target: Path, at: int = 15, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        zarrow.copy(source, target, progress=kill(at), **{**PENCILS, **options})


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["b.zarr.intermediate", "b.zarr.intermediate-0123456789abcdef"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_source_beside_the_target_stays(tmp_path: Path, name: str, is_link: bool) -> None:
    layers(tmp_path / ("a.zarr" if is_link else name))
    if is_link:
        (tmp_path / name).symlink_to("a.zarr")
    before = tree(tmp_path / name)
    zarrow.copy(tmp_path / name, tmp_path / "b.zarr", **PENCILS)
    assert tree(tmp_path / name) == before
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / name)


def place_of_copy(source: zarrow.Array, target: Path, **options: Any) -> Path:
    plan = jobs.copy(source, target, **{**PENCILS, **options})
    name = plan._first.name  # type: ignore[attr-defined]
    return Path(str(store_beside(str(target), None, name)))


def test_a_place_that_is_a_link_to_the_source_is_refused(tmp_path: Path) -> None:
    source = layers(tmp_path / "a.zarr")
    place_of_copy(source, tmp_path / "b.zarr").symlink_to("a.zarr")
    before = tree(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="would replace"):
        zarrow.copy(source, tmp_path / "b.zarr", **PENCILS)
    assert tree(tmp_path / "a.zarr") == before
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.parametrize("kind", ["array", "group", "nested"])
def test_a_source_in_the_place_of_the_ledger_is_refused(tmp_path: Path, kind: str) -> None:
    ledger = tmp_path / "b.zarr.jobs"
    layers(ledger, path="" if kind == "array" else "inner/x")
    before = tree(ledger)
    source = ledger / "inner" if kind == "nested" else ledger
    for options in (PENCILS, {}):
        with pytest.raises(ValueError, match=r"in the ledger|in an array"):
            zarrow.copy(source, tmp_path / "b.zarr", if_exists="overwrite", **options)
    with pytest.raises(ValueError, match="in an array"):
        jobs.write(lambda unit: 0, layers(tmp_path / "c.zarr"), ledger=tmp_path / "c.zarr")
    assert tree(ledger) == before
    assert names(tmp_path) == ["b.zarr.jobs", "c.zarr"]


def put_files(place: Path) -> None:
    (place / "thesis").mkdir(parents=True)
    (place / "thesis/chapter.txt").write_text("years of work")


FOREIGN: dict[str, Callable[[Path], object]] = {
    "files": put_files,
    "an array": lambda place: zarrow.save(place, [1, 2]),
    "a group": lambda place: zarrow.save(place, u=[1, 2]),
    "another token": lambda place: zarrow.create_array(
        place, data=[1, 2], attributes={"zarrow_copy": "0123456789abcdef-00"}
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("if_exists", ["error", "overwrite"])
def test_something_else_at_the_place_is_never_erased(tmp_path: Path, kind: str, if_exists: Any) -> None:
    source = layers(tmp_path / "a.zarr")
    FOREIGN[kind](tmp_path / "b.zarr.intermediate")
    zarrow.copy(source, tmp_path / "b.zarr", if_exists=if_exists, **PENCILS)
    place = place_of_copy(source, tmp_path / "b.zarr")
    FOREIGN[kind](place)
    before = tree(tmp_path)
    if if_exists == "error":
        shutil.rmtree(tmp_path / "b.zarr")
        before = tree(tmp_path)
    with pytest.raises(
        zarrow.NodeExistsError, match=rf"{place.name}.* is the place of an intermediate array"
    ):
        zarrow.copy(source, tmp_path / "b.zarr", if_exists=if_exists, **PENCILS)
    assert tree(tmp_path) == before


def test_only_arrays_with_a_token_are_erased(tmp_path: Path) -> None:
    """A file that someone put beside an intermediate array stays."""
    source = layers(tmp_path / "a.zarr")
    killed(tmp_path / "a.zarr", tmp_path / "b.zarr")
    place = intermediate(tmp_path / "b.zarr")
    assert place is not None
    (place / "notes.txt").write_text("n")
    zarrow.copy(source, tmp_path / "b.zarr", **PENCILS)
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(place) == ["notes.txt"]


@pytest.mark.parametrize("passes", [1, 2])
def test_an_unfinished_copy_is_not_skipped(tmp_path: Path, passes: Any) -> None:
    source = layers(tmp_path / "a.zarr")
    killed(tmp_path / "a.zarr", tmp_path / "b.zarr", passes=passes)
    before = tree(tmp_path)
    with pytest.raises(jobs.ConflictError, match=r"not whole: plan .* has not finished it"):
        zarrow.copy(source, tmp_path / "b.zarr", if_exists="skip", **{**OTHER, "passes": passes})
    assert tree(tmp_path) == before
    zarrow.copy(source, tmp_path / "b.zarr", if_exists="skip", **{**PENCILS, "passes": passes})
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    zarrow.copy(source, tmp_path / "b.zarr", if_exists="skip", **{**OTHER, "passes": passes})
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("passes", [1, 2])
def test_arrays_left_of_an_unfinished_copy_are_not_skipped(tmp_path: Path, passes: Any) -> None:
    """Of two arrays of a killed copy, one was erased. The same call does not take the other for finished."""
    for name in ("one", "two"):
        layers(tmp_path / "a.zarr", path=name)
    killed(tmp_path / "a.zarr", tmp_path / "b.zarr", passes=passes)
    shutil.rmtree(tmp_path / "b.zarr/one")
    for if_exists in ("error", "skip", "skip"):
        with pytest.raises(jobs.ConflictError, match=r"'two' of .* is not whole"):
            zarrow.copy(
                tmp_path / "a.zarr",
                tmp_path / "b.zarr",
                if_exists=if_exists,  # type: ignore[arg-type]
                **{**PENCILS, "passes": passes},
            )
    zarrow.copy(
        tmp_path / "a.zarr", tmp_path / "b.zarr", if_exists="overwrite", **{**PENCILS, "passes": passes}
    )
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_arrays_that_an_interrupted_overwrite_emptied_are_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        layers(tmp_path / "a.zarr", path=name)
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr")
    create = jobs.work.New.create  # type: ignore[attr-defined]

    def interrupted(new: Any, **options: Any) -> Any:
        create(new, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs.work.New, "create", interrupted)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", if_exists="overwrite")
    monkeypatch.undo()
    for options in ({}, OTHER):
        with pytest.raises(jobs.ConflictError, match="is not whole"):
            zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", if_exists="skip", **options)
    zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", if_exists="overwrite")
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_arrays_that_an_unfinished_copy_skipped_count_as_finished(tmp_path: Path) -> None:
    for name in ("one", "two"):
        layers(tmp_path / "a.zarr", path=name)
    zarrow.create_array(tmp_path / "b.zarr", path="one", data=[1, 2])
    killed(tmp_path / "a.zarr", tmp_path / "b.zarr", if_exists="skip", at=2)
    shutil.rmtree(tmp_path / "b.zarr/two")
    zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", if_exists="skip", **OTHER)
    assert zarrow.open(tmp_path / "b.zarr")["one"][...].tolist() == [1, 2]
    assert digest(tmp_path / "b.zarr/two") == digest(tmp_path / "a.zarr/two")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("at", [2, 20])
def test_a_refused_copy_leaves_a_running_one_alone(tmp_path: Path, at: int) -> None:
    source = layers(tmp_path / "a.zarr")
    refused = []

    def progress(done: int, total: int) -> None:
        if done == at:
            before = tree(tmp_path)
            for options in ({}, {"if_exists": "skip"}):
                with pytest.raises((zarrow.NodeExistsError, jobs.ConflictError)):
                    zarrow.copy(source, tmp_path / "b.zarr", **OTHER, **options)
            assert tree(tmp_path) == before
            refused.append(at)

    zarrow.copy(source, tmp_path / "b.zarr", progress=progress, **PENCILS)
    assert refused == [at]
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("others", [1, 2])
def test_a_copy_erases_what_dead_ones_left(tmp_path: Path, passes: Any, others: int) -> None:
    """The targets of killed copies were removed: their ledgers and intermediate arrays go, too."""
    source = layers(tmp_path / "a.zarr")
    for other in range(others):
        killed(tmp_path / "a.zarr", tmp_path / "b.zarr", memory_nbytes=16_000 + other * 1000)
        shutil.rmtree(tmp_path / "b.zarr")
        if not other:
            for each in tmp_path.glob("b.zarr.*"):
                shutil.copytree(each, tmp_path / "kept" / each.name)
    for each in (tmp_path / "kept").iterdir():
        shutil.copytree(each, tmp_path / each.name, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "kept")
    assert len(list(tmp_path.glob("b.zarr.intermediate-*"))) == others
    zarrow.copy(source, tmp_path / "b.zarr", **{**OTHER, "passes": passes})
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_a_copy_to_a_file_url_leaves_nothing(tmp_path: Path) -> None:
    layers(tmp_path / "a.zarr")
    target = (tmp_path / "b.zarr").as_uri()
    with pytest.raises(KeyboardInterrupt):
        zarrow.copy(tmp_path / "a.zarr", target, progress=kill(15), **PENCILS)
    shutil.rmtree(tmp_path / "b.zarr")
    zarrow.copy(tmp_path / "a.zarr", target, **OTHER)
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_a_copy_of_an_array_erases_what_a_dead_copy_of_a_group_left(tmp_path: Path) -> None:
    for name in ("one", "two"):
        layers(tmp_path / "a.zarr", path=name)
    killed(tmp_path / "a.zarr", tmp_path / "b.zarr")
    shutil.rmtree(tmp_path / "b.zarr")
    zarrow.copy(tmp_path / "a.zarr/one", tmp_path / "b.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_a_copy_leaves_unfinished_ones_beside_it_alone(tmp_path: Path) -> None:
    """They have other arrays of the same group, or the same array and another ledger."""
    for name in ("one", "two"):
        layers(tmp_path / "a.zarr", path=name)
    killed(tmp_path / "a.zarr", tmp_path / "b.zarr", at=20)
    before = tree(tmp_path)
    zarrow.copy(tmp_path / "a.zarr/one", tmp_path / "b.zarr", "three", **OTHER)
    with pytest.raises(zarrow.NodeExistsError):
        zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", ledger=str(tmp_path / "ledger"), **PENCILS)
    shutil.rmtree(tmp_path / "b.zarr/three")
    assert tree(tmp_path) == before
    seen: list[int] = []
    zarrow.copy(
        tmp_path / "a.zarr", tmp_path / "b.zarr", progress=lambda *done: seen.append(done[0]), **PENCILS
    )
    assert seen[0] == 21


def test_a_copy_leaves_results_and_other_targets_alone(tmp_path: Path) -> None:
    """Dead plans of other arrays, results of `collect`, and ledgers with strange entries stay."""
    source = layers(tmp_path / "a.zarr")
    zarrow.create_array(tmp_path / "b.zarr", path="x", data=[1.0, 2.0])
    collected = jobs.collect(lambda part: float(part.max()), zarrow.open(tmp_path / "b.zarr")["x"])
    collected.setup()
    collected.run(collected.job(0, 1))
    shutil.rmtree(tmp_path / "b.zarr/x")
    strange = zarrow.open_group(tmp_path / "b.zarr.jobs/strange", mode="a")
    plan = {"kind": "copy", "target": [str(tmp_path / "b.zarr"), ""], "blocks": {"x": [1]}}
    strange.attrs.update(plan=plan, state="running", intermediate="/../../a.zarr")
    zarrow.copy(source, tmp_path / "b.zarr", "x", **PENCILS)
    assert names(tmp_path / "b.zarr.jobs") == [collected.fingerprint]
    assert digest(tmp_path / "b.zarr/x") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr", "b.zarr.jobs"]


def test_an_interrupted_copy_into_a_folder_of_its_source_resumes(tmp_path: Path) -> None:
    layers(tmp_path / "a.zarr", path="x")
    killed(tmp_path / "a.zarr", tmp_path / "a.zarr/copy")
    seen: list[int] = []
    zarrow.copy(
        tmp_path / "a.zarr", tmp_path / "a.zarr/copy", progress=lambda done, _: seen.append(done), **PENCILS
    )
    assert seen[0] == 16
    assert names(tmp_path / "a.zarr") == ["copy", "x", "zarr.json"]
    assert names(tmp_path / "a.zarr/copy") == ["x", "zarr.json"]


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("at", [1, 8, 20])
def test_a_copy_that_another_process_finished_ends_well(tmp_path: Path, at: int, passes: Any) -> None:
    """While a process copies, another one does the same copy, and returns."""
    source = layers(tmp_path / "a.zarr")
    options = {**PENCILS, "passes": passes}
    seen: list[int] = []

    def progress(done: int, total: int) -> None:
        seen.append(done)
        if done == at:
            code = "import sys, json, zarrow; zarrow.copy(*sys.argv[1:3], **json.loads(sys.argv[3]))"
            arguments = [str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"), json.dumps(options)]
            subprocess.run([sys.executable, "-c", code, *arguments], check=True)
            zarrow.open_array(tmp_path / "b.zarr").attrs["note"] = "changed by its owner"

    copied = zarrow.copy(source, tmp_path / "b.zarr", progress=progress, **options)
    assert seen[-1] <= at + 1, "at most one unit is written again"
    np.testing.assert_array_equal(copied[...], source[...])
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_process_that_ends_after_another_has_finished_leaves_nothing_for_ever(
    tmp_path: Path, is_killed: bool
) -> None:
    layers(tmp_path / "a.zarr")
    code = f"""
import os, zarrow
options = {PENCILS!r}
def progress(done, total):
    if done == 8:
        if os.fork() == 0:
            zarrow.copy("a.zarr", "b.zarr", **options)
            os._exit(0)
        assert os.wait()[1] == 0
        if {is_killed}:
            os.kill(os.getpid(), 9)
        raise KeyboardInterrupt
zarrow.copy("a.zarr", "b.zarr", progress=progress, **options)
"""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    assert ended.returncode in (-9, 1, -2, 130), ended.stderr
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr", "b.zarr.jobs"][: 2 + is_killed]
    if is_killed:
        zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", **PENCILS)
        assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_messages_name_the_option_that_the_caller_has(tmp_path: Path) -> None:
    source = layers(tmp_path / "a.zarr")
    zarrow.save(tmp_path / "b.zarr", [1, 2])
    with pytest.raises(zarrow.NodeExistsError, match='pass if_exists="overwrite" to erase'):
        zarrow.copy(source, tmp_path / "b.zarr")
    with pytest.raises(zarrow.NodeExistsError, match='pass if_exists="overwrite" to erase'):
        zarrow.copy(source, tmp_path / "b.zarr", raw=True)
    found = command("copy", tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert found.returncode == 1
    assert "pass --overwrite to erase" in found.stderr and "such as --memory" in found.stderr
    with pytest.raises(zarrow.NodeExistsError, match="pass overwrite=True to erase"):
        jobs.copy(source, tmp_path / "b.zarr").setup()


@pytest.mark.parametrize("memory", ["2M", 2.5, None, b"1"])
def test_memory_is_a_number(tmp_path: Path, memory: Any) -> None:
    source = layers(tmp_path / "a.zarr")
    calls: list[Callable[[], object]] = [
        lambda: jobs.copy(source, tmp_path / "b.zarr", memory_nbytes=memory),
        lambda: jobs.copy(source, tmp_path / "b.zarr", raw=True, memory_nbytes=memory),
        lambda: jobs.map(abs, source, tmp_path / "b.zarr", memory_nbytes=memory),
        lambda: jobs.write(abs, source, memory_nbytes=memory),
        lambda: jobs.append(abs, source, 1, memory_nbytes=memory),
        lambda: jobs.collect(abs, source, memory_nbytes=memory),
    ]
    if memory is not None:
        calls.append(lambda: zarrow.copy(source, tmp_path / "b.zarr", memory_nbytes=memory))
    for call in calls:
        with pytest.raises(TypeError, match=r"memory_nbytes is a number of bytes, such as 256 << 20, got"):
            call()
    zarrow.copy(source, tmp_path / "b.zarr", memory_nbytes=np.int32(40_000))  # type: ignore[arg-type]


def test_small_shards_are_named_as_the_reason_for_one_pass(tmp_path: Path) -> None:
    layers(tmp_path / "a.zarr")
    arguments = ("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--chunks", "40,5,5", "--memory", "16000")
    found = command(*arguments, "--dry-run")
    assert "by shards of 8.2 KiB: below 1 MiB, only passes=2 chooses them" in found.stdout, found.stdout
    assert "chooses" not in command(*arguments, "--dry-run", "--passes", "2").stdout
    found = command(*arguments, "--dry-run", "--json")
    assert json.loads(found.stdout)["arrays"][""]["shard_nbytes"] == 8400
