"""Assembles a run again at one of its checkpoints."""

from __future__ import annotations

from colearn.config import Config
from colearn.experiment.assemble import Assembly, assemble
from colearn.models.sources import check_sources
from colearn.record import RunFolder
from colearn.record.checkpoints import Checkpoint, Step

from .evaluate import evaluate_weights


def at_checkpoint(folder: RunFolder, config: Config, step: Step) -> tuple[Assembly, Checkpoint]:
    """Assemble a run, and return it with the chosen checkpoint, on whose base models it stands. The
    checkpoint's weights are not loaded yet. `config`: the run's config, with other settings where
    wanted.

    Errors: CheckpointError if there is no such checkpoint, or if a model's files have changed.
    """
    checkpoint = folder.checkpoints.choose(step)
    checkpoint.say_passed()
    parts = assemble(config)
    check_sources(checkpoint.path, checkpoint.sources, parts.sources)
    return parts, checkpoint


def evaluate_again(folder: RunFolder, config: Config, step: Step) -> dict[str, float]:
    """Evaluate a checkpoint of a run and return the metrics. Errors: as `at_checkpoint`."""
    parts, checkpoint = at_checkpoint(folder, config, step)
    return evaluate_weights(parts, {key: checkpoint.path / str(key) for key in parts.host.learners})
