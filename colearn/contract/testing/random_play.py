"""Returns of random legal play: what a team earns without skill."""

from __future__ import annotations

from math import isnan
from typing import Any

from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.scored import as_number, mean_scored
from colearn.contract.seeding import derive_rng

EPISODES = 20
_TURNS = 2000
"""Number of turns after which no further episode begins."""


def random_returns(task: DecPOMDP[Any, Any]) -> list[float] | None:
    """Play up to `EPISODES` episodes with random legal actions, on the first items of the training
    split. Returns the undiscounted return of each scored episode: the team's, or the agents' mean
    payoff if the task pays single agents only. None if an agent has no legal action to choose."""
    items, returns, turns = CheckedTask(task).items("train"), [], 0
    for episode in range(EPISODES):
        item = items[episode % len(items)]
        rng, checked = derive_rng("random play", episode), CheckedTask(task, item_name(item))
        state, earned = checked.reset(item, rng), 0.0
        for _ in range(task.horizon):
            actions = {
                agent: checked.legal_action(state, agent, rng) for agent in checked.observe(state)
            }
            legal = {agent: action for agent, action in actions.items() if action is not None}
            if len(legal) < len(actions):
                return None
            outcome = checked.step(state, legal, rng)
            state, turns = outcome.state, turns + 1
            if "team" in task.pays:
                earned += as_number(outcome.reward)
            else:
                paid = [*outcome.local_rewards.items()]
                paid += [(agent, reward) for (_, agent), reward in outcome.earned.items()]
                earned += sum(as_number(reward) for _, reward in paid) / len(task.agents)
            if outcome.last:
                break
        returns.append(earned)
        if turns >= _TURNS:
            break
    return [number for number in returns if not isnan(number)]


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
