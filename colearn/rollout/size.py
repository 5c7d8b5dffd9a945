"""Bound on the size of one tree, so that a deep full tree is an error and not an endless run."""

from __future__ import annotations

from colearn.errors import ConfigError

MOST_ACTIONS = 2**16
"""The maximum number of sampled actions of one tree, and also of its joint actions. A full tree of
K=4 over six turns with two agents has 10,920 sampled actions."""


def check_size(actions: int, shape: object, turn: int) -> None:
    """Errors: ConfigError if a tree has more than `MOST_ACTIONS` by a turn, counted from 0."""
    if actions > MOST_ACTIONS:
        raise ConfigError(
            f"algorithm.rollout.k: one tree of {type(shape).__name__} has more than "
            f"{MOST_ACTIONS:,} actions by turn {turn + 1}; lower it, or the task's horizon"
        )
