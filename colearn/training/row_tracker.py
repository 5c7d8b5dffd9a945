"""Base class of trackers whose rows cannot be deleted; implements the logic for resumed runs."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any, Literal

from colearn.contract import EvaluateEvent, Measured, StartEvent, Tracker, UpdateEvent
from colearn.contract.tracker import prefixed
from colearn.runs.record.files import write_text
from colearn.text.notes import note

Kind = Literal["update", "evaluation"]

_ID = "id.txt"
_LINE = re.compile(r"^([0-9]{1,9}) ([0-9a-f]{16})$", re.MULTILINE)
"""A whole line of digests; a full disk or the end of the machine may have cut one."""
_TIMED = ("second", "time", "idle", "busy", "wait")
"""Substrings of the names of metrics that are measured by a clock."""


class RowTracker(Tracker):
    """A tracker whose rows cannot be deleted. A resumed run repeats the work that followed its
    checkpoint. On a CPU, the repeated work gives the same values, so the tracker logs only rows
    from index `present` onwards. If a repeated row differs in a metric that is not measured by a
    clock, the whole run is logged again under a new id. The rows of the interrupted run remain
    under the old id."""

    present = 0
    """Number of rows that earlier processes of the run have logged."""
    number = 0
    """Index of the next row; equals the index of the run's next line of metrics."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder, self.settings = folder, settings
        self._place = folder / self.name
        self._lines: list[Measured] = []
        """Every line of metrics so far, including the current line."""
        self._digests: dict[int, str] = {}
        """Digest of each row that an earlier process has logged, by row index."""
        self.open(run_id_in(self._place))

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the tracker's package, and of the folder that stores the run's id."""

    @abstractmethod
    def open(self, run_id: str) -> None:
        """Continue the tracker's run with this id, or start a new run."""

    @abstractmethod
    def close(self) -> None: ...

    def on_start(self, event: StartEvent) -> None:
        file = self._digest_file
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        self._digests = {int(number): digest for number, digest in _LINE.findall(text)}
        for line in event.earlier:
            self._row(line)

    def on_update(self, event: UpdateEvent) -> None:
        self._row(measured("update", event))

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self._row(measured("evaluation", event), event.episodes)

    def _row(self, line: Measured, episodes: Sequence[Mapping[str, Any]] = ()) -> None:
        self._lines.append(line)
        known = self._digests.get(self.number)
        if self.number < self.present and known not in (None, _digest(line)):
            self._begin_anew()
        if self.number >= self.present:
            self._log(line, episodes)
        self.number += 1

    def _log(self, line: Measured, episodes: Sequence[Mapping[str, Any]]) -> None:
        if episodes:
            self.transcripts(episodes, line.environment_steps)
        self.log(prefixed(line.kind, numbers(line)), line.environment_steps)
        with self._digest_file.open("a", encoding="utf-8") as file:
            file.write(f"{self.number} {_digest(line)}\n")

    def _begin_anew(self) -> None:
        """Start a run with a new id at the tracker, and log all lines of metrics before the current
        line."""
        self.close()
        (self._place / _ID).unlink()
        self.present, self.number, self._digests = 0, 0, {}
        self.open(run_id_in(self._place))
        note(f"{self.name}: this run differs from its rows there, and begins anew: {self._id}")
        for line in self._lines[:-1]:
            self._log(line, ())
            self.number += 1

    @property
    def _id(self) -> str:
        return run_id_in(self._place)

    @property
    def _digest_file(self) -> Path:
        return self._place / f"digests-{self._id}.txt"


def _digest(line: Measured) -> str:
    """Digest of those metrics of a line that are not measured by a clock; values have the precision
    of metrics.jsonl."""
    exact = {
        name: None if value is None or not isfinite(value) else repr(float(value))
        for name, value in line.metrics.items()
        if not any(word in name for word in _TIMED)
    }
    text = json.dumps([line.kind, line.environment_steps, exact], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measured(kind: Kind, event: UpdateEvent | EvaluateEvent) -> Measured:
    return Measured(
        kind=kind,
        iteration=event.iteration,
        environment_steps=event.environment_steps,
        metrics=event.metrics,
    )


def numbers(line: Measured) -> dict[str, float]:
    return {name: nan if value is None else value for name, value in line.metrics.items()}


def run_id_in(folder: Path) -> str:
    """The id under which a tracker logs a run; generated once and stored in `folder`."""
    file = folder / _ID
    known = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    if not known:  # also after the end of the machine, which may have emptied it
        known = secrets.token_hex(4)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, known)
    return known
