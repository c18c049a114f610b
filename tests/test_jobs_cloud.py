"""Plans of work in the cloud, on moto as S3 on the loopback interface."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from werkzeug.serving import make_server

import zarrow
from counted_bucket import counted_bucket
from kill_counts import kills
from test_cloud import KEY, SECRET
from zarrow import jobs


@pytest.fixture(scope="module")
def bucket() -> Iterator[zarrow.CloudStore]:
    """Start a server, and return a store in a bucket."""
    from stores import s3_by_moto

    with s3_by_moto.connected(KEY, SECRET) as (client, options):
        client.create_bucket(Bucket="jobs")
        yield zarrow.CloudStore("s3://jobs/copy.zarr", options)


def run(pickled: bytes, index: int, count: int) -> None:
    """Run a job in a new process. All jobs but one wait until the plan is set up."""
    plan: jobs.Plan = pickle.loads(pickled)
    if index == 1:
        plan.setup()
    plan.run(plan.job(index, count, "spread"), wait=30)


def test_processes_copy_into_a_bucket_and_out_of_it(tmp_path: Path, bucket: zarrow.CloudStore) -> None:
    values = np.arange(400.0).reshape(20, 20)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(5, 5))
    into = jobs.copy(zarrow.open(tmp_path / "a.zarr"), bucket, "copy", chunks=(2, 20), memory_nbytes=1)
    carried_out(into)
    into.finish()
    copied = zarrow.open(bucket)["copy"]
    np.testing.assert_array_equal(copied[...], values)
    largest = jobs.collect(np.max, copied, memory_nbytes=1)
    carried_out_here(largest)
    assert max(largest.results().values()) == 399.0
    with pytest.raises(TypeError, match="set"):
        carried_out_here(jobs.collect(lambda values: {1.0}, copied))
    ledger = zarrow.CloudStore(f"s3://jobs/copy.zarr.jobs/{into.fingerprint}", bucket.__reduce__()[1][1])
    assert len(zarrow.open_group(ledger)) == 3
    into.forget()
    assert into.remaining() == 10


def test_processes_copy_in_two_passes_in_a_bucket(tmp_path: Path, bucket: zarrow.CloudStore) -> None:
    """They wait for each other between the passes, and the intermediate array is erased."""
    values = np.arange(4000.0).reshape(100, 40)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(1, 40))
    source = zarrow.open(tmp_path / "a.zarr")
    plan = jobs.copy(source, bucket, "above/two", chunks=(100, 2), memory_nbytes=3200, passes=2)
    carried_out(plan)
    assert plan.remaining() == 0
    between = zarrow.CloudStore(
        f"s3://jobs/copy.zarr.intermediate-{plan._first.name}", bucket.__reduce__()[1][1]
    )
    assert zarrow.open(between)["above/two"].shards is not None
    plan.finish()
    np.testing.assert_array_equal(zarrow.open(bucket)["above/two"][...], values)
    with pytest.raises(zarrow.NotFoundError):
        zarrow.open(between)
    plan.forget()


def race(pickled: bytes, index: int, count: int) -> None:
    """Set up a plan together with other processes, and run a job."""
    plan: jobs.Plan = pickle.loads(pickled)
    plan.setup(overwrite=True)
    plan.run(plan.job(index, count, "spread"))


def test_processes_set_up_in_a_bucket_at_once_and_again(tmp_path: Path, bucket: zarrow.CloudStore) -> None:
    values = np.arange(400.0).reshape(20, 20)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(5, 5))
    zarrow.create_array(bucket, "race", data=np.zeros(3), overwrite=True)
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), bucket, "race", chunks=(2, 20), memory_nbytes=1)
    for _ in range(2):  # and again, as after a kill
        carried_out(plan, race)
    plan.finish()
    np.testing.assert_array_equal(zarrow.open(bucket)["race"][...], values)
    assert finished_units(plan, 10) == list(range(10)), "no unit was done twice"


def slowly(values: Any) -> Any:
    time.sleep(0.01)
    return np.asarray(values) + 1


@pytest.fixture
def losing_bucket() -> Iterator[tuple[zarrow.CloudStore, list[int]]]:
    """Serve a bucket; one of 20 requests that change it is carried out, and not answered."""
    import boto3

    from stores.s3_by_moto import Quiet, application

    chance, lost = random.Random(7), [0]

    def losing(environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = application(environment, start_response)
        if environment["REQUEST_METHOD"] in ("PUT", "POST", "DELETE") and chance.random() < 0.05:
            lost[0] += 1
            environment["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        return answer

    server = make_server("127.0.0.1", 0, losing, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    options: dict[str, Any] = {
        "endpoint_url": f"http://127.0.0.1:{server.server_port}",
        "region_name": "us-east-1",
    }
    client = boto3.client("s3", aws_access_key_id=KEY, aws_secret_access_key=SECRET, **options)
    name = uuid.uuid4().hex
    client.create_bucket(Bucket=name)
    options = {"key": KEY, "secret": SECRET, "client_kwargs": options}
    yield zarrow.CloudStore(f"s3://{name}/mapped.zarr", options), lost
    server.shutdown()
    thread.join()


def test_killed_processes_continue_where_answers_are_lost(
    tmp_path: Path, losing_bucket: tuple[zarrow.CloudStore, list[int]]
) -> None:
    """Processes are killed at random and started again: no unit is lost, or finished twice."""
    bucket, lost = losing_bucket
    values, rng, context = (
        np.arange(960.0).reshape(240, 4),
        random.Random(3),
        multiprocessing.get_context("spawn"),
    )
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 4))
    plan = jobs.map(slowly, zarrow.open(tmp_path / "a.zarr"), bucket, "b", chunks=(2, 4), memory_nbytes=1)
    expected = kills(3)
    count, killed = min(8, expected), 0

    def started(index: int) -> Any:
        process = context.Process(target=run, args=(pickle.dumps(plan), index, count))
        process.start()
        return process

    processes = [started(index) for index in range(count)]
    while killed < expected:
        time.sleep(rng.uniform(0.05, 0.8))
        index = rng.randrange(count)
        if processes[index].is_alive():
            processes[index].kill()
            killed += 1
        processes[index].join(60)
        processes[index] = started(index)
    for process in processes:
        process.join(100)
        assert process.exitcode == 0
    assert plan.remaining() == 0 and lost[0] > 0
    plan.finish()
    np.testing.assert_array_equal(zarrow.open(bucket)["b"][...], values + 1)
    assert finished_units(plan, 120) == list(range(120))


def finished_units(plan: jobs.Plan, count: int) -> list[int]:
    """Return the units in all records of the ledger. A unit that was done twice is in it twice."""
    return sorted(
        number
        for _, numbers, attributes in plan._ledger._records(count, None)
        for first, end in attributes["done"]
        for number in numbers[first:end]
    )


def carried_out_here(plan: jobs.Plan) -> None:
    """Do a plan in this process."""
    plan.setup()
    plan.run(plan.job(0, 1))


def carried_out(plan: jobs.Plan, target: Callable[[bytes, int, int], None] = run) -> None:
    """Do a plan in three processes."""
    processes = multiprocessing.get_context("spawn")
    started = [processes.Process(target=target, args=(pickle.dumps(plan), index, 3)) for index in range(3)]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
        assert process.exitcode == 0
    assert plan.remaining() == 0


def test_a_copy_to_a_whole_bucket_asks_for_no_other_bucket(bucket: zarrow.CloudStore) -> None:
    options = bucket.__reduce__()[1][1]
    whole = zarrow.CloudStore("s3://jobs", options)
    source = zarrow.create_array({}, data=np.arange(12.0).reshape(3, 4), chunks=(2, 2))
    zarrow.copy(source, whole, "deep/copy")  # the name with `.jobs` at its end would be another bucket
    np.testing.assert_array_equal(zarrow.open(whole)["deep/copy"][...], source[...])
    for store in (whole, "s3://jobs", "s3://jobs/"):
        with pytest.raises(TypeError, match=r"the whole bucket .* has no place for it: pass ledger="):
            jobs.copy(source, store, "other")
    plan = jobs.copy(source, whole, "other", ledger=bucket)
    carried_out(plan)
    plan.finish()
    np.testing.assert_array_equal(zarrow.open(whole)["other"][...], source[...])
    parts: dict[str, Any] = {"memory_nbytes": 1, "progress": stop}
    for ledger in (bucket, None):
        with pytest.raises(KeyboardInterrupt):
            zarrow.copy(source, whole, "lost" if ledger is None else "begun", ledger=ledger, **parts)
    found: Any = zarrow.copy(source, whole, "begun", ledger=bucket, memory_nbytes=1)
    np.testing.assert_array_equal(found[...], source[...])
    with pytest.raises(zarrow.NodeExistsError, match="no earlier runs: pass ledger="):
        zarrow.copy(source, whole, "lost", memory_nbytes=1)
    with pytest.raises(ValueError, match="whether a killed copy left others: pass ledger="):
        zarrow.copy(source, whole, "lost", if_exists="skip")


def stop(done: int, total: int) -> None:
    """Interrupt a copy after the first unit."""
    raise KeyboardInterrupt


def test_a_killed_command_with_a_ledger_resumes_in_a_whole_bucket(tmp_path: Path) -> None:
    """It does no unit again that the ledger has, and leaves neither a ledger nor another bucket."""
    values = np.random.default_rng(0).random((40, 4))
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(1, 4))
    with counted_bucket() as served:
        url = served.options["client_kwargs"]["endpoint_url"]
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": url}
        served.client.create_bucket(Bucket="ledgers")
        buckets = served.client.list_buckets()["Buckets"]
        command = [sys.executable, "-m", "zarrow", "copy", tmp_path / "a.zarr", f"s3://{served.name}"]
        command += ["--ledger", "s3://ledgers/copies", "--memory", "1", "--json"]
        started: list[subprocess.Popen[str]] = []
        puts = itertools.count()

        def delay_and_kill(environment: dict[str, Any]) -> bool:
            if environment["REQUEST_METHOD"] == "PUT" and "/c/" in environment["PATH_INFO"]:
                time.sleep(0.05)
                if next(puts) == 30:
                    started[0].kill()
            return False

        served.refuses = delay_and_kill
        environment = {**os.environ, **keys, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as killed:
            started.append(killed)
            assert killed.communicate() == (None, "") and killed.returncode == -signal.SIGKILL
        for options, status in ((["--codec", "gzip"], 1), (["--resume"], 0)):
            ended = subprocess.run([*command, *options], env=environment, capture_output=True, text=True)
            assert ended.returncode == status, ended.stderr
        found = json.loads(ended.stdout)
        assert found["before"] > 5 and found["before"] + found["done"] == 40
        store = zarrow.CloudStore(f"s3://{served.name}", served.options)
        np.testing.assert_array_equal(zarrow.open(store)[...], values)
        assert "Contents" not in served.client.list_objects_v2(Bucket="ledgers")
        assert served.client.list_buckets()["Buckets"] == buckets
