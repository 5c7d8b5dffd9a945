"""RUN/checkpoints: written aside, renamed when whole, checked by their sums when read."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from colearn.errors import CheckpointError

from .checksums import damages, write_checksums
from .fields import Progress
from .files import read_fields, write_text

PROGRESS = "progress.json"

_NAME = re.compile(r"step-(\d+)")

Step = int | Literal["last", "best"]
"""Which checkpoint: of an iteration, the newest, or that of the best evaluation."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state after an iteration: a folder per learner, and the progress."""

    path: Path
    passed: tuple[str, ...] = field(default=())
    """Why newer ones were passed over, a line for each."""

    @property
    def iteration(self) -> int:
        return int(self.path.name.removeprefix("step-"))

    @property
    def progress(self) -> Progress:
        """Errors: CheckpointError naming the file."""
        return read_fields(Progress, self.path / PROGRESS)

    @property
    def damage(self) -> str | None:
        """The first file that is not as it was written."""
        return next(damages(self.path), None)

    def say_passed(self) -> None:
        """On stderr, which newer checkpoints were passed over."""
        for damage in self.passed:
            text = f"note: {damage}; the checkpoint of iteration {self.iteration} is used instead"
            print(text, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a run, by iteration."""

    folder: Path

    def all(self) -> list[Checkpoint]:
        """Oldest first; whole when they were written."""
        found = [path for path in self.folder.glob("step-*") if _NAME.fullmatch(path.name)]
        return sorted(map(Checkpoint, found), key=lambda checkpoint: checkpoint.iteration)

    def newest(self) -> Checkpoint | None:
        """The newest one that is as it was written; None where there is none at all.

        Errors: CheckpointError where all are damaged.
        """
        found = self.all()
        passed: list[str] = []
        for checkpoint in reversed(found):
            damage = checkpoint.damage
            if damage is None:
                return Checkpoint(checkpoint.path, tuple(passed))
            passed.append(damage)
        if found:
            raise CheckpointError(
                f"{passed[0]}; no other checkpoint is whole: delete {self.folder} to start anew"
            )
        return None

    def choose(self, step: Step = "last") -> Checkpoint:
        """Errors: CheckpointError where the run keeps no such checkpoint, or it is damaged."""
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
        kept = ", ".join(str(checkpoint.iteration) for checkpoint in self.all())
        raise CheckpointError(f"--step {step}: the run keeps no such checkpoint; it has: {kept}")

    def aside(self, iteration: int) -> Path:
        """Where the checkpoint of an iteration is written before it is one."""
        return self.folder / f".step-{iteration}.partial"

    @contextmanager
    def writing(self, progress: Progress, *, keep: int) -> Iterator[Path]:
        """An empty folder that becomes `step-N` when the block ends and goes away if it fails.

        Then all go but the newest `keep`, the best one, and none that is newer than this one: a
        run that went back to an earlier checkpoint has left those behind.
        """
        self._sweep()
        aside = self.aside(progress.iteration)
        aside.mkdir(parents=True)
        try:
            yield aside
            write_text(aside / PROGRESS, progress.model_dump_json(indent=1))
            write_checksums(aside)
            target = self.folder / f"step-{progress.iteration}"
            shutil.rmtree(target, ignore_errors=True)
            aside.rename(target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        self._prune(progress, keep)

    def _prune(self, progress: Progress, keep: int) -> None:
        best = None if progress.best is None else progress.best.iteration
        known = [found for found in self.all() if found.iteration <= progress.iteration]
        kept = {found.iteration for found in known[-keep:]} | {best}
        for found in self.all():
            if found.iteration not in kept:
                shutil.rmtree(found.path)

    def _sweep(self) -> None:
        """Remove what a killed process left half written."""
        for path in self.folder.glob(".step-*.partial"):
            shutil.rmtree(path, ignore_errors=True)
