"""Ctrl-C at any point of reads, writes and changes of a hierarchy, repeatedly in one process.

1. A child repeats steps that a SIGINT may end at any point. Each interruption is a KeyboardInterrupt there
   and nothing else.
2. After each, every chunk is whole: each row has its old or its new value.
3. Arrays open, and appended rows are stored completely or not at all.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

CHILD = """
    import os, random, sys, time
    import numpy as np
    import zarrow

    folder, seed, end = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
    rng = random.Random(seed)
    zarrow.set_num_threads(2)
    ROWS, WIDTH = 64, 20_000
    codec = rng.choice([None, "zstd", "blosc", "gzip"])
    root = zarrow.create_group(folder)
    plain = root.create_array("plain", shape=(ROWS, WIDTH), chunks=(1, WIDTH), dtype="u4", compressors=codec)
    shards = root.create_array(
        "shards", shape=(ROWS, WIDTH), chunks=(1, 1000), shards=(8, WIDTH), dtype="u4", compressors=codec
    )
    rows = root.create_array("rows", shape=(0, WIDTH), chunks=(8, WIDTH), dtype="u4", compressors=codec)
    plain[:], shards[:] = 1, 1
    round, interrupted, steps = 1, 0, 0

    def change():
        which = rng.randrange(6)
        if which == 0:
            plain[:] = np.full((ROWS, WIDTH), round, "u4")
        elif which == 1:
            shards[:] = np.full((ROWS, WIDTH), round, "u4")
        elif which == 2:
            plain[:].numpy(), shards[:, ::7].numpy()
        elif which == 3:
            rows.append(np.full((20, WIDTH), round, "u4"))
        elif which == 4:
            root.attrs["round"] = round
        else:
            root["made"] = np.full((ROWS, WIDTH), round, "u4")

    print("ready", flush=True)
    while time.monotonic() < end:
        round += 1
        steps += 1
        try:
            try:
                change()
            except KeyboardInterrupt:
                interrupted += 1
            for name in ("plain", "shards"):
                found = root[name][:].numpy()
                assert (found == found[:, :1]).all() or name == "shards", (name, "torn")
                assert (found >= 1).all() and (found <= round).all(), (name, "never written")
            found = zarrow.open(folder, "rows")[:].numpy()
            assert len(found) % 20 == 0 and (found == found[:, :1]).all() and (found >= 1).all(), "rows"
            if "made" in root:
                made = root["made"][:].numpy()
                assert (made == made[0, 0]).all() and made[0, 0] >= 1, "made"
        except KeyboardInterrupt:
            interrupted += 1
    os.write(1, f"{steps} {interrupted}\\n".encode())
    os._exit(0)
"""


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Interrupt children until they end."""
    rng = random.Random(seed)
    counts = {"steps": 0, "interruptions": 0, "signals": 0}
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", textwrap.dedent(CHILD), folder, str(rng.getrandbits(32))]
            command.append(str(min(left, 10)))
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n", child.communicate()[1]
            while child.poll() is None:
                time.sleep(rng.random() * 0.1)
                if child.poll() is None:
                    os.kill(child.pid, signal.SIGINT)
                    counts["signals"] += 1
            output, errors = child.communicate()
            # An interruption between the loop's own lines ends the child, as usual in Python.
            assert child.returncode in (0, 1, -signal.SIGINT), (child.returncode, errors)
            if child.returncode == 0:
                steps, interrupted = map(int, output.split())
                counts["steps"] += steps
                counts["interruptions"] += interrupted
            else:
                assert "KeyboardInterrupt" in errors, errors
    return counts
