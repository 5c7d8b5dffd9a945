"""Shipped trackers, which supplement the JSONL files: wandb (also offline), trackio, TensorBoard,
CSV.

In each tracker, a run that was resumed from a checkpoint has the same curve as an uninterrupted
run.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from colearn.contract import EvaluateEvent, Measured, StartEvent, Tracker, UpdateEvent
from colearn.contract.tracker import prefixed
from colearn.errors import ConfigError, reason_of, required
from colearn.runs.record.files import write_text
from colearn.runs.record.folder import RUNS
from colearn.text.printable import cell

from .row_tracker import RowTracker, measured, numbers
from .wandb_file import rows_in

_AXIS = "environment_steps"
"""Name of the x axis of the curves in wandb."""
_CSV_HEAD = ("kind", "iteration", _AXIS, "metric", "value")


class WandbTracker(RowTracker):
    """Logs to wandb, with environment steps as the axis; WANDB_MODE=offline works. A resumed run
    keeps its id and continues after its last row. If a row that the resumed run repeats differs
    from the logged row, the run is logged again under a new id. Runs of a comparison form a group;
    WANDB_PROJECT sets the project."""

    @property
    def name(self) -> str:
        return "wandb"

    def open(self, run_id: str) -> None:
        """Errors: MissingExtra naming the pip command; ConfigError if wandb does not start."""
        self._wandb = wandb = required("wandb", "wandb")
        with _starting("wandb", "log in with `wandb login`, or set WANDB_MODE=offline"):
            self.run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "colearn"),
                dir=str(self.folder),
                name=self.folder.name,
                id=run_id,
                resume="allow",
                group=_comparison(self.folder),
                tags=[self.settings["task"]["name"], self.settings["algorithm"]["name"]],
                config=dict(self.settings),
            )
        # wandb drops a row whose own step is not above the last one, so that it only counts rows
        self.run.define_metric(_AXIS, hidden=True)
        self.run.define_metric("*", step_metric=_AXIS)

    def on_start(self, event: StartEvent) -> None:
        self.present = rows_in(self._place, self._id) if self.run.offline else self.run.step
        super().on_start(event)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.run.log({**metrics, _AXIS: step}, step=self.number, commit=True)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Log one table per evaluation, with one row per agent and turn. The table has the same
        wandb step as the metrics of the evaluation."""
        table = _table(self._wandb, episodes)
        self.run.log({"transcripts": table, _AXIS: step}, step=self.number, commit=False)

    def close(self) -> None:
        self.run.finish()


