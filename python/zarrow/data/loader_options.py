"""Options of `zarrow.data.Loader` that loaders of tensors pass on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from zarrow.data.plan_options import PlanOptions
from zarrow.data.prefetch import OnBad


class LoaderOptions(PlanOptions, total=False):
    """Options of `zarrow.data.Loader`, with the options of a plan for sources."""

    memory_nbytes: int
    cache_nbytes: int
    disk_cache_nbytes: int
    disk_cache_folder: str | os.PathLike[str] | None
    on_bad: OnBad
    transform: Callable[[Any], Any] | None
    numbers: bool
    trace: bool
