"""Follows a run's metrics.jsonl and log while another process writes them."""

from __future__ import annotations

import io
import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from colearn.text.notes import PREFIX

from .fields import Episode, Line

_UPDATES = 20
"""Number of updates over which the training return and the tokens per second are averaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Current progress of a run."""

    environment_steps: int = 0
    iteration: int = 0
    evaluation: float | None = None
    """The headline metric at the latest evaluation."""
    evaluated_at: int | None = None
    """Environment steps at the latest evaluation."""
    training_return: float | None = None
    """Mean return of the training episodes of the latest updates."""
    tokens_per_second: float | None = None
    """Generated tokens per second of training time (including updates), over the latest updates."""


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
        self._file, self._metric = FileTail(path), metric
        self._forget()

    def _forget(self) -> None:
        self._latest: Line | None = None
        self._evaluation: Line | None = None
        self._updates: deque[Line] = deque(maxlen=_UPDATES + 1)

    def advance(self) -> bool:
        """Read new lines; return True if at least one new line was complete."""
        lines, shortened = self._file.lines()
        if shortened:
            self._forget()  # a resumed run removed what followed its checkpoint
        for line in lines:
            # a killed run may leave an incomplete line; reports require complete ones
            with suppress(ValidationError):
                self._take(Line.model_validate_json(line))
        return bool(lines)

    def _take(self, line: Line) -> None:
        self._latest = line
        if line.kind == "update":
            self._updates.append(line)
        elif self._metric in line.metrics:
            self._evaluation = line

    @property
    def status(self) -> Status:
        latest, evaluation = self._latest, self._evaluation
        if latest is None:
            return Status()
        updates = list(self._updates)[-_UPDATES:]
        returns = [r for line in updates if (r := line.metrics.get("return")) is not None]
        return Status(
            environment_steps=latest.environment_steps,
            iteration=latest.iteration,
            evaluation=None if evaluation is None else evaluation.metrics[self._metric],
            evaluated_at=None if evaluation is None else evaluation.environment_steps,
            training_return=sum(returns) / len(returns) if returns else None,
            tokens_per_second=self._tokens_per_second(),
        )

    def _tokens_per_second(self) -> float | None:
        if not self._updates:
            return None
        before = self._updates[0] if len(self._updates) > _UPDATES else None
        last = self._updates[-1]
        tokens = last.generated_tokens - (before.generated_tokens if before else 0)
        seconds = last.wall_seconds - (before.wall_seconds if before else 0.0)
        return tokens / seconds if seconds > 0 else None


class EpisodesTail:
    """Follows the episodes of evaluations in one episodes.jsonl."""

    def __init__(self, path: Path) -> None:
        self._file = FileTail(path, path.stat().st_size if path.is_file() else 0)

    def first(self, iteration: int) -> Episode | None:
        """Returns the first new episode of this iteration. Lines that cannot be read are passed
        over: those that a callback wrote, and what a killed run left."""
        for line in self._file.lines()[0]:
            with suppress(ValueError):
                episode = Episode.model_validate(json.loads(line))  # of JSON with half surrogates
                if episode.iteration == iteration:
                    return episode
        return None


class NotesTail:
    """Follows the notes in a run's log from byte `start` on."""

    def __init__(self, log: Path, start: int = 0) -> None:
        self._file = FileTail(log, start)

    def advance(self) -> list[str]:
        """Return the new notes, without the notes' prefix."""
        lines = (line.decode("utf-8", "replace") for line in self._file.lines()[0])
        return [line.removeprefix(PREFIX) for line in lines if line.startswith(PREFIX)]
