"""The results in a file: the last measurement of each row on this machine, with date and build."""

import datetime
import json
from pathlib import Path
from typing import Any

from benches import machine
from benches.every import every_row
from benches.row import Row
from benches.rows import all_rows
from benches.scale import Scale


class Results:
    """The measurements. A new machine, new versions or new data discard the old ones."""

    def __init__(self, path: Path, scale: Scale) -> None:
        self.path = path
        self.scale = scale
        self.about: dict[str, Any] = {
            "machine": machine.describe(),
            "versions": machine.versions(),
            "side": scale.side,
        }
        self.rows: dict[str, dict[str, Any]] = {}
        if path.exists():
            earlier = json.loads(path.read_text())
            if {key: earlier[key] for key in self.about} == self.about:
                self.rows = earlier["rows"]

    def add(self, row: Row, summary: dict[str, Any]) -> None:
        """Keep a row, also in the file."""
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self.rows[row.name] = summary | {"date": date, "build": machine.build()}
        self.path.write_text(json.dumps(self.about | {"rows": self.rows}, indent=1))

    def in_order(self, *, programs: bool = True) -> list[dict[str, Any]]:
        """Return the measured rows, in the order of the report."""
        rows = every_row(self.scale) if programs else all_rows(self.scale)
        return [self.rows[row.name] for row in rows if row.name in self.rows]

    @property
    def complete(self) -> bool:
        """Return whether every row was measured with the same build."""
        rows = [self.rows[row.name] for row in all_rows(self.scale) if row.name in self.rows]
        return len(rows) == len(all_rows(self.scale)) and len({row["build"] for row in rows}) == 1
