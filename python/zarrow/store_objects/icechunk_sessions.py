"""Sessions of icechunk, as users pass them: a session, its store, or a `PythonStore` of either."""

from __future__ import annotations

from typing import Any

from zarrow.store_objects.python_store import PythonStore


def session_of(store: Any) -> Any:
    """Return the session of a store; `None` for other stores."""
    if isinstance(store, PythonStore):
        store = store.store
    kind = type(store)
    if not kind.__module__.startswith("icechunk."):
        return None
    if kind.__name__.endswith("Session"):
        return store
    return store.session if kind.__name__ == "IcechunkStore" else None
