"""A remote row: what is done, how the server answers meanwhile, and what is measured."""

from dataclasses import dataclass, field
from typing import Any, Literal

Measure = Literal["seconds", "cpu_per_gb", "cpu_per_request", "p99", "extra_requests", "peak", "requests"]


@dataclass(frozen=True)
class RemoteRow:
    """One measurement, made with every peer that can take part."""

    name: str
    title: str
    task: str
    """Name of a function in `benches.remote.tasks`."""
    data: str
    """The set that is read, or written like."""
    peers: tuple[str, ...]
    """Who takes part."""
    measures: tuple[Measure, ...] = ("seconds",)
    """What is shown, the first of which decides."""
    manner: dict[str, Any] = field(default_factory=dict)
    """How the server answers, as the example `object_server` takes it."""
    bar: str = ""
    """What zarrow is to reach, in words."""
    runs: int = 1
    """Runs in each round."""
    fresh: bool = False
    """Whether each round has processes of its own, which know nothing of the server."""
    nbytes: int = 0
    """Bytes of the elements that one run reads or writes."""
    requests: int = 0
    """Requests that one run needs."""
