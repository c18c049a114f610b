"""The tasks: each prepares, and returns a function that runs once and returns its result."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benches.remote import changing
from benches.remote.data import NODES, SETS, crops
from benches.remote.peers import RemotePeer
from benches.remote.row import RemoteRow

Run = Callable[[], Callable[[], Any]]
"""Prepares a run, which is not timed, and returns the run."""


def read(peer: RemotePeer, row: RemoteRow) -> Run:
    """Read all of an open array."""
    array = peer.open(row.data)
    return lambda: lambda: peer.read(array, None)


def read_anew(peer: RemotePeer, row: RemoteRow) -> Run:
    """Read all of a newly opened array, with only its metadata known."""

    def prepare() -> Callable[[], Any]:
        array = peer.open(row.data)
        return lambda: peer.read(array, None)

    return prepare


def crops_of(peer: RemotePeer, row: RemoteRow) -> Run:
    """Read crops of an open array, one after the other."""
    array = peer.open(row.data)
    boxes = crops()

    def each() -> Any:
        result = None
        for box in boxes:
            result = peer.read(array, box)
        return result

    return lambda: each


def open_coordinates(peer: RemotePeer, row: RemoteRow) -> Run:
    """Open a group and read each of its arrays."""
    return lambda: lambda: peer.coordinates(row.data)


def open_tree(peer: RemotePeer, row: RemoteRow) -> Run:
    """Open a group and access each node below it."""
    return lambda: lambda: np.array(peer.tree(row.data))


def open_one(peer: RemotePeer, row: RemoteRow) -> Run:
    """Open an array."""
    return lambda: lambda: np.array(peer.shape_of(row.data, "a1"))


def open_many(peer: RemotePeer, row: RemoteRow) -> Run:
    """Open arrays at once, and read each."""
    names = [f"a{number}" for number in range(NODES)]
    return lambda: lambda: np.array(peer.read_nodes(row.data, names))


def loop_over(peer: RemotePeer, row: RemoteRow) -> Run:
    """Loop over a group, and read each array."""
    return lambda: lambda: np.array(peer.each_of(row.data))


def list_members(peer: RemotePeer, row: RemoteRow) -> Run:
    """Name the members of a group."""
    return lambda: lambda: np.array(sorted(peer.names(row.data)))


def write(peer: RemotePeer, row: RemoteRow) -> Run:
    """Overwrite an existing array. zarr-python reads it once, for the comparison."""
    described = SETS[row.data]
    values = described.values()
    name = f"{peer.name.replace('+', '-')}-{row.data}"
    described.create(peer.zarr_store(name), overwrite=True)
    array = peer.open_to_write(name)
    is_checked = False

    def run() -> Any:
        peer.write(array, values)

    def prepare() -> Callable[[], Any]:
        nonlocal is_checked
        if not is_checked:
            run()
            written = peer.zarr.open_array(peer.zarr_store(name), mode="r")[...]
            if not np.array_equal(written, values):
                raise ValueError("the stored elements differ from the written ones")
            is_checked = True
        return run

    return prepare


def write_parts(peer: RemotePeer, row: RemoteRow) -> Run:
    """Write a part of each chunk of an array."""
    described = SETS[row.data]
    name = f"{peer.name.replace('+', '-')}-{row.data}"
    described.create(peer.zarr_store(name), overwrite=True)[...] = described.values()
    array = peer.open_to_write(name)
    columns = described.values()[:, :100].copy() + 1
    return lambda: lambda: peer.write_columns(array, columns)


def save(peer: RemotePeer, row: RemoteRow) -> Run:
    """Store a group of small arrays, under a new name each time."""
    arrays = {f"array{number:02}": np.arange(1000) + number for number in range(60)}
    number = 0

    def prepare() -> Callable[[], Any]:
        nonlocal number
        number += 1
        name = f"{peer.name.replace('+', '-')}-saved-{number}"
        if number == 1:
            peer.save(f"{name}-checked", arrays)
            found = peer.saved(f"{name}-checked", list(arrays))
            if not all(np.array_equal(one, other) for one, other in zip(found, arrays.values(), strict=True)):
                raise ValueError("the stored values differ")
        return lambda: peer.save(name, arrays)

    return prepare


TASKS: dict[str, Callable[[RemotePeer, RemoteRow], Run]] = {
    "read": read,
    "read_anew": read_anew,
    "crops": crops_of,
    "open_coordinates": open_coordinates,
    "open_tree": open_tree,
    "open_one": open_one,
    "open_many": open_many,
    "loop": loop_over,
    "list": list_members,
    "write": write,
    "write_parts": write_parts,
    "save": save,
    "create": changing.create,
    "replace": changing.replace,
    "erase": changing.erase,
    "set_attributes": changing.set_attributes,
    "append": changing.append,
    "write_each": changing.write_each,
}
