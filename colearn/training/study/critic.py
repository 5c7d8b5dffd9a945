"""Measures a critic on fresh episodes of a finished run's team."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from colearn.config import resolve
from colearn.contract import NetworkKey, Rollout
from colearn.contract.checked_task import item_name
from colearn.contract.types import Tree
from colearn.errors import ConfigError
from colearn.methods.values.ceiling import ceilings
from colearn.methods.values.critic_folder import keep_critic
from colearn.methods.values.given import with_given_critic
from colearn.methods.values.item_means import ItemMeans
from colearn.methods.values.loaded import LoadedCritic, load_critic
from colearn.rollout.shapes import KaryTree, Parallel
from colearn.runs.record import open_run, read_run
from colearn.runs.record.checkpoints import Step
from colearn.runs.record.fields import CriticLine
from colearn.runs.report.critic_worth import TurnSummary, gradient_noise, judged, turn_summaries
from colearn.training.update.critic_line import critic_line

from .held_out import held_out_episodes

MOST = 512
"""Maximum number of joint actions in one tree. If a tree with branches at every turn would exceed
this number, the tree branches only at the first turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticStudy:
    """Measurements of a critic on fresh episodes."""

    name: str
    """Name of the value model."""
    turns: tuple[TurnSummary, ...]
    line: CriticLine
    """The sums from which `turns`, the measurements by turn, are computed."""
    joint_actions: int
    """Number of joint actions played for the study."""
    sentence: str


def study_critic(
    run: str | Path,
    *,
    critic: str | Path | None = None,
    step: Step = "last",
    repeats: int = 4,
    branches: int = 3,
) -> list[CriticStudy]:
    """Play the held-out items of a run's evaluation with the team of a checkpoint, and evaluate the
    run's critics against the returns. Each item is played `repeats` times, with `branches` joint
    actions per joint history.

    critic: the folder of a saved critic to evaluate instead of the run's critics. Errors:
    ConfigError for a run without a separate critic; CheckpointError.
    """
    if repeats < 2 or branches < 2:
        raise ConfigError("--repeats, --branches: must be 2 or more, for returns to compare")
    folder = open_run(run)
    checkpoint = folder.checkpoints.choose(step)
    config = with_given_critic(folder.config())
    resolved = resolve(config, agents=folder.record().agents)
    with tempfile.TemporaryDirectory() as scratch:
        critics = [load_critic(critic)] if critic is not None else []
        for key in () if critics else _own(resolved, folder.path):
            critic_folder = Path(scratch) / str(key)
            critic_folder.mkdir()
            keep_critic(resolved, key, checkpoint, critic_folder, joint_actions=0)
            critics.append(load_critic(critic_folder, device="cpu"))
    evaluation = config.evaluation.model_copy(update={"repeats": repeats})
    played = config.model_copy(update={"evaluation": evaluation})
    forks = not resolved.task.program
    shape = _shape(resolved.task.horizon, branches, forks=forks)
    episodes = held_out_episodes(played, checkpoint.path, shape=shape)
    noise = gradient_noise([read_run(folder)])
    return [_studied(loaded, episodes, noise) for loaded in critics]


def _own(run: Any, folder: Path) -> Sequence[NetworkKey]:
    """Returns the keys of the run's critics. Errors: ConfigError for a run without a separate
    critic."""
    keys = [key for key in run.learners if key.kind == "critic"]
    if not keys:
        raise ConfigError(
            f"{folder}: has no critic of its own; give one with --critic, such as that of: "
            "colearn critic fit"
        )
    return keys


def _shape(horizon: int, branches: int, *, forks: bool) -> Rollout:
    joint_actions = sum(branches**turn for turn in range(1, horizon + 1))
    if forks and joint_actions <= MOST:
        return KaryTree(k=branches)
    return Parallel(k=branches)


def _studied(
    critic: LoadedCritic, episodes: Sequence[Tree[Any]], noise: float | None
) -> CriticStudy:
    values = dict(enumerate(critic.values(episodes)))
    item_means = ItemMeans().offsets(critic.critic, episodes)
    line = critic_line(critic.critic, 0, values, episodes, item_means)
    known = {
        ceiling.turn: ceiling
        for ceiling in ceilings(episodes, [item_name(tree.item) for tree in episodes])
    }
    turns = tuple(
        replace(
            turn,
            ceiling=None
            if (ceiling := known.get(turn.turn)) is None
            else (ceiling.explainable, ceiling.low, ceiling.high),
        )
        for turn in turn_summaries([[line]])
    )
    name = critic.manifest.value_model
    return CriticStudy(
        name=name,
        turns=turns,
        line=line,
        joint_actions=sum(len(tree.nodes) - 1 for tree in episodes),
        sentence=judged(name, turns, noise),
    )
