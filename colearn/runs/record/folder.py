"""Reads a run's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colearn.config import Config, load_config
from colearn.errors import CheckpointError, ConfigError

from .checkpoints import Checkpoints
from .difference import BUDGET
from .fields import CriticLine, Episode, Line, RecordedTree, RunRecord
from .files import read_fields, read_lines, read_yaml
from .place import named_folder
from .tail import MetricsTail

CONFIG, RUN, METRICS, EPISODES = "config.yaml", "run.json", "metrics.jsonl", "episodes.jsonl"
LOG = "log.txt"
TREES, CRITIC = "trees.jsonl", "critic.jsonl"
COMPARISON, RUNS = "compare.json", "runs"

_NAMES = frozenset({"wrapper", "base"})
"""Top-level settings that may be a plain name instead of a section."""

Status = Literal["not started", "unfinished", "finished"]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run's folder. Unreadable files raise CheckpointError with one line that names the file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def log(self) -> Path:
        """Path of the log with the run's output, if a comparison started the run."""
        return self.path / LOG

    def files(self) -> dict[str, Path]:
        """Files of interest to users, by description. Some of them may not exist."""
        names = {"config": CONFIG, "record": RUN, "metrics": METRICS, "episodes": EPISODES}
        return {
            "folder": self.path,
            **{k: self.path / v for k, v in names.items()},
            "log": self.log,
            "trees": self.path / TREES,
            "critic": self.path / CRITIC,
        }

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints")

    @property
    def recorded(self) -> bool:
        """Whether run.json exists; a run writes it after its config."""
        return (self.path / RUN).is_file()

    @property
    def status(self) -> Status:
        if not self.recorded:
            return "unfinished" if (self.path / CONFIG).is_file() else "not started"
        return "finished" if self.record().status == "finished" else "unfinished"

    def record(self) -> RunRecord:
        return read_fields(RunRecord, self.path / RUN)

    def lines(self) -> list[Line]:
        """Read metrics.jsonl, in the order of writing."""
        return list(read_lines(Line, self.path / METRICS))

    def evaluations(self) -> list[Line]:
        return [line for line in self.lines() if line.kind == "evaluation"]

    def tail(self, metric: str = "return") -> MetricsTail:
        """Follow metrics.jsonl as it grows; `metric` is the headline metric."""
        return MetricsTail(self.path / METRICS, metric)

    def environment_steps(self) -> int:
        """Joint actions made so far."""
        return max((line.environment_steps for line in self.lines()), default=0)

    def check_budget(self, steps: int) -> None:
        """Check a new budget against the progress of the run.

        If the last iteration exceeded the old budget, the excess steps do not count.
        Errors: ConfigError if the run has already made more environment steps.
        """
        steps_so_far = self.environment_steps()
        if steps < steps_so_far and steps < (
            least := min(steps_so_far, self.config().train.environment_steps)
        ):
            raise ConfigError(
                f"{BUDGET}: {steps} is less than the {least} that the run in {self.path} has made; "
                "give at least as many, or name another folder with --out"
            )

    def episodes(self) -> list[Episode]:
        return list(read_lines(Episode, self.path / EPISODES))

    def critic_lines(self) -> list[CriticLine]:
        """Read critic.jsonl: the variance that the critic explained in each update."""
        return list(read_lines(CriticLine, self.path / CRITIC))

    def trees(self) -> Iterator[RecordedTree]:
        """Read trees.jsonl: training episodes, if the run records them (`train.record`)."""
        return read_lines(RecordedTree, self.path / TREES)

    def config(self, overrides: Mapping[str, Any] | Sequence[str] = ()) -> Config:
        """The run's config. Errors: CheckpointError, or ConfigError for invalid overrides."""
        return load_config(self.settings(), overrides)

    def settings(self) -> dict[str, Any]:
        """Read config.yaml as plain data."""
        data = read_yaml(self.path / CONFIG)
        for section in Config.model_fields:
            if section not in _NAMES and not isinstance(data.get(section) or {}, dict):
                raise CheckpointError(
                    f"{self.path / CONFIG}: {section} is no section; run it again"
                )
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The record and the ordered lines of a run that has at least one evaluation."""

    folder: RunFolder
    algorithm: str
    """Label in the comparison; by default the algorithm's name."""
    seed: int
    record: RunRecord
    evaluations: tuple[Line, ...]
    updates: tuple[Line, ...]

    @property
    def name(self) -> str:
        return f"{self.algorithm}-s{self.seed}"


def open_run(folder: str | Path) -> RunFolder:
    """Return the run that a folder contains.

    Errors: CheckpointError if the folder contains no run, or a comparison.
    """
    path = named_folder(folder, "run")
    if (path / COMPARISON).is_file():
        names = sorted(record.parent.name for record in (path / RUNS).glob(f"*/{RUN}"))
        raise CheckpointError(
            f"{path}: holds a comparison; give one of its runs under {path / RUNS}: "
            + (", ".join(names) or "none has started yet")
        )
    if not (path / CONFIG).is_file():
        raise CheckpointError(f"{path}: no run here (no {CONFIG}); give a run's folder")
    return RunFolder(path)


def read_run(folder: RunFolder, algorithm: str | None = None) -> Run:
    """Read a run. `algorithm` is the run's label if the label differs from the algorithm's name.

    Errors: CheckpointError if a file is unreadable, lacks a field, or has no evaluation.
    """
    record = folder.record()
    evaluations: dict[int, Line] = {}
    updates: dict[int, Line] = {}
    for line in folder.lines():
        # a resumed run may repeat what followed its last checkpoint
        (evaluations if line.kind == "evaluation" else updates)[line.iteration] = line
    if not evaluations:
        raise CheckpointError(
            f"{folder.path / METRICS}: holds no evaluation; delete {folder.path} and run it again"
        )
    return Run(
        folder=folder,
        algorithm=algorithm or record.algorithm,
        seed=record.seed,
        record=record,
        evaluations=tuple(evaluations[iteration] for iteration in sorted(evaluations)),
        updates=tuple(updates[iteration] for iteration in sorted(updates)),
    )
