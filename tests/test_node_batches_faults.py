"""Images saved, and rows appended, in a bucket while requests fail, the process ends, or others write."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import zarrow
from counted_bucket import Bucket, counted_bucket

IMAGE = np.arange(2 * 16 * 24, dtype="u2").reshape(2, 16, 24)
LEVELS = [IMAGE, IMAGE[:, ::2, ::2]]
NUCLEI = [(level[0] > 9).astype("u1") for level in LEVELS]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with counted_bucket() as found:
        yield found


@pytest.fixture(autouse=True)
def answers(bucket: Bucket) -> Iterator[None]:
    yield
    bucket.refuses = lambda _: False


def place(bucket: Bucket, name: str) -> zarrow.CloudStore:
    return zarrow.CloudStore(bucket.url(name), storage_options=bucket.options)


def save(store: Any, add: int = 0, **options: Any) -> None:
    levels = [level + np.uint16(add) for level in LEVELS]
    zarrow.ome.save(store, levels, axes="cyx", labels={"nuclei": NUCLEI}, **options)


def check(store: Any, add: int = 0) -> None:
    image = zarrow.open(store, mode="r").multiscales
    for level, label, expected, nuclei in zip(image, image.labels["nuclei"], LEVELS, NUCLEI, strict=True):
        assert np.array_equal(level.array[...], expected + np.uint16(add))
        assert np.array_equal(label.array[...], nuclei)


def is_image(store: Any, path: str = "") -> bool:
    try:
        group = zarrow.open(store, path, mode="r")
    except zarrow.NotFoundError:
        return False
    return isinstance(group, zarrow.Group) and "ome" in group.attrs


def each_number(refused: Callable[[], object]) -> Callable[[dict[str, Any]], bool]:
    """Return a function that tells whether a request is refused."""
    lock = threading.Lock()

    def refuses(_: dict[str, Any]) -> bool:
        with lock:
            return bool(refused())

    return refuses


def test_an_image_is_stored_whole_or_is_none_if_any_request_fails(bucket: Bucket) -> None:
    failures = 0
    for number in range(30):
        store, seen = place(bucket, f"refused{number}"), iter(range(1000))
        bucket.refuses = each_number(lambda seen=seen, number=number: next(seen) == number)
        try:
            save(store)
        except zarrow.ZarrowError:
            bucket.refuses = lambda _: False
            failures += 1
            if is_image(store):
                check(store)
            elif number % 5 == 0:
                save(store, add=1, overwrite=True)
                check(store, add=1)
        else:
            bucket.refuses = lambda _: False
            check(store)
    assert failures > 15


SAVER = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import zarrow
from test_node_batches_faults import save
store = zarrow.CloudStore(sys.argv[2], storage_options=eval(sys.argv[3]))
save(store)
"""


@pytest.mark.parametrize("number", [3, 9, 16, 24])
def test_a_killed_save_of_an_image_leaves_none_that_is_unfinished(bucket: Bucket, number: int) -> None:
    store, seen, child = place(bucket, f"killed{number}"), iter(range(1000)), list[Any]()
    began = threading.Event()

    def kill() -> None:
        if next(seen) == number:
            began.wait()
            child[0].kill()

    bucket.refuses = each_number(kill)
    folder = os.path.dirname(__file__)  # noqa: PTH120
    arguments = [sys.executable, "-c", SAVER, folder, bucket.url(f"killed{number}"), repr(bucket.options)]
    child.append(subprocess.Popen(arguments))
    began.set()
    assert child[0].wait(60) == -signal.SIGKILL
    bucket.refuses = lambda _: False
    assert not is_image(store) and not is_image(store, "labels/nuclei")
    save(store, overwrite=True)
    check(store)


@pytest.mark.parametrize("part", ["/c/", "labels/nuclei/1/zarr.json"])
def test_an_interrupted_save_of_an_image_leaves_no_array(bucket: Bucket, part: str) -> None:
    store, is_sent = place(bucket, f"interrupted{part[:3]}"), threading.Event()

    def interrupts(environment: dict[str, Any]) -> bool:
        if (
            environment["REQUEST_METHOD"] == "PUT"
            and part in environment["PATH_INFO"]
            and not is_sent.is_set()
        ):
            is_sent.set()
            os.kill(os.getpid(), signal.SIGINT)
        return False

    bucket.refuses = interrupts
    with pytest.raises(KeyboardInterrupt):
        save(store)
    assert not is_image(store)
    save(store, overwrite=True)
    check(store)


