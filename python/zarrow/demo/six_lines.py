"""Six lines of user code, shown and run word for word: one memory, seen by several libraries."""

from __future__ import annotations

from collections.abc import Sequence

from zarrow.demo.stores import Stores

_WITH_TORCH = """\
import numpy as np, torch, zarrow
july = zarrow.open({store!r})["turbidity/zstd"][6]
tensor = torch.from_dlpack(july)
tensor[1080, 2160] = 999
array = np.asarray(july)
print(array[1080, 2160], hex(tensor.data_ptr()), hex(array.ctypes.data))
"""

_WITH_NUMPY = """\
import numpy as np, zarrow
july = zarrow.open({store!r})["turbidity/zstd"][6]
array = np.asarray(july)
array[1080, 2160] = 999
buffer = memoryview(july)
print(buffer[1080, 2160], july[1080, 2160], hex(array.ctypes.data))
"""


def show(stores: Stores, libraries: Sequence[str]) -> None:
    """Print each line as a user would type it, and run it."""
    names: dict[str, object] = {}
    lines = _WITH_TORCH if "torch" in libraries else _WITH_NUMPY
    for line in lines.format(store=str(stores.world)).splitlines():
        print(f">>> {line}", flush=True)
        exec(compile(line, "six lines", "exec"), names)
