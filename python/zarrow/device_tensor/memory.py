"""Frees GPU memory that other libraries of the process have cached.

The driver counts it as used. When an allocation fails, each library is asked once to free its cache.
"""

from __future__ import annotations

import contextlib
import sys


def reclaim() -> None:
    """Have PyTorch and CuPy free their cached memory, if they are imported and have used a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None:
        with contextlib.suppress(AttributeError):  # while it is being imported
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        with contextlib.suppress(AttributeError):
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()
