"""Schedules, saves and restores a run's checkpoints, which hold learners, experience and progress.

`record/checkpoints.py` writes a folder atomically, and `learners/checkpoint_files.py` writes the
tensors of a learner.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from time import monotonic

from colearn.models.sources import check_sources
from colearn.runs.record import Progress, RunWriter
from colearn.runs.record.checkpoints import SOURCES
from colearn.runs.record.files import write_text

from .experience import Experience
from .processes import Processes
from .team import Team


class CheckpointManager:
    """Writes a run's checkpoints and restores the newest undamaged one."""

    def __init__(self, writer: RunWriter, team: Team, processes: Processes) -> None:
        self.writer, self.team, self.processes = writer, team, processes
        self.checkpoints = writer.folder.checkpoints
        self.settings = team.run.config.run
        self._kept: Progress | None = None
        self._at = monotonic()
        self.loaded = Path()
        """Folder of the checkpoint that was loaded."""
        self.experience: Experience | None = None
        """The run's source of rollouts, whose state is saved with the learners."""

    def load(self) -> Progress | None:
        """Restore the learners from the newest undamaged checkpoint; None if there is none.

        Damaged checkpoints are reported on stderr. Errors: CheckpointError if all checkpoints are
        damaged, or belong to another run or to other base models.
        """
        checkpoint = self.checkpoints.newest()
        if checkpoint is None:
            return None
        self.loaded = checkpoint.path
        if self.processes.main:
            checkpoint.say_passed()
        changes = check_sources(
            checkpoint.path,
            checkpoint.sources,
            self.team.sources,
            resumes=True,
            accepts=self.settings.accept_changes,
        )
        self.team.load(checkpoint.path)
        progress = checkpoint.progress
        progress.changes = list(dict.fromkeys((*progress.changes, *changes)))
        self._kept = None if changes else progress.model_copy()
        return progress

    def due(self, progress: Progress) -> bool:
        """Whether a checkpoint is due, because the iteration is a multiple of `checkpoint_every` or
        because `checkpoint_minutes` have passed."""
        interval, minutes = self.settings.checkpoint_every, self.settings.checkpoint_minutes
        over = minutes is not None and monotonic() - self._at >= 60 * minutes
        return self.processes.any(over) or (
            interval is not None and progress.iteration % interval == 0
        )

    def save(self, progress: Progress) -> Path | None:
        """Write the state and return the checkpoint's folder; return None if this state was already
        saved. Every process must call this method; rank 0 writes.

        Errors: CheckpointError if the checkpoint cannot be written; earlier checkpoints remain.
        """
        if progress == self._kept:
            return None
        with self.writer.writing(), contextlib.ExitStack() as stack:
            aside = self.checkpoints.aside(progress.iteration)
            if self.processes.main:
                keep = self.settings.keep_checkpoints
                stack.enter_context(self.checkpoints.writing(progress, keep=keep))
                if self.experience is not None:
                    self.experience.save(aside)
                write_text(aside / SOURCES, json.dumps(self.team.sources, indent=1))
            self.processes.wait()
            self.team.save(aside, writes=self.processes.main)
        self.processes.wait()
        self._kept = progress.model_copy()
        self._at = monotonic()
        return self.checkpoints.at(progress.iteration)
