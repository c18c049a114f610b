"""Many small chunks in a local repository of icechunk.

Each run opens a read-only session, so that the engine lists the references of the chunks in each.
"""

from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benches.peers import Peer
from benches.row import Row
from benches.scale import SMALL_CHUNK
from benches.tasks import Run, timed

PREFIX = "programs-icechunk"
CHUNKS = 512


def write(path: Path) -> None:
    """Commit an array of raw chunks of 16 KiB."""
    import icechunk

    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(path)))
    session = repository.writable_session("main")
    shape, chunks = (CHUNKS, SMALL_CHUNK), (1, SMALL_CHUNK)
    array: Any = zarr.create_array(session.store, shape=shape, chunks=chunks, dtype="f4", compressors=None)
    array[...] = np.random.default_rng(7).normal(size=shape)
    session.commit("written")


def session_read(peer: Peer, row: Row, path: Path) -> Run:
    """Open a session, and read its whole array."""
    import icechunk

    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(path)))

    def opened() -> Any:
        store: Any = repository.readonly_session("main").store
        return peer.open(store)

    return timed(lambda: peer.read(opened(), None))


def sessions(**bars: Any) -> Row:
    """Return the row of a session."""
    title = f"{CHUNKS} chunks of 16 KiB from a local repository of icechunk"
    return Row(PREFIX, title, "session_read", PREFIX, **bars)
