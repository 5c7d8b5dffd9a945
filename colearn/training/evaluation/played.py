"""Selects evaluation items and computes mean metrics, for the trainer and for `colearn play`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from colearn.config import EvaluationSettings
from colearn.contract import Credit, DecPOMDP, Paid
from colearn.contract.checked_task import CheckedTask
from colearn.contract.scored import as_number, as_reward, mean_scored
from colearn.contract.types import Tree
from colearn.errors import TaskError
from colearn.methods.credit.payoff import Payoff
from colearn.methods.credit.shared_reward import SharedReward
from colearn.runs.record.metric_names import EVALUATION, agent_name
from colearn.training.collapse_metrics import cut_answers

_FAILED = "failed"
"""Name of the metric with which a task that runs programs reports a failed program."""


def evaluation_items(
    task: DecPOMDP[Any, Any], settings: EvaluationSettings
) -> tuple[list[Any], int]:
    """Returns the items of all episodes, in episode order, and the size of the split.

    Errors: TaskError if the task breaks its contract.
    """
    split = CheckedTask(task).items(settings.split)
    played = settings.episodes or len(split)
    items = [split[number % len(split)] for number in range(played)] * settings.repeats
    return items, len(split)


def mean_returns(trees: Sequence[Tree[Any]], pays: frozenset[Paid]) -> dict[str, float]:
    """Computes `return`: the team's undiscounted reward, or the agents' mean payoff if the task
    does not pay the team. `return` does not depend on the algorithm's credit. If the task pays
    single agents, `return/AGENT` is the payoff of that agent. Values are means over the scored
    episodes, and are absent if no episode is scored. `unscored` is the number of episodes that are
    not scored."""
    credit = SharedReward() if "team" in pays else Payoff()
    returns = [_returns(tree, credit) for tree in trees]
    unscored = sum(any(map(isnan, by_agent.values())) for by_agent in returns)
    means = _mean_of_agents(returns, "return")
    if "local" in pays:
        payoffs = _means_by_agent([_returns(tree, Payoff()) for tree in trees])
        means |= {agent_name("return", agent): mean for agent, mean in payoffs.items()}
    return means | {"unscored": float(unscored)} if unscored else means


def mean_objective(trees: Sequence[Tree[Any]], credit: Credit) -> dict[str, float]:
    """Computes `objective`, the quantity that the algorithm maximises, which is the undiscounted
    credited return, averaged over agents and episodes. Adds `objective/AGENT` if agents are
    credited differently."""
    return _mean_of_agents([_returns(tree, credit) for tree in trees], "objective")


def _mean_of_agents(returns: Sequence[Mapping[str, float]], name: str) -> dict[str, float]:
    """Returns the mean over agents as `name`; if agents differ, also returns the value of each
    agent as `name/AGENT`."""
    means = _means_by_agent(returns)
    if not means:
        return {}
    if len(set(means.values())) == 1:
        return {name: next(iter(means.values()))}
    by_name = {agent_name(name, agent): mean for agent, mean in means.items()}
    return {name: float(np.mean(list(means.values())))} | by_name


def _means_by_agent(returns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Computes the mean return of each agent over the episodes in which the agent's return is
    scored."""
    by_agent: dict[str, list[float]] = {agent: [] for agent in returns[0]}
    for episode in returns:
        for agent, reached in episode.items():
            if not isnan(reached):
                by_agent[agent].append(reached)
    return {agent: float(np.mean(scored)) for agent, scored in by_agent.items() if scored}


def lost_episodes(trees: Sequence[Tree[Any]], task: DecPOMDP[Any, Any]) -> dict[str, float]:
    """Returns two metrics of a task that runs programs: `failed`, if the task measures this metric,
    and `unasked`, the fraction of episodes in which no agent acted. Mean returns do not reveal
    these failures. Returns no metrics for other tasks."""
    if not task.program:
        return {}
    ends = [node.metrics for tree in trees for node in tree.nodes if node.metrics]
    lost = {"unasked": float(np.mean([len(tree.nodes) == 1 for tree in trees]))}
    if all(_FAILED in end for end in ends):
        lost[_FAILED] = mean_scored(as_number(end[_FAILED]) for end in ends)
    return lost


def _returns(tree: Tree[Any], credit: Credit) -> dict[str, float]:
    """Each agent's undiscounted credited return; NaN if the return is not scored. Missing turns of
    a truncated episode add nothing."""
    tree = replace(tree, missing_turn_reward=0.0)
    episode = tree.credited(credit(tree))
    return {agent: episode.returns_of(agent)[0] for agent in tree.agents}


def mean_outcomes(
    trees: Sequence[Tree[Any]], pays: frozenset[Paid], credit: Credit
) -> dict[str, float]:
    """Computes means over episodes: `return`, `objective`, the task's metrics of the final state,
    `cut_answers` and `overflow`. A metric that no episode measured is left out.

    Errors: TaskError if the names of the task's metrics change, or if one is a name of this
    library's metrics, of which one value would be lost.
    """
    ends = [tree.nodes[-1] for tree in trees]
    metrics = mean_returns(trees, pays) | mean_objective(trees, credit)
    names = ends[0].metrics.keys()
    for name in names:
        if name.partition("/")[0] in EVALUATION:
            raise TaskError(
                f"task.metrics: '{name}' is a metric of every evaluation; give the task's own "
                "another name"
            )
    for end in ends:
        if end.metrics.keys() != names:
            raise TaskError(
                f"task.metrics: names change from {sorted(names)} to {sorted(end.metrics)}; give "
                "the same ones for each state"
            )
    for key in names:
        mean = as_reward(mean_scored(as_number(end.metrics[key]) for end in ends))
        if mean is not None:
            metrics[key] = mean
    metrics["cut_answers"] = cut_answers(trees) or 0.0
    metrics["overflow"] = mean_overflow(trees)
    return metrics


def mean_overflow(trees: Sequence[Tree[Any]]) -> float:
    """Fraction of episodes in which at least one branch ended because an agent's history no longer
    fitted the agent's model."""
    return float(np.mean([any(node.overlong for node in tree.nodes) for tree in trees]))


def mean_turns(trees: Sequence[Tree[Any]]) -> float:
    """Mean number of turns of an episode."""
    return float(np.mean([tree.nodes[-1].turn for tree in trees]))
