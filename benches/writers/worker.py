"""Measures one writer in a separate process: `python -m benches.writers.worker WRITER SET FOLDER`.

It writes a line when it has imported what it needs, waits for one, and writes the measurements.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import zarr

from benches import memory
from benches.writers.data import DIFFERENT, FRAMES, SETS
from benches.writers.peers import WRITERS


def main() -> None:
    """Write the frames twice: fresh memory and a first file cost the first run time."""
    name, chosen, folder = sys.argv[1], SETS[sys.argv[2]], Path(sys.argv[3])
    try:
        writer = WRITERS[name](chosen)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    frames = chosen.frames()
    print("{}", flush=True)
    sys.stdin.readline()
    found: dict[str, float] = {}
    for run in range(2):
        path = folder / f"{run}.zarr"
        os.sync()
        memory.forget_peak()
        resident, before, pauses = memory.status("VmRSS"), sum(os.times()[:4]), []
        began = time.perf_counter()
        writer.open(path)
        for number in range(FRAMES):
            frame, called = frames[number % DIFFERENT], time.perf_counter()
            writer.append(frame)
            pauses.append(time.perf_counter() - called)
        writer.close()
        seconds, cpu = time.perf_counter() - began, sum(os.times()[:4]) - before
        peak = memory.status("VmHWM") - resident
        found = {"seconds": seconds, "pause": max(pauses), "peak": peak, "cpu": cpu}
        stored = zarr.open_array(path, mode="r")
        for number in (0, FRAMES // 2, FRAMES - 1):
            if not np.array_equal(stored[number], frames[number % DIFFERENT]):
                raise ValueError(f"{name} stored another frame {number}")
        shutil.rmtree(path)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
