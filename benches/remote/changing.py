"""The tasks of single changes: each prepares, and returns a function that changes a node on S3 once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.remote.peers import RemotePeer
from benches.remote.row import RemoteRow

Run = Callable[[], Callable[[], Any]]

CHUNK = 1000
REPLACED, ERASED, WRITTEN = 16, 256, 200  # chunks
APPENDS = ATTRIBUTES = 10
PATH = "x"


def create(peer: RemotePeer, row: RemoteRow) -> Run:
    """Create an empty array in a group."""

    def prepare(name: str) -> Callable[[], Any]:
        return lambda: peer.create(name, PATH, CHUNK, CHUNK)

    return _each_in_its_group(peer, row, prepare, np.zeros(CHUNK, np.float32))


def replace(peer: RemotePeer, row: RemoteRow) -> Run:
    """Create an empty array in the place of one with elements."""

    def prepare(name: str) -> Callable[[], Any]:
        peer.write(peer.create(name, PATH, REPLACED * CHUNK, CHUNK), _values(REPLACED))
        return lambda: peer.create(name, PATH, CHUNK, CHUNK, replace=True)

    return _each_in_its_group(peer, row, prepare, np.zeros(CHUNK, np.float32))


def erase(peer: RemotePeer, row: RemoteRow) -> Run:
    """Erase an array."""

    def prepare(name: str) -> Callable[[], Any]:
        peer.write(peer.create(name, PATH, ERASED * CHUNK, CHUNK), _values(ERASED))
        return lambda: peer.erase(name, PATH)

    return _each_in_its_group(peer, row, prepare, None)


def set_attributes(peer: RemotePeer, row: RemoteRow) -> Run:
    """Set attributes of an array, one after the other."""

    def prepare(name: str) -> Callable[[], Any]:
        array = peer.create(name, PATH, CHUNK, CHUNK)

        def run() -> None:
            for number in range(ATTRIBUTES):
                peer.set_attribute(array, f"key{number}", number)

        return run

    attributes = {f"key{number}": number for number in range(ATTRIBUTES)}
    return _each_in_its_group(peer, row, prepare, np.zeros(CHUNK, np.float32), attributes)


def append(peer: RemotePeer, row: RemoteRow) -> Run:
    """Append whole chunks to an array, one after the other."""

    def prepare(name: str) -> Callable[[], Any]:
        array = peer.create(name, PATH, 0, CHUNK)
        parts = _values(APPENDS).reshape(APPENDS, CHUNK)

        def run() -> None:
            grown = array
            for part in parts:
                grown = peer.append(grown, part)

        return run

    return _each_in_its_group(peer, row, prepare, _values(APPENDS))


def write_each(peer: RemotePeer, row: RemoteRow) -> Run:
    """Write chunks of an array by calls that are awaited together."""

    def prepare(name: str) -> Callable[[], Any]:
        array = peer.create(name, PATH, WRITTEN * CHUNK, CHUNK)
        parts = _values(WRITTEN).reshape(WRITTEN, CHUNK)
        return lambda: peer.write_each(array, parts)

    return _each_in_its_group(peer, row, prepare, _values(WRITTEN))


def _values(chunks: int) -> NDArray[np.float32]:
    return np.arange(chunks * CHUNK, dtype=np.float32)


def _each_in_its_group(
    peer: RemotePeer,
    row: RemoteRow,
    prepare: Callable[[str], Callable[[], Any]],
    expected: NDArray[np.float32] | None,
    attributes: dict[str, int] | None = None,
) -> Run:
    """Give each run a new group. zarr-python checks the result of a first one, which is not timed."""
    number = 0

    def prepared() -> Callable[[], Any]:
        nonlocal number
        number += 1
        name = f"{peer.name.replace('+', '-')}-{row.name}-{number}"
        peer.zarr.create_group(peer.zarr_store(name))
        if number > 1:
            return prepare(name)
        prepare(name)()
        _check(peer, name, expected, attributes or {})
        return prepared()

    return prepared


def _check(
    peer: RemotePeer, name: str, expected: NDArray[np.float32] | None, attributes: dict[str, int]
) -> None:
    try:
        found = peer.zarr.open_array(peer.zarr_store(name), path=PATH, mode="r")
    except FileNotFoundError:
        found = None
    if (found is None) != (expected is None):
        raise ValueError("the change left no array" if found is None else "the change erased no array")
    if found is not None and (not np.array_equal(found[...], expected) or dict(found.attrs) != attributes):
        raise ValueError("the stored array differs from the changed one")
