"""The timeline of a loader."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data
from zarrow.data import trace


@pytest.fixture
def plan() -> data.Plan:
    array = zarrow.create_array({}, data=np.arange(100), chunks=10)
    return data.Plan(array, 8, window_nbytes=160)


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def test_a_trace_has_each_stage_of_all_threads(plan: data.Plan, tmp_path: Path) -> None:
    loader = data.Loader(plan, transform=lambda batch: batch + 1, trace=True)
    for _ in range(2):
        assert sum(map(len, loader)) == 100
    loader.save_trace(tmp_path / "trace.json")
    found = events(tmp_path / "trace.json")
    counts = Counter(event["name"] for event in found)
    assert counts["transform"] == counts["wait"] == 26 and counts["read"] >= 10
    assert sum(event["args"]["samples"] for event in found if event["name"] == "read") == 200
    assert {(event["ph"], event["cat"]) for event in found} == {("X", "zarrow.data")}
    assert all(event["dur"] >= 0 and event["ts"] > 0 for event in found)
    threads = [{event["tid"] for event in found if event["name"] == name} for name in ("read", "wait")]
    assert len(threads[1]) == 1 and not threads[0] & threads[1]


def test_a_trace_keeps_the_latest_events(
    plan: data.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "MOST_EVENTS", 5)
    loader = data.Loader(plan, trace=True)
    list(loader)
    loader.save_trace(tmp_path / "trace.json")
    found = events(tmp_path / "trace.json")
    assert len(found) == 5 and found[-1]["args"] == {"batch": 12}


def test_a_loader_without_a_trace_says_what_to_pass(plan: data.Plan, tmp_path: Path) -> None:
    loader = data.Loader(plan)
    with pytest.raises(ValueError, match="pass trace=True when you make it"):
        loader.save_trace(tmp_path / "trace.json")
    copy = pickle.loads(pickle.dumps(data.Loader(plan, trace=True)))
    copy.save_trace(tmp_path / "trace.json")
    assert events(tmp_path / "trace.json") == []
