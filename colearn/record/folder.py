"""Reading a run's folder; nothing else in the library opens its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from colearn.config import Config, load_config
from colearn.errors import CheckpointError, ConfigError

from .checkpoints import Checkpoints
from .difference import BUDGET
from .fields import Episode, Line, RunRecord
from .files import read_fields, read_lines, read_yaml
from .tail import MetricsTail

CONFIG, RUN, METRICS, EPISODES = "config.yaml", "run.json", "metrics.jsonl", "episodes.jsonl"
LOG = "log.txt"
COMPARISON, RUNS = "compare.json", "runs"

Status = Literal["not started", "unfinished", "finished"]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder. Whatever it reads raises CheckpointError, one line that names the file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def log(self) -> Path:
        """What the run's process printed, where a comparison started it."""
        return self.path / LOG

    def files(self) -> dict[str, Path]:
        """What a reader may open, by what it is; not all need be there."""
        names = {"config": CONFIG, "record": RUN, "metrics": METRICS, "episodes": EPISODES}
        return {
            "folder": self.path,
            **{k: self.path / v for k, v in names.items()},
            "log": self.log,
        }

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints")

    @property
    def status(self) -> Status:
        if not (self.path / RUN).is_file():
            return "unfinished" if (self.path / CONFIG).is_file() else "not started"
        return "finished" if self.record().status == "finished" else "unfinished"

    def record(self) -> RunRecord:
        """run.json."""
        return read_fields(RunRecord, self.path / RUN)

    def lines(self) -> list[Line]:
        """metrics.jsonl, in the order of writing."""
        return list(read_lines(Line, self.path / METRICS))

    def evaluations(self) -> list[Line]:
        return [line for line in self.lines() if line.kind == "evaluation"]

    def tail(self) -> MetricsTail:
        """Follows metrics.jsonl as it grows."""
        return MetricsTail(self.path / METRICS)

    def environment_steps(self) -> int:
        """Joint actions made so far."""
        return max((line.environment_steps for line in self.lines()), default=0)

    def check_budget(self, steps: int) -> None:
        """Errors: ConfigError where so many environment steps would make the run shorter than it
        is; what its last iteration made beyond its budget does not count."""
        made = self.environment_steps()
        if steps < made and steps < (least := min(made, self.config().train.environment_steps)):
            raise ConfigError(
                f"{BUDGET}: {steps} is less than the {least} that the run in {self.path} has made; "
                "give at least as many, or name another folder with --out"
            )

    def episodes(self) -> list[Episode]:
        """episodes.jsonl."""
        return list(read_lines(Episode, self.path / EPISODES))

    def config(self, overrides: Mapping[str, Any] | Sequence[str] = ()) -> Config:
        """The run's config. Errors: also ConfigError, for overrides."""
        self.settings()
        return load_config(self.path / CONFIG, overrides)

    def settings(self) -> dict[str, Any]:
        """config.yaml as plain data, its sections mappings."""
        data = read_yaml(self.path / CONFIG)
        for section in Config.model_fields:
            if section != "wrapper" and not isinstance(data.get(section) or {}, dict):
                raise CheckpointError(
                    f"{self.path / CONFIG}: {section} is no section; run it again"
                )
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run with an evaluation at least: its record, and its lines in order."""

    folder: RunFolder
    algorithm: str
    """The label in the comparison: the algorithm's name unless two variants of it are compared."""
    seed: int
    record: RunRecord
    evaluations: tuple[Line, ...]
    updates: tuple[Line, ...]

    @property
    def name(self) -> str:
        return f"{self.algorithm}-s{self.seed}"


def open_run(folder: str | Path) -> RunFolder:
    """The run in a folder.

    Errors: CheckpointError where the folder holds none, or a comparison.
    """
    path = Path(folder)
    if (path / COMPARISON).is_file():
        names = sorted(found.parent.name for found in (path / RUNS).glob(f"*/{RUN}"))
        raise CheckpointError(
            f"{path}: holds a comparison; give one of its runs under {path / RUNS}: "
            + (", ".join(names) or "none has started yet")
        )
    if not (path / CONFIG).is_file():
        raise CheckpointError(f"{path}: no run here (no {CONFIG}); give a run's folder")
    return RunFolder(path)


def read_run(folder: RunFolder, algorithm: str | None = None) -> Run:
    """A run's figures; `algorithm` is its label where that is not the algorithm's own name.

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
