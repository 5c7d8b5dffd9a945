"""Loads the team of a run again at one of its checkpoints."""

from __future__ import annotations

from colearn.config import Config
from colearn.models.sources import check_sources
from colearn.runs.record import RunFolder
from colearn.runs.record.checkpoints import Checkpoint, Step
from colearn.training.load_team import load_team
from colearn.training.team import Team

from .evaluate import evaluate_weights


def at_checkpoint(folder: RunFolder, config: Config, step: Step) -> tuple[Team, Checkpoint]:
    """Load a run's team, and return it with the chosen checkpoint, on whose base models it stands.
    The checkpoint's weights are not loaded yet. `config`: the run's config, with other settings
    where wanted.

    Errors: CheckpointError if there is no such checkpoint, or if a model's files have changed.
    """
    checkpoint = folder.checkpoints.choose(step)
    checkpoint.say_passed()
    team = load_team(config)
    check_sources(checkpoint.path, checkpoint.sources, team.sources)
    return team, checkpoint


def evaluate_again(folder: RunFolder, config: Config, step: Step) -> dict[str, float]:
    """Evaluate a checkpoint of a run and return the metrics. Errors: as `at_checkpoint`."""
    team, checkpoint = at_checkpoint(folder, config, step)
    return evaluate_weights(team, {key: checkpoint.path / str(key) for key in team.learners})
