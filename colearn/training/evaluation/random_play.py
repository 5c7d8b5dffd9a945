"""Returns of random legal play: what a team earns without skill."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask
from colearn.contract.scored import mean_scored
from colearn.errors import ConfigError
from colearn.rollout.agents.programs import Legal, Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain

from .played import mean_returns

EPISODES = 20
_TURNS = 2000
"""Number of turns after which no further episode begins."""


def random_returns(task: DecPOMDP[Any, Any]) -> list[float] | None:
    """Play up to `EPISODES` episodes with random legal actions, on the first items of the training
    split. Returns the undiscounted return (`mean_returns`) of each scored episode; None if an agent
    has no legal action to choose."""
    items, returns, turns = CheckedTask(task).items("train"), list[float](), 0
    with ExitStack() as stack:
        players = {a: stack.enter_context(closing(Program(Legal()))) for a in task.agents}
        for episode in range(EPISODES):
            item = items[episode % len(items)]
            try:
                (tree,), _ = grow(task, [item], players, Chain(), seed=0, first_episode=episode)
            except ConfigError:  # of `Legal`, the only player
                return None
            if "return" in (means := mean_returns([tree], task.pays)):
                returns.append(means["return"])
            turns += len(tree.nodes) - 1
            if turns >= _TURNS:
                break
    return returns


def random_play_line(task: DecPOMDP[Any, Any]) -> str:
    """One line with the mean and the range of `random_returns`."""
    returns = random_returns(task)
    if returns is None:
        return "random play: not measured, because the task has no legal_action"
    if not returns:
        return "random play: no episode is scored"
    return (
        f"random play: return {mean_scored(returns):.3f} on average, {min(returns):.3f} to "
        f"{max(returns):.3f}, in {len(returns)} episodes of random legal actions"
    )
