"""Settings of zarr-python that a `with` block restores."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class ZarrSettings:
    """Settings in `zarr.config`, restored at the end of a `with` block.

    They are set at once. A block sets them again if the settings already have a block, or were restored.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._set_by: list[Any] = []
        self._blocks = 0
        self._set()

    def _set(self) -> None:
        import zarr

        self._set_by.append(zarr.config.set(self._settings))

    def __enter__(self) -> Self:
        if self._blocks == len(self._set_by):
            self._set()
        self._blocks += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks = max(self._blocks - 1, 0)
        if self._set_by:
            self._set_by.pop().__exit__(kind, error, trace)
