"""Backward credit (MHGPO): the final reward propagated through the executed graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, Literal

from colearn.contract.reward_credit import Credit, Rewarded, earned, local_part, weighed
from colearn.contract.scored import as_number
from colearn.contract.types import Rewards, Tree

_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda numbers: sum(numbers) / len(numbers),
    "max": max,
    "min": min,
    "sum": sum,
}


@dataclass(frozen=True, kw_only=True)
class Backward(Credit):
    """R_k = r + Aggr_j R_j + the local reward of action k, where j runs over the direct successors
    of action k (MHGPO, Eq. 4). r is the team reward of the step that executes action k. In the
    paper, only the last step of an episode has a team reward. In this implementation, earlier team
    rewards are added during the backward pass. A successor is any action, in any branch, whose
    prompt contains the text of action k (`Observation.made_from`). If the task does not set
    `made_from`, successors are the actions of the next turn.

    Each credit already includes later rewards, so set the discount to 0. In a truncated episode,
    actions without successors have the rewards of the missing turns instead. Wrong when prompts do
    not set `made_from` and several agents act in one turn.
    """

    aggregate: Literal["mean", "max", "min", "sum"] = "mean"
    """Aggr: the function that combines the credits of several successors."""

    reads = frozenset({"team", "local"})
    at_once = False

    def step(self, paid: Rewarded, agents: Sequence[str]) -> Mapping[str, float]:
        team = (1.0, paid.reward)
        return {agent: weighed([team, *local_part(paid, agent)]) for agent in agents}

    def __call__(self, tree: Tree[Any]) -> Rewards:
        followers = _followers(tree)
        missing = _missing(tree, followers)
        shared: dict[tuple[int, str], float] = {}
        for node in reversed(tree.nodes):
            for agent in node.actions:
                after = [shared[follower] for follower in followers.get((node.index, agent), ())]
                if not after:
                    after = missing.get((node.index, agent), [])
                shared[node.index, agent] = as_number(node.reward) + self._aggregated(after)
        credited: list[dict[str, float]] = [{} for _ in tree.nodes]
        for (index, agent), worth in shared.items():
            local = local_part(tree.nodes[index], agent)
            credited[index][agent] = weighed([(1.0, worth), *local])
        for index, agent, reward in earned(tree):
            if not isnan(reward):
                credited[index][agent] += reward
        return tuple(credited)

    def _aggregated(self, credits: Sequence[float]) -> float:
        """Apply Aggr to the scored credits. Returns NaN if there are credits but no credit is
        scored."""
        scored = [credit for credit in credits if not isnan(credit)]
        if credits and not scored:
            return nan
        return _AGGREGATES[self.aggregate](scored) if scored else 0.0


def _missing(
    tree: Tree[Any], followers: Mapping[tuple[int, str], Sequence[tuple[int, str]]]
) -> dict[tuple[int, str], list[float]]:
    """The rewards of missing turns, by action. Every action without successors in a truncated
    branch might have had one there."""
    missing: dict[tuple[int, str], list[float]] = {}
    for index, tail in tree.tails(1.0).items():
        for node in tree.ancestry(index):
            for agent in node.actions:
                if (node.index, agent) not in followers:
                    missing.setdefault((node.index, agent), []).append(tail)
    return missing


def _followers(tree: Tree[Any]) -> dict[tuple[int, str], list[tuple[int, str]]]:
    """Map each action to the actions whose prompts contain its text. An action is identified by its
    agent and the node that it led to."""
    followers: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for node in tree.nodes:
        if node.parent is None:
            continue
        chain = tree.ancestry(node.parent)
        for agent in node.actions:
            sources = chain[-1].observations[agent].made_from
            if sources is None:
                sources = tuple((len(chain) - 2, before) for before in chain[-1].actions)
            for turn, before in sources:
                source = (chain[turn + 1].index, before)
                followers.setdefault(source, []).append((node.index, agent))
    return followers
