"""Follows a run's metrics.jsonl and log while another process writes them."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from colearn.text.notes import PREFIX

from .fields import Line
from .meter import Meter, Status


class FileTail:
    """Follows a file as it grows, and reads each line when the line is complete."""

    def __init__(self, path: Path, start: int = 0) -> None:
        self._path = path
        self._offset = start

    def lines(self) -> tuple[list[bytes], bool]:
        """Returns the new complete lines, and whether the file was shortened. If it was shortened,
        the lines start from the beginning of the file."""
        if not self._path.is_file():
            return [], False
        with self._path.open("rb") as file:
            shortened = file.seek(0, io.SEEK_END) < self._offset
            if shortened:
                self._offset = 0
            file.seek(self._offset)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete.splitlines(), shortened


class MetricsTail:
    """Follows one metrics.jsonl; `metric` is the run's headline metric."""

    def __init__(self, path: Path, metric: str = "return") -> None:
        self._file = FileTail(path)
        self._meter = Meter(metric)

    @property
    def status(self) -> Status:
        return self._meter.status

    def advance(self) -> bool:
        """Read new lines; return True if at least one new line was complete."""
        lines, shortened = self._file.lines()
        if shortened:
            self._meter.reset()  # a resumed run removed what followed its checkpoint
        for line in lines:
            # a killed run may leave an incomplete line; reports require complete ones
            with suppress(ValidationError):
                self._take(Line.model_validate_json(line))
        return bool(lines)

    def _take(self, line: Line) -> None:
        at = (line.environment_steps, line.iteration)
        if line.kind == "evaluation":
            self._meter.evaluated(*at, line.metrics)
        else:
            self._meter.updated(*at, line.generated_tokens, line.wall_seconds, line.metrics)


class NotesTail:
    """Follows the notes in a run's log from byte `start` on."""

    def __init__(self, log: Path, start: int = 0) -> None:
        self._file = FileTail(log, start)

    def advance(self) -> list[str]:
        """Return the new notes, without the notes' prefix."""
        lines = (line.decode("utf-8", "replace") for line in self._file.lines()[0])
        return [line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)]
