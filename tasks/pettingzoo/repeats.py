"""Check whether an environment is a function of its seed and actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from colearn.contract.seeding import derive_rng
from colearn.errors import TaskError

from .replay import EnvironmentSource, Situation, advance, begin, differing, make

STEPS = 256
"""Maximum number of steps of the check, in all episodes."""
EPISODES = 16
LONGEST = 64


def check_repeats(source: EnvironmentSource, horizon: int) -> None:
    """Plays short episodes with random legal actions in two environments at once, which receive the
    same seeds and actions.

    The environments take turns, so that draws from generators that they share are found, too.

    Errors: TaskError if the environments differ.
    """
    first, second = make(source), make(source)
    steps = episode = 0
    while steps < STEPS and episode < EPISODES:
        if episode == 1:  # a generator that `reset` does not seed goes on in the first one
            second.close()
            second = make(source)
        rng = derive_rng("repeats", episode)
        seed = int(rng.integers(2**31))
        current = _same(source, begin(source, first, seed), begin(source, second, seed))
        for _ in range(min(horizon, LONGEST, STEPS - steps)):
            if not current.acting:
                break
            joint = tuple((agent, _drawn(rng, current.legal[agent])) for agent in current.acting)
            results = (advance(source, env, joint) for env in (first, second))
            current = _same(source, *results)
            steps += 1
        episode += 1
    for env in (first, second):
        env.close()


def _same(source: EnvironmentSource, one: Situation, other: Situation) -> Situation:
    difference = differing(one, other)
    if difference is None:
        return one
    raise TaskError(
        f"task.env: '{source.env}' gives {difference} in a second play with the same seed and "
        "actions; let all randomness follow from the `seed` of reset, in a generator of the "
        "environment's own"
    )


def _drawn(rng: np.random.Generator, legal: tuple[int, ...]) -> Any:
    return legal[int(rng.integers(len(legal)))]
