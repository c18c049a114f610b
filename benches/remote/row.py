"""A remote row: the task, the server's behaviour, and the measures."""

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
    """The set to read, or to write like."""
    peers: tuple[str, ...]
    """The peers."""
    measures: tuple[Measure, ...] = ("seconds",)
    """The measures; the first one ranks the peers."""
    manner: dict[str, Any] = field(default_factory=dict)
    """The server's behaviour, as the example `object_server` takes it."""
    bar: str = ""
    """zarrow's bar, in words."""
    runs: int = 1
    """Runs in each round."""
    fresh: bool = False
    """Whether each round uses fresh processes without knowledge of the server."""
    nbytes: int = 0
    """Bytes of the elements that one run reads or writes."""
    requests: int = 0
    """Requests that one run needs."""
