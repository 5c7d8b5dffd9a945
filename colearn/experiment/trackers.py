"""Shipped trackers, in addition to the JSONL files: wandb (also offline), trackio, TensorBoard."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from colearn.contract import Tracker
from colearn.errors import required
from colearn.record.folder import RUNS


class WandbTracker(Tracker):
    """Logs to wandb; WANDB_MODE=offline works, and a resumed run keeps its id. Runs of a comparison
    form a group; WANDB_PROJECT sets the project."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._wandb = wandb = required("wandb", "wandb")
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "colearn"),
            dir=str(folder),
            name=folder.name,
            id=_run_id(folder / "wandb"),
            resume="allow",
            group=_comparison(folder),
            tags=[settings["task"]["name"], settings["algorithm"]["name"]],
            config=dict(settings),
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.run.log(dict(metrics), step=step)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Log a table per evaluation, one row per agent and turn."""
        self.run.log({"transcripts": _table(self._wandb, episodes)}, step=step)

    def close(self) -> None:
        self.run.finish()


class TrackioTracker(Tracker):
    """Logs to trackio's database, in TRACKIO_DIR or trackio's default folder, or to the server or
    Space that its variables name. Runs of a comparison form a group; TRACKIO_PROJECT sets the
    project. A run's name ends with an id, by which a resumed run continues."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._trackio = trackio = required("trackio", "trackio")
        with redirect_stdout(sys.stderr):  # trackio prints where it logs to
            self.run = trackio.init(
                project=os.environ.get("TRACKIO_PROJECT", "colearn"),
                name=f"{folder.name}-{_run_id(folder / 'trackio')}",
                group=_comparison(folder),
                config=dict(settings),
                resume="allow",
                embed=False,
            )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.run.log(dict(metrics), step=step)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Log a table per evaluation, one row per agent and turn."""
        self.run.log({"transcripts": _table(self._trackio, episodes)}, step=step)

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self.run.finish()


class TensorBoardTracker(Tracker):
    """Event files under RUN/tensorboard."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        required("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Does nothing: TensorBoard has no tables; see episodes.jsonl and the report."""

    def close(self) -> None:
        self.writer.close()


NAMES = {
    "tensorboard": ":TensorBoardTracker",
    "trackio": ":TrackioTracker",
    "wandb": ":WandbTracker",
}
"""Shipped trackers, by name."""

_COLUMNS = ("iteration", "episode", "item", "turn", "agent", "observation", "action", "reward")


def _run_id(folder: Path) -> str:
    """The id of a run at a tracker, which is made once and kept in `folder`."""
    file = folder / "id.txt"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(secrets.token_hex(4), encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()


def _comparison(folder: Path) -> str | None:
    """The name of the comparison that a run's folder is in."""
    above = folder.absolute().parent
    return above.parent.name if above.name == RUNS else None


def _table(package: Any, episodes: Sequence[Mapping[str, Any]]) -> Any:
    """A table of wandb or trackio, which take the same arguments."""
    data = [[row[column] for column in _COLUMNS] for row in _rows(episodes)]
    return package.Table(columns=list(_COLUMNS), data=data)


def _rows(episodes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per agent and turn with an observation; an agent may observe without acting."""
    for episode in episodes:
        told = {key: episode[key] for key in ("iteration", "episode", "item")}
        for number, turn in enumerate(episode["turns"]):
            for agent, observation in turn["observations"].items():
                yield {
                    **told,
                    "turn": number,
                    "agent": agent,
                    "observation": observation,
                    "action": turn["actions"].get(agent),
                    "reward": turn["reward"],
                }