class TrackioTracker(RowTracker):
    """Logs to trackio's database, which is in TRACKIO_DIR or in trackio's default folder; or to the
    server or Space that trackio's environment variables name. Runs of a comparison form a group;
    TRACKIO_PROJECT sets the project. A run's name ends with an id. A resumed run keeps this id
    unless the rows that it repeats differ from the logged rows. The number of rows is stored next
    to the id; in trackio's own database, the rows are counted."""

    @property
    def name(self) -> str:
        return "trackio"

    def open(self, run_id: str) -> None:
        """Errors: MissingExtra naming the pip command; ConfigError if trackio does not start."""
        self._trackio = trackio = required("trackio", "trackio")
        project = os.environ.get("TRACKIO_PROJECT", "colearn")
        name = f"{self.folder.name}-{run_id}"
        self._count = self._place / f"rows-{run_id}.txt"
        counted = int(self._count.read_text(encoding="utf-8")) if self._count.is_file() else 0
        with (
            redirect_stdout(sys.stderr),  # trackio prints where it logs to
            _starting("trackio", "check the environment variables that begin with TRACKIO_"),
        ):
            self.run = trackio.init(
                project=project,
                name=name,
                group=_comparison(self.folder),
                config=dict(self.settings),
                resume="allow",
                embed=False,
            )
        if counted and getattr(self.run, "_is_local", False):
            # a run that was killed has lost the rows that trackio's thread had yet to write
            logged = import_module("trackio.sqlite_storage").SQLiteStorage.get_logs(project, name)
            counted = min(counted, sum("transcripts" not in row for row in logged))
        self.present = counted

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.run.log(dict(metrics), step=step)
        write_text(self._count, str(self.number + 1))

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Log one table per evaluation, with one row per agent and turn."""
        self.run.log({"transcripts": _table(self._trackio, episodes)}, step=step)

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self.run.finish()


class TensorBoardTracker(Tracker):
    """Writes event files under RUN/tensorboard. A resumed run hides the events that were written
    after its checkpoint, and writes them again."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        required("tensorboard", "tensorboard")
        self._folder = folder / "tensorboard"

    def on_start(self, event: StartEvent) -> None:
        from torch.utils.tensorboard import SummaryWriter

        since = event.environment_steps
        self.writer = SummaryWriter(str(self._folder), purge_step=since if event.resumed else None)
        for line in event.earlier:
            if line.environment_steps >= since:
                self.log(prefixed(line.kind, numbers(line)), line.environment_steps)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()  # a killed run keeps what it has logged

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Does nothing: TensorBoard has no tables; see episodes.jsonl and the report."""

    def close(self) -> None:
        self.writer.close()


class CsvTracker(Tracker):
    """Writes RUN/metrics.csv, with one row per value,
    `kind,iteration,environment_steps,metric,value`, for spreadsheets and data frames."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._path = folder / "metrics.csv"

    def on_start(self, event: StartEvent) -> None:
        with self._path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(_CSV_HEAD)
        for line in event.earlier:
            self._write(line)

    def on_update(self, event: UpdateEvent) -> None:
        self._write(measured("update", event))

    def on_evaluate(self, event: EvaluateEvent) -> None:
        self._write(measured("evaluation", event))

    def _write(self, line: Measured) -> None:
        place = (line.kind, line.iteration, line.environment_steps)
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(
                (*place, cell(name), "" if value is None else value)
                for name, value in line.metrics.items()
            )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Not called, because a row also needs the kind and the iteration of the line of
        metrics."""

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Does nothing; see episodes.jsonl."""

    def close(self) -> None:
        """Does nothing: no file is open between rows."""


NAMES = {
    "csv": ":CsvTracker",
    "tensorboard": ":TensorBoardTracker",
    "trackio": ":TrackioTracker",
    "wandb": ":WandbTracker",
}
"""Shipped trackers, by name."""

_COLUMNS = ("iteration", "episode", "item", "turn", "agent", "observation", "action", "reward")


@contextmanager
def _starting(tracker: str, remedy: str) -> Iterator[None]:
    """Errors: ConfigError with the reason if the tracker's package cannot start a run: it is not
    logged in, its server does not answer, or its own process takes too long to start."""
    try:
        yield
    except OSError:
        raise  # a failed write
    except Exception as error:
        reason = reason_of(error)
        raise ConfigError(
            f"run.trackers: {tracker} does not start ({type(error).__name__}: {reason}); {remedy}"
        ) from error


def _comparison(folder: Path) -> str | None:
    """The name of the comparison to which a run's folder belongs."""
    above = folder.absolute().parent
    return above.parent.name if above.name == RUNS else None


def _table(package: Any, episodes: Sequence[Mapping[str, Any]]) -> Any:
    """Returns a table object of wandb or trackio; both packages take the same arguments."""
    data = [[row[column] for column in _COLUMNS] for row in _rows(episodes)]
    return package.Table(columns=list(_COLUMNS), data=data)


def _rows(episodes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Returns one row per agent and turn with an observation; an agent may observe without
    acting."""
    for episode in episodes:
        columns = {key: episode[key] for key in ("iteration", "episode", "item")}
        for number, turn in enumerate(episode["turns"]):
            for agent, observation in turn["observations"].items():
                yield {
                    **columns,
                    "turn": number,
                    "agent": agent,
                    "observation": observation,
                    "action": turn["actions"].get(agent),
                    "reward": turn["reward"],
                }
