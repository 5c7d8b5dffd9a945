"""Optional trackers beside the JSONL files: wandb (offline too) and TensorBoard."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from colearn.contract import Tracker
from colearn.errors import MissingExtra
from colearn.record.folder import RUNS


class WandbTracker(Tracker):
    """Runs offline where WANDB_MODE=offline says so; a resumed run keeps its id. Runs of one
    comparison are a group; WANDB_PROJECT names the project."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._wandb = wandb = _require("wandb", "wandb")
        known = folder / "wandb" / "id.txt"
        if not known.is_file():
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(secrets.token_hex(4), encoding="utf-8")
        above = folder.absolute().parent
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "colearn"),
            dir=str(folder),
            name=folder.name,
            id=known.read_text(encoding="utf-8").strip(),
            resume="allow",
            group=above.parent.name if above.name == RUNS else None,
            tags=[settings["task"]["name"], settings["algorithm"]["name"]],
            config=dict(settings),
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.run.log(dict(metrics), step=step)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """As a table of their own at each evaluation: a row for each agent and turn."""
        rows = [[row[column] for column in _COLUMNS] for row in _rows(episodes)]
        table = self._wandb.Table(columns=list(_COLUMNS), data=rows)
        self.run.log({"transcripts": table}, step=step)

    def close(self) -> None:
        self.run.finish()


class TensorBoardTracker(Tracker):
    """Event files under RUN/tensorboard."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        _require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def transcripts(self, episodes: Sequence[Mapping[str, Any]], step: int) -> None:
        """Left to episodes.jsonl and the report: TensorBoard has no tables."""

    def close(self) -> None:
        self.writer.close()


NAMES = {"tensorboard": ":TensorBoardTracker", "wandb": ":WandbTracker"}
"""The shipped trackers, by name."""

_COLUMNS = ("iteration", "episode", "item", "turn", "agent", "observation", "action", "reward")


def _rows(episodes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """One for each agent that saw something in a turn; an agent may be shown what it only reads."""
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


def _require(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(module, extra) from None
