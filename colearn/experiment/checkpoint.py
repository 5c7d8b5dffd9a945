"""Checkpoints: written aside, renamed when whole, read back exactly."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from colearn.contract import Learner
from colearn.errors import CheckpointError

from .processes import Processes

PROGRESS = "progress.json"


@dataclass(slots=True)
class Progress:
    """How far a run has come; with the seed it fixes everything drawn afterwards."""

    iteration: int = 0
    episodes: int = 0
    environment_steps: int = 0
    generations: int = 0
    generated_tokens: int = 0
    updates: int = 0
    wall_seconds: float = 0.0


def save_checkpoint(
    folder: Path,
    learners: Mapping[str, Learner],
    progress: Progress,
    *,
    keep: int,
    processes: Processes,
) -> Path:
    """Write `folder/step-N`, then drop all but the newest `keep`. Every process must call; the
    main one writes."""
    target = folder / f"step-{progress.iteration}"
    aside = folder / f".{target.name}.partial"
    if processes.main:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
    processes.wait()
    for name, learner in learners.items():
        learner.save(aside / name)
    if processes.main:
        (aside / PROGRESS).write_text(json.dumps(asdict(progress), indent=1))
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
        for old in list_checkpoints(folder)[:-keep]:
            shutil.rmtree(old)
    processes.wait()
    return target


def list_checkpoints(folder: Path) -> list[Path]:
    """Whole checkpoints, oldest first."""
    found = [path for path in folder.glob("step-*") if path.is_dir()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def load_checkpoint(path: Path, learners: Mapping[str, Learner]) -> Progress:
    """Errors: CheckpointError for a checkpoint that is cut short or of another run."""
    try:
        progress = Progress(**json.loads((path / PROGRESS).read_text()))
    except (OSError, ValueError, TypeError):
        raise CheckpointError(
            f"{path / PROGRESS}: missing or cut short; remove this checkpoint and resume from an "
            "earlier one"
        ) from None
    for name, learner in learners.items():
        learner.load(path / name)
    return progress