def test_of_two_savers_of_an_image_one_wins(bucket: Bucket) -> None:
    for at in range(4):
        store, barrier = place(bucket, f"two{at}"), threading.Barrier(2)

        def begin(add: int, store: Any = store, barrier: threading.Barrier = barrier) -> int | None:
            barrier.wait()
            try:
                save(store, add)
            except zarrow.NodeExistsError:
                return None
            return add

        with ThreadPoolExecutor(2) as threads:
            won = [add for add in threads.map(begin, (1, 2)) if add is not None]
        assert len(won) == 1
        check(store, won[0])


ROWS = {f"c{number}": np.arange(3) + number for number in range(3)}


def lengths(store: Any) -> set[int]:
    return {array.shape[0] for array in dict(zarrow.open(store, mode="r").items()).values()}


def test_rows_are_appended_to_all_arrays_or_to_none_if_any_request_fails(bucket: Bucket) -> None:
    failures = warned = 0
    for number in itertools.count():
        store, seen = place(bucket, f"rows{number}"), itertools.count()
        zarrow.save(store, ROWS)
        table = zarrow.open(store, mode="r+")
        bucket.refuses = each_number(lambda seen=seen, number=number: next(seen) == number)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert table.append(ROWS) == 6
        except zarrow.ZarrowError as error:
            failures += 1
            # Without a note the arrays were not opened.
            assert getattr(error, "__notes__", ["nothing was appended"]) == ["nothing was appended"]
            bucket.refuses = lambda _: False
            assert lengths(store) == {3}
            assert zarrow.open(store, mode="r+").append(ROWS) == 6
        else:
            bucket.refuses = lambda _: False
            warned += any("the rows were appended" in str(each.message) for each in caught)
        for name, column in ROWS.items():
            assert zarrow.open(store)[name][...].tolist() == [*column, *column]
        if next(seen) <= number:
            break
    assert failures > 3 and warned > 0


def test_an_interrupted_append_of_rows_appends_none(bucket: Bucket) -> None:
    store, is_sent = place(bucket, "interrupted rows"), threading.Event()
    zarrow.save(store, ROWS)
    table = zarrow.open(store, mode="r+")

    def interrupts(environment: dict[str, Any]) -> bool:
        if (
            environment["REQUEST_METHOD"] == "PUT"
            and "/c/" in environment["PATH_INFO"]
            and not is_sent.is_set()
        ):
            is_sent.set()
            os.kill(os.getpid(), signal.SIGINT)
        return False

    bucket.refuses = interrupts
    with pytest.raises(KeyboardInterrupt):
        table.append(ROWS)
    assert lengths(store) == {3}
    assert table.append(ROWS) == 6


def test_an_append_of_rows_to_a_server_that_fails_says_which_arrays_may_be_longer(bucket: Bucket) -> None:
    store, is_lost, seen = place(bucket, "lost"), threading.Event(), itertools.count()
    zarrow.save(store, ROWS)

    def refuses(environment: dict[str, Any]) -> bool:
        # After three claims the first document of an array is stored, and then the server fails.
        path = environment["PATH_INFO"]
        if environment["REQUEST_METHOD"] == "PUT" and path.endswith("/zarr.json") and "/lost/c" in path:
            number = next(seen)
            if number >= 3:
                is_lost.set()
            return number > 3
        return is_lost.is_set()

    table = zarrow.open(store, mode="r+")
    bucket.refuses = refuses
    with pytest.raises(zarrow.ZarrowError) as caught:
        table.append(ROWS)
    bucket.refuses = lambda _: False
    assert "may have kept rows: ['c0', 'c1', 'c2']; resize them to 3 rows" in caught.value.__notes__[-1]
    assert lengths(store) == {3, 6}


def test_a_column_that_does_not_fit_appends_nothing(bucket: Bucket) -> None:
    store = place(bucket, "misfit")
    zarrow.save(store, ROWS)
    table = zarrow.open(store, mode="r+")
    with pytest.raises((TypeError, ValueError), match="'c1'") as caught:
        table.append({**ROWS, "c1": ["a", "b", "c"]})
    assert caught.value.__notes__[-1] == "nothing was appended"
    assert lengths(store) == {3}
    assert table.append(ROWS) == 6
