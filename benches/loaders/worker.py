"""Measures one loader in a separate process: `python -m benches.loaders.worker LOADER SET FOLDER [PORT]`.

It writes a line when it has imported what it needs, waits for one, and writes the measurements.
"""

import gc
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benches import memory
from benches.loaders.data import SETS
from benches.loaders.peers import LOADERS, WORKERS, Workers


def main() -> None:
    """Run two epochs."""
    peer, name, folder = sys.argv[1:4]
    port = int(sys.argv[4]) if len(sys.argv) > 4 else None
    try:
        loader = LOADERS[peer](name, Path(folder), port)
    except (ImportError, AttributeError, NotImplementedError) as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print("{}", flush=True)
    sys.stdin.readline()
    memory.forget_peak()
    resident, before = memory.status("VmRSS"), sum(os.times()[:4])
    started = time.perf_counter()
    loader.open()
    first, epochs, kind = 0.0, [], SETS[name].kind
    for number in range(2):
        count, numbers, began = 0, list[Any](), time.perf_counter()
        for batch in loader.epoch(number):
            first = first or time.perf_counter() - started
            count += batch.shape[0]
            if kind == "rows":
                # A view would keep the batch.
                numbers.append(np.array(batch[:, 0, 0]))
            elif kind == "sparse rows":
                numbers.append(batch[:, [0]].toarray().ravel() - 1)
        epochs.append(time.perf_counter() - began)
        if count != SETS[name].samples:
            raise ValueError(f"{peer} gave {count} of {SETS[name].samples} samples")
        if numbers and not np.array_equal(np.sort(np.concatenate(numbers)), np.arange(count)):
            raise ValueError(f"{peer} gave other samples of {name}")
    peak = memory.status("VmHWM") - resident
    workers = isinstance(loader, Workers)
    del loader, batch
    gc.collect()  # ends the workers, whose times are counted then
    if workers:
        peak += WORKERS * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    cpu = (sum(os.times()[:4]) - before) / (2 * SETS[name].samples)
    found = {"first": first, "epoch": epochs[0], "second": epochs[1], "peak": peak, "cpu": cpu}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
