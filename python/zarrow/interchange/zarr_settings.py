"""Settings of zarr-python that a `with` block restores.

Settings may end in any order. The latest active ones are in effect.
"""

from __future__ import annotations

import threading
from typing import Any, Self

_lock = threading.RLock()


class _Layer:
    """Active settings, over earlier ones."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        with _lock:
            self._set()

    def _set(self) -> None:
        import zarr

        self._set_by: Any = zarr.config.set(self._settings)
        _layers.append(self)

    def end(self) -> None:
        """Deactivate these settings; later layers stay active."""
        with _lock:
            later = _layers[_layers.index(self) + 1 :]
            for layer in [*reversed(later), self]:
                layer._set_by.__exit__(None, None, None)
                _layers.remove(layer)
            for layer in later:
                layer._set()


_layers: list[_Layer] = []


class ZarrSettings:
    """Settings in `zarr.config`, restored at the end of a `with` block or by `disable`.

    They are set at once. A block sets them again if the settings already have a block, or were restored.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._layers = [_Layer(settings)]
        self._blocks = 0

    def disable(self) -> None:
        """Restore the earlier settings, unless a block already did."""
        with _lock:
            if self._layers:
                self._layers.pop().end()

    def __enter__(self) -> Self:
        with _lock:
            if self._blocks == len(self._layers):
                self._layers.append(_Layer(self._settings))
            self._blocks += 1
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            self._blocks = max(self._blocks - 1, 0)
            self.disable()
