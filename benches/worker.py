"""The process of one peer in one row: `python -m benches.worker PEER ROW SCALE FOLDER`.

FOLDER is a URL in the rows of a store with slow answers.

1. It imports the peer and prepares the task, and answers `{"ready": true}`, or the reason why it cannot.
2. Each line on stdin runs the task once, with the answer `{"value": seconds, …}`.
3. The first answer also has the peak of resident memory during the run, minus the resident memory before,
   the bytes that the run read and wrote if the row counts them, and a checksum of the result, which the
   parent compares between the peers.
"""

import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benches import memory, page_cache
from benches.every import every_row
from benches.peers import PEERS
from benches.programs import TASKS as PROGRAM_TASKS
from benches.row import Row
from benches.scale import SCALES
from benches.tasks import TASKS, Run, read_late


def main(peer_name: str, row_name: str, scale: str, folder: str) -> None:
    """Answer until stdin ends. All other output goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    row = next(row for row in every_row(SCALES[scale]) if row.name == row_name)
    try:
        peer = PEERS[peer_name]()
        path = Path(folder, row.data + peer.suffix)
        if reason := peer.missing():
            raise NotImplementedError(reason)
        task = (TASKS | PROGRAM_TASKS)[row.task]
        run = read_late(peer, f"{folder}/{path.name}") if row.late else task(peer, row, path)
        print(json.dumps({"ready": True}), file=answers)
        for number, _ in enumerate(sys.stdin):
            print(json.dumps(answer(run, row, path, first=number == 0)), file=answers)
    except Exception as error:
        reason = str(error) if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {error}"
        print(json.dumps({"missing": " ".join(reason.split())[:200]}), file=answers)


def answer(run: Run, row: Row, path: Path, *, first: bool) -> dict[str, Any]:
    """Run once."""
    reply: dict[str, Any] = {"dropped": page_cache.drop(path)} if row.cold else {}
    if not first:
        return reply | {"value": run()[0]}
    memory.forget_peak()
    before = memory.status("VmRSS")
    read, written = memory.transferred()
    reply["value"], result = run()
    if row.counts_bytes:
        read_after, written_after = memory.transferred()
        reply |= {"read": read_after - read, "written": written_after - written}
    if result is None:
        return reply
    return reply | {"peak": memory.status("VmHWM") - before, "check": checksum(result)}


def checksum(result: Any) -> str:
    """Reduce a result to the part that must be equal for every peer."""
    if type(result).__module__.startswith("pyarrow"):
        import pyarrow.compute

        return f"{len(result)} strings of {pyarrow.compute.sum(pyarrow.compute.binary_length(result))} bytes"
    array = np.asarray(result)
    if array.dtype.kind == "T":
        return f"{array.size} strings of {np.strings.str_len(array).sum()} characters"
    # Times have no buffer, and some peers keep the axes that an integer selects.
    elements = np.ascontiguousarray(array).view(f"i{array.itemsize}") if array.dtype.kind in "mM" else array
    return f"{array.squeeze().shape} {zlib.crc32(np.ascontiguousarray(elements).data):08x}"


if __name__ == "__main__":
    main(*sys.argv[1:])
