"""Plays held-out episodes with a finished run's team."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from colearn.config import Config
from colearn.contract.seeding import derive_seed
from colearn.contract.types import Tree
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.training.evaluation.played import evaluation_items
from colearn.training.load_team import load_team


def held_out_episodes(config: Config, checkpoint: Path) -> list[Tree[Any]]:
    """Returns episodes of a checkpoint's team on the held-out items of the config's evaluation,
    with rewards credited by the config's algorithm. An episode does not branch.

    Errors: CheckpointError for a checkpoint from another run; ConfigError.
    """
    team = load_team(config)
    run = team.run
    with closing(run.task), closing(team):
        team.load(checkpoint)
        team.publish()
        items, _ = evaluation_items(run.task, run.config.evaluation)
        trees, _ = grow(
            run.task,
            items,
            team.players,
            Chain(),
            seed=derive_seed(run.config.run.seed, "held out"),
            credit=run.parts.credit,
            cast=run.cast,
            at_once=run.config.evaluation.at_once,
        )
        return run.parts.credited(trees)
