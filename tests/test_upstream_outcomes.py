"""The comparison of test runs that `make test-upstream` judges by."""

from __future__ import annotations

from upstream.outcomes import Outcome, compare, read

PASSED, FAILED, SKIPPED = (Outcome(name) for name in ("passed", "failed", "skipped"))


def test_a_failure_beyond_stock_is_new_unless_it_is_listed():
    stock = {"a": PASSED, "b[1]": PASSED, "b[2]": PASSED, "c[1]": PASSED, "d": PASSED}
    subject = dict.fromkeys(stock, FAILED) | {"d": PASSED}
    found = compare(stock, subject, {"b": "for all parameters", "c[1]": "for one"})
    assert list(found.new) == ["a"]
    assert list(found.known) == ["b[1]", "b[2]", "c[1]"]
    assert not found.holds


def test_a_listed_test_that_passes_or_does_not_exist_is_gone():
    found = compare({"a": PASSED}, {"a": PASSED}, {"a": "was different", "b": "never was"})
    assert found.gone == ["a", "b"]
    assert not found.holds


def test_what_fails_on_stock_is_not_compared():
    stock = {"a": FAILED, "b": Outcome("ended"), "c": SKIPPED}
    assert compare(stock, {"a": PASSED, "b": FAILED, "c": SKIPPED}, {}).holds


def test_a_test_that_no_longer_runs_is_a_difference():
    found = compare({"a": PASSED, "b": PASSED, "c": SKIPPED}, {"b": SKIPPED, "c": FAILED}, {})
    assert {test: outcome.name for test, outcome in found.new.items()} == {
        "a": "missing",
        "b": "skipped",
        "c": "failed",
    }


def test_a_test_without_an_outcome_ended_the_process(tmp_path):
    file = tmp_path / "outcomes"
    file.write_text('["a", null, ""]\n["a", "passed", ""]\n["b", null, ""]\n')
    assert {test: outcome.name for test, outcome in read(file).items()} == {"a": "passed", "b": "ended"}
