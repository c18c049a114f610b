"""The process of one peer in one remote row: `python -m benches.remote.worker PEER ROW PORT`.

1. It imports the peer and prepares the task, and answers `{"ready": true}`, or the reason why it cannot.
2. A line on stdin prepares a run, with the answer `{"prepared": true}`; the next line runs, with the answer
   `{"seconds": …, "cpu": …, "peak": …}`: elapsed time, CPU time of all threads of this process, and the peak
   of resident memory minus the resident memory before. The first answer also has a checksum of the result,
   which the parent compares between the peers.
"""

import json
import os
import sys
import time
import zlib
from typing import Any

import numpy as np

from benches import memory
from benches.remote.peers import PEERS
from benches.remote.rows import all_rows
from benches.remote.tasks import TASKS


def main(peer_name: str, row_name: str, port: str) -> None:
    """Answer until stdin ends. All other output goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    row = next(row for row in all_rows() if row.name == row_name)

    def tell(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers)

    try:
        prepare = TASKS[row.task](PEERS[peer_name](int(port)), row)
        tell({"ready": True})
        is_first = True
        for _ in sys.stdin:
            run = prepare()
            tell({"prepared": True})
            sys.stdin.readline()
            before = memory.status("VmRSS")
            memory.forget_peak()
            cpu, begun = time.process_time(), time.perf_counter()
            result = run()
            seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
            answer: dict[str, Any] = {"seconds": seconds, "cpu": cpu, "peak": memory.status("VmHWM") - before}
            if is_first and result is not None:
                answer["check"] = checksum(result)
            is_first = False
            del result
            tell(answer)
    except Exception as error:
        reason = str(error) if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {error}"
        tell({"missing": " ".join(reason.split())[:200]})


def checksum(result: Any) -> str:
    """Reduce a result to the part that must be equal for every peer."""
    array = np.ascontiguousarray(result)
    return f"{array.shape} {zlib.crc32(array.view(np.uint8).data):08x}"


if __name__ == "__main__":
    main(*sys.argv[1:])
