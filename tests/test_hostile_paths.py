"""Unexpected paths, names and files in a store: no access leaves the store, and none blocks."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile.checks import INTS, check
from hostile.process import attempt
from hostile.stores import codec, document, write


def test_a_folder_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    for store in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        outcome = attempt(store)
        assert (outcome.error, outcome.kind, outcome.store) == ("NotFoundError", "not_found", str(store)), (
            outcome
        )


def test_an_array_that_is_missing(tmp_path: Path) -> None:
    outcome = attempt(write(tmp_path / "store", document()), "nothing")
    assert (outcome.error, outcome.kind, outcome.path) == ("NotFoundError", "not_found", "nothing")
    assert outcome.store == str(tmp_path / "store")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "..",
        "a/../../secret",
        "a//b",
        ".",
        "./a",
        "a\0b",
        "..\\secret",
        "a/..",
        "../store/a",
        "\0",
    ],
)
def test_paths_that_would_leave_the_store(path: str, tmp_path: Path) -> None:
    write(tmp_path / "secret", document())
    outcome = attempt(write(tmp_path / "store", document()), path)
    assert (outcome.error, outcome.kind) == ("InvalidKeyError", "bad_key"), outcome
    assert outcome.store == str(tmp_path / "store")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "%2e%2e/secret", "file:///secret", "~", "c/0", "x" * 5000, "x/" * 3000 + "x"]
)
def test_paths_that_only_look_as_if(path: str, tmp_path: Path) -> None:
    write(tmp_path / "secret", document())
    outcome = attempt(write(tmp_path / "store", document()), path)
    assert outcome.error in ("NotFoundError", "StoreError", "InvalidKeyError"), outcome


@pytest.mark.parametrize("name", ["../secret", "..", "a/../../secret", "/secret", "", "a//b"])
def test_consolidated_names_that_would_leave_the_store(name: str, tmp_path: Path) -> None:
    write(tmp_path / "secret", document(), {"c/0": INTS})
    store = write(tmp_path / "store", document())
    consolidated = {
        "kind": "inline",
        "must_understand": False,
        "metadata": {name: document(), "b": document()},
    }
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": consolidated}
    (store / "zarr.json").write_text(json.dumps(group))
    for outcome in (attempt(store), attempt(store, name), attempt(store, "../secret")):
        assert outcome.error in ("MetadataError", "InvalidKeyError", "NotFoundError"), outcome
        assert outcome.store == str(store), outcome


def test_a_key_encoding_that_would_leave_the_array(tmp_path: Path) -> None:
    for number, encoding in enumerate(
        [
            codec("default", separator="/../"),
            codec("v2", separator=".."),
            codec("zarrs.default_suffix", suffix="/../../secret"),
            codec("fanout"),
        ]
    ):
        store = write(tmp_path / str(number), document(chunk_key_encoding=encoding))
        check(attempt(store, "a"), store, "MetadataError", "metadata")


def folder_instead(file: Path) -> None:
    file.mkdir()


def pipe_instead(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize("put", [folder_instead, pipe_instead])
def test_no_file_where_a_chunk_should_be(put: Callable[[Path], None], tmp_path: Path) -> None:
    store = write(tmp_path / "store", document(), {"c/1": INTS})
    put(store / "a/c/0")
    check(attempt(store, "a"), store, "StoreError", "io", chunk=[0])


@pytest.mark.parametrize("put", [folder_instead, pipe_instead])
def test_no_file_where_metadata_should_be(put: Callable[[Path], None], tmp_path: Path) -> None:
    store = write(tmp_path / "store", document())
    (store / "a/zarr.json").unlink()
    put(store / "a/zarr.json")
    check(attempt(store, "a"), store, "StoreError", "io")


def test_circular_links(tmp_path: Path) -> None:
    store = write(tmp_path / "store", document(), {"c/1": INTS})
    (store / "a/c/0").symlink_to(store / "a/c/0")
    check(attempt(store, "a"), store, "StoreError", "io", chunk=[0])
