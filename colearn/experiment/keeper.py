"""Checkpoint schedule of a run, and the state it saves: every learner and the progress."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from colearn.config import RunSettings
from colearn.contract import Follower, Learner, NetworkKey
from colearn.record import Progress, RunWriter

from .processes import Processes


class Keeper:
    """Writes a run's checkpoints and goes on from the newest that is whole."""

    def __init__(
        self,
        writer: RunWriter,
        learners: Mapping[NetworkKey, Learner],
        settings: RunSettings,
        processes: Processes,
        followers: Mapping[NetworkKey, Follower],
    ) -> None:
        self.writer = writer
        self.checkpoints = writer.folder.checkpoints
        self.learners = learners
        self.followers = followers
        self.settings = settings
        self.processes = processes
        self._kept: Progress | None = None
        self._at = time.monotonic()

    def load(self) -> Progress | None:
        """Put the learners into the newest whole checkpoint's state; None where there is none.

        What was passed over is said on stderr. Errors: CheckpointError where all are damaged, or
        of another run.
        """
        found = self.checkpoints.newest()
        if found is None:
            return None
        if self.processes.main:
            found.say_passed()
        load_learners(found.path, self.learners)
        for key, follower in self.followers.items():
            follower.load(found.path / str(key))
        self._kept = found.progress
        return found.progress

    def due(self, progress: Progress) -> bool:
        """Whether so many iterations or minutes have passed."""
        every, minutes = self.settings.checkpoint_every, self.settings.checkpoint_minutes
        over = minutes is not None and time.monotonic() - self._at >= 60 * minutes
        return self.processes.any(over) or (every is not None and progress.iteration % every == 0)

    def save(self, progress: Progress) -> None:
        """Write the state unless it is kept already. Every process must call; the main one writes.

        Errors: CheckpointError where it cannot be written; the earlier ones then stand.
        """
        if progress == self._kept:
            return
        with self.writer.writing(), contextlib.ExitStack() as stack:
            aside = self.checkpoints.aside(progress.iteration)
            if self.processes.main:
                keep = self.settings.keep_checkpoints
                stack.enter_context(self.checkpoints.writing(progress, keep=keep))
                for key, follower in self.followers.items():
                    follower.save(aside / str(key))
            self.processes.wait()
            for key, learner in self.learners.items():
                learner.save(aside / str(key))
        self.processes.wait()
        self._kept = progress.model_copy()
        self._at = time.monotonic()


def load_learners(checkpoint: Path, learners: Mapping[NetworkKey, Learner]) -> None:
    """Errors: CheckpointError for a checkpoint that cannot be read or is of another run."""
    for key, learner in learners.items():
        learner.load(checkpoint / str(key))
