"""Six lines of user code, shown and run word for word: one memory, seen by zarrow, PyTorch and NumPy."""

from __future__ import annotations

from zarrow.demo.stores import Stores

_LINES = """\
import numpy as np, torch, zarrow
july = zarrow.open({store!r})["turbidity/zstd"][6]
tensor = torch.from_dlpack(july)
tensor[1080, 2160] = 999
array = np.asarray(july)
print(array[1080, 2160], hex(tensor.data_ptr()), hex(array.ctypes.data))
"""


def show(stores: Stores) -> None:
    """Print each line as a user would type it, and run it."""
    names: dict[str, object] = {}
    for line in _LINES.format(store=str(stores.world)).splitlines():
        print(f">>> {line}", flush=True)
        exec(compile(line, "six lines", "exec"), names)
