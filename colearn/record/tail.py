"""Following a run's metrics.jsonl while another process writes it."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any


class MetricsTail:
    """Follows one metrics.jsonl as it grows; a line is read once it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.environment_steps = 0
        self.mean_return: float | None = None
        """The latest evaluation's mean return."""

    def advance(self) -> bool:
        """Read what is new; True if it held a record."""
        if not self._path.is_file():
            return False
        with self._path.open("rb") as file:
            if file.seek(0, io.SEEK_END) < self._offset:
                self._offset = 0  # a resumed run cut off what followed its checkpoint
            file.seek(self._offset)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            # a killed run may leave half a line behind; the report is what insists on whole ones
            with suppress(ValueError):
                self._take(json.loads(line))
        return bool(complete)

    def _take(self, record: dict[str, Any]) -> None:
        self.environment_steps = record.get("environment_steps", self.environment_steps)
        if record.get("kind") == "evaluation":
            self.mean_return = record.get("metrics", {}).get("return", self.mean_return)
