"""Writes a run's checkpoints atomically, and verifies their checksums when they are read."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from colearn.errors import CheckpointError
from colearn.text.notes import note

from .checksums import damages, write_checksums
from .fields import Progress
from .files import read_fields, write_text

PROGRESS = "progress.json"
SOURCES = "sources.json"
"""Name of the file that maps the config's fields to digests of the files that they name."""

_NAME = re.compile(r"step-(\d+)")

Step = int | Literal["last", "best"]
"""Selects a checkpoint: an iteration, `last` (the newest) or `best` (the best evaluation)."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State after an iteration: one folder per learner, and the run's progress."""

    path: Path
    passed: tuple[str, ...] = field(default=())
    """One line for each newer checkpoint that was skipped because of damage."""

    @property
    def iteration(self) -> int:
        return int(self.path.name.removeprefix("step-"))

    @property
    def progress(self) -> Progress:
        """The progress of the run. Errors: CheckpointError naming the file."""
        return read_fields(Progress, self.path / PROGRESS)

    @property
    def sources(self) -> dict[str, dict[str, str]]:
        """Digests of the files that the config names; empty if the file is missing."""
        try:
            digests: dict[str, dict[str, str]] = json.loads((self.path / SOURCES).read_text())
        except (FileNotFoundError, ValueError):  # a damaged file has another SHA-256
            return {}
        return digests

    @property
    def damage(self) -> str | None:
        """Description of the first damaged file; None if there is none."""
        return next(damages(self.path), None)

    def say_passed(self) -> None:
        """Report on stderr which newer checkpoints are damaged."""
        for damage in self.passed:
            note(f"{damage}; the checkpoint of iteration {self.iteration} is used instead")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a run, by iteration."""

    folder: Path

    def all(self) -> list[Checkpoint]:
        """Return all checkpoints, oldest first, without verifying checksums."""
        paths = [path for path in self.folder.glob("step-*") if _NAME.fullmatch(path.name)]
        return sorted(map(Checkpoint, paths), key=lambda checkpoint: checkpoint.iteration)

    def newest(self) -> Checkpoint | None:
        """The newest undamaged checkpoint; None if there is no checkpoint.

        Errors: CheckpointError if all checkpoints are damaged.
        """
        checkpoints = self.all()
        passed: list[str] = []
        for checkpoint in reversed(checkpoints):
            damage = checkpoint.damage
            if damage is None:
                return Checkpoint(checkpoint.path, tuple(passed))
            passed.append(damage)
        if checkpoints:
            raise CheckpointError(
                f"{passed[0]}; no other checkpoint is intact: delete {self.folder} to start again"
            )
        return None

    def choose(self, step: Step = "last") -> Checkpoint:
        """The selected checkpoint.

        Errors: CheckpointError if the run has no such checkpoint, or it is damaged.
        """
        newest = self.newest()
        if newest is None:
            raise CheckpointError(f"{self.folder.parent}: no checkpoint yet; let the run reach one")
        if step == "last":
            return newest
        if step == "best":
            best = newest.progress.best
            if best is None:
                raise CheckpointError(f"{newest.path}: no evaluation came before it; take --step")
            step = best.iteration
        for checkpoint in self.all():
            if checkpoint.iteration == step:
                if (damage := checkpoint.damage) is not None:
                    raise CheckpointError(f"{damage}; take another --step")
                return checkpoint
        steps = ", ".join(str(checkpoint.iteration) for checkpoint in self.all())
        raise CheckpointError(f"--step {step}: the run keeps no such checkpoint; it has: {steps}")

    def at(self, iteration: int) -> Path:
        """Folder of an iteration's checkpoint."""
        return self.folder / f"step-{iteration}"

    def aside(self, iteration: int) -> Path:
        """Temporary folder in which an iteration's checkpoint is written."""
        return self.folder / f".step-{iteration}.partial"

    @contextmanager
    def writing(self, progress: Progress, *, keep: int) -> Iterator[Path]:
        """Create an empty folder. It is renamed to `step-N` when the block ends, and removed if the
        block fails.

        After the block, only the newest `keep` checkpoints and the best checkpoint remain. If the
        run was resumed from an earlier checkpoint, checkpoints of later iterations are removed.
        """
        self._sweep()
        aside = self.aside(progress.iteration)
        aside.mkdir(parents=True)
        try:
            yield aside
            write_text(aside / PROGRESS, progress.model_dump_json(indent=1))
            write_checksums(aside)
            target = self.at(progress.iteration)
            _remove(target)
            aside.rename(target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        self._prune(progress, keep)

    def _prune(self, progress: Progress, keep: int) -> None:
        best = None if progress.best is None else progress.best.iteration
        past = [saved for saved in self.all() if saved.iteration <= progress.iteration]
        kept_iterations = {saved.iteration for saved in past[-keep:]} | {best}
        for saved in self.all():
            if saved.iteration not in kept_iterations:
                _remove(saved.path)

    def _sweep(self) -> None:
        """Remove incomplete folders of killed processes."""
        for path in self.folder.glob(".step-*.partial"):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a folder. If it is a link, only the link is removed, since a user has made it."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
