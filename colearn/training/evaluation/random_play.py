"""Returns of random legal play and of untrained models: what a team earns without skill."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Any

from colearn.config import Config
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask
from colearn.contract.scored import mean_scored
from colearn.errors import ConfigError
from colearn.models.load import resolve_device
from colearn.rollout.agents.programs import Legal, Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.training.load_team import load_team
from colearn.training.processes import Processes

from .evaluate import evaluate_run
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


def random_play_lines(task: DecPOMDP[Any, Any]) -> list[str]:
    """A line with the mean and the range of `random_returns`, and one more if an invalid reply,
    which costs the task's `invalid_penalty` and ends the episode, is better than random play."""
    returns = random_returns(task)
    if returns is None:
        return ["random play: not measured, because the task has no legal_action"]
    lines = [_line("random play", returns, "random legal actions")]
    penalty = getattr(task, "invalid_penalty", None)
    if penalty is not None and returns and -penalty > (mean := mean_scored(returns)):
        lines.append(
            f"an invalid reply ends the episode with {-penalty:.4g}, more than random play earns "
            f"({mean:.3f}): raise task.invalid_penalty"
        )
    return lines


def untrained_play_line(config: Config) -> str:
    """One line with the mean and the range of the returns of a config's models as they are, in
    `evaluation.episodes` episodes. Errors: as for `load_team` and `evaluate_team`."""
    with closing(load_team(config)) as team, closing(team.run.task):
        trees = evaluate_run(team, None, Processes(resolve_device(config.run.device))).trees
        returns = [mean_returns([tree], team.run.task.pays).get("return") for tree in trees]
    names = ", ".join(dict.fromkeys(model.path for model in config.models.values()))
    return _line("untrained play", [r for r in returns if r is not None], f"the model '{names}'")


def _line(what: str, returns: Sequence[float], players: str) -> str:
    if not returns:
        return f"{what}: no episode is scored"
    return (
        f"{what}: return {mean_scored(returns):.3f} on average, {min(returns):.3f} to "
        f"{max(returns):.3f}, in {len(returns)} episodes of {players}"
    )
