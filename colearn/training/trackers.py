"""Shipped trackers, which supplement the JSONL files: wandb (also offline) and TensorBoard.

In each tracker, a run that was resumed from a checkpoint has the same curve as an uninterrupted
run.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import nan
from pathlib import Path
from typing import Any

from colearn.contract import Measured, StartEvent, Tracker
from colearn.contract.tracker import prefixed
from colearn.errors import ConfigError, reason_of, required
from colearn.runs.record.files import write_text
from colearn.runs.record.folder import RUNS

from .wandb_file import rows_in

_AXIS = "environment_steps"
"""Name of the x axis of the curves in wandb."""
_ID = "id.txt"


class WandbTracker(Tracker):
    """Logs to wandb, with environment steps as the axis; WANDB_MODE=offline works. A resumed run
    keeps its id and continues after its last row. wandb cannot replace a row, so the rows that a
    resumed run repeats are not logged again; on a CPU they are the same. Runs of a comparison form
    a group; WANDB_PROJECT sets the project."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Errors: MissingExtra naming the pip command; ConfigError if wandb does not start."""
        self._wandb = wandb = required("wandb", "wandb")
        self._place = folder / "wandb"
        self._id = run_id_in(self._place)
        self._present = 0
        """Number of rows that earlier processes of the run have logged."""
        self._number = 0
        """Index of the next row; equals the index of the run's next line of metrics."""
        with _starting("wandb", "log in with `wandb login`, or set WANDB_MODE=offline"):
            self.run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "colearn"),
                dir=str(folder),
                name=folder.name,
                id=self._id,
                resume="allow",
                group=_comparison(folder),
                tags=[settings["task"]["name"], settings["algorithm"]["name"]],
                config=dict(settings),
            )
        # wandb drops a row whose own step is not above the last one, so that it only counts rows
        self.run.define_metric(_AXIS, hidden=True)
        self.run.define_metric("*", step_metric=_AXIS)

    def on_start(self, event: StartEvent) -> None:
        self._present = rows_in(self._place, self._id) if self.run.offline else self.run.step
        for line in event.earlier:
            self.log(prefixed(line.kind, _numbers(line)), line.environment_steps)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        if self._number >= self._present:
            self.run.log({**metrics, _AXIS: step}, step=self._number, commit=True)
        self._number += 1

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Log one table per evaluation, with one row per agent and turn. The table has the same
        wandb step as the metrics of the evaluation."""
        if episodes and self._number >= self._present:
            data = [[row[column] for column in _COLUMNS] for row in _rows(episodes)]
            table = self._wandb.Table(columns=list(_COLUMNS), data=data)
            self.run.log({"transcripts": table, _AXIS: step}, step=self._number, commit=False)

    def close(self) -> None:
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
                self.log(prefixed(line.kind, _numbers(line)), line.environment_steps)

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()  # a killed run keeps what it has logged

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Does nothing: TensorBoard has no tables; see episodes.jsonl and the report."""

    def close(self) -> None:
        self.writer.close()


NAMES = {
    "tensorboard": ":TensorBoardTracker",
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


def run_id_in(folder: Path) -> str:
    """The id under which a tracker logs a run; generated once and stored in `folder`."""
    file = folder / _ID
    known = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    if not known:  # also after the end of the machine, which may have emptied it
        known = secrets.token_hex(4)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, known)
    return known


def _numbers(line: Measured) -> dict[str, float]:
    return {name: nan if value is None else value for name, value in line.metrics.items()}


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
