"""Reads in a separate process, with little more memory than after its imports.

1. `attempts` and `flip` start this file in a new interpreter, with a request in JSON as its argument.
2. The new process limits its address space, performs the request, and prints a line of JSON per result.
3. A missing result, because the process was killed or hangs, fails the calling test.
"""

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MORE_MEMORY = 1 << 30
TIMEOUT = 60


@dataclass(frozen=True)
class Outcome:
    """Outcome of a read: the elements, or the error with its location; and the allocated bytes."""

    value: Any = None
    error: str | None = None
    kind: str | None = None
    store: str | None = None
    path: str | None = None
    chunk: list[int] | None = None
    codec: str | None = None
    message: str = ""
    grown: int = 0


def attempt(store: Path, *members: str, index: str = "...") -> Outcome:
    """Open the store, access each member, and read `index`, a Python expression, of an array."""
    return attempts([store], *members, index=index)[0]


def attempts(stores: Iterable[Path], *members: str, index: str = "...") -> list[Outcome]:
    """Like `attempt`, for several stores in one process."""
    request = {"do": "read", "stores": [str(store) for store in stores], "members": members, "index": index}
    return [Outcome(**line) for line in _run(request)]


def flip(store: Path, member: str, key: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Read the array after each of `count` bit flips, and `count` truncations, of the value `key`."""
    return _run(
        {"do": "flip", "store": str(store), "member": member, "key": key, "count": count, "seed": seed}
    )


def _run(request: dict[str, Any]) -> list[dict[str, Any]]:
    environment = {**os.environ, "ZARROW_NUM_THREADS": "2"}
    command = [sys.executable, __file__, json.dumps(request)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    assert "panicked" not in done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _resident(line: str) -> int:
    """Return a line of the process's status, such as its peak memory, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0]) * 1024


def _read_and_measure(store: str, members: list[str], index: str) -> dict[str, Any]:
    # 5 resets the peak to the current resident memory (proc_pid_clear_refs(5)).
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident("VmRSS")
    outcome = _read(store, members, index)
    return {**outcome, "grown": _resident("VmHWM") - before}


def _read(store: str, members: list[str], index: str) -> dict[str, Any]:
    import zarrow

    try:
        node = zarrow.open(store)
        for member in members:
            node = node[member]
        if isinstance(node, zarrow.Group):
            return {"value": node.keys()}
        return {"value": _plain(node[eval(index)])}
    except zarrow.ZarrowError as error:
        place = {name: getattr(error, name) for name in ("kind", "store", "path", "chunk", "codec")}
        return {"error": type(error).__name__, "message": str(error), **place}


def _plain(decoded: Any) -> Any:
    """Return small arrays as lists, large ones as the sum of their bytes."""
    if decoded.size > 1000:
        return sum(memoryview(decoded.data if hasattr(decoded, "data") else decoded).cast("B"))
    return [value if isinstance(value, str | None) else repr(value) for value in _flat(decoded.tolist())]


def _flat(values: Any) -> list[Any]:
    return [value for item in values for value in _flat(item)] if isinstance(values, list) else [values]


def _flip(store: str, member: str, key: str, count: int, seed: int) -> None:
    file = Path(store, key)
    original = file.read_bytes()
    rng = random.Random(seed)
    print(json.dumps(_read(store, [member], "...")))
    for what in ["flip"] * count + ["cut"] * count:
        damaged = bytearray(original)
        if what == "flip":
            bit = rng.randrange(8 * len(original))
            damaged[bit // 8] ^= 1 << bit % 8
        else:
            del damaged[rng.randrange(len(original)) :]
        file.write_bytes(damaged)
        print(json.dumps({"what": what, **_read(store, [member], "...")}))
    file.write_bytes(original)


def _main() -> None:
    import numpy  # noqa: F401 (imports on demand do not count as memory of a read)

    import zarrow  # noqa: F401

    request = json.loads(sys.argv[1])
    _limit_memory()
    if request.pop("do") == "flip":
        _flip(**request)
    else:
        for store in request["stores"]:
            print(json.dumps(_read_and_measure(store, request["members"], request["index"])), flush=True)


if __name__ == "__main__":
    _main()
