"""Greedy tree: samples K candidates per turn and continues from the best (AT-GRPO, Alg. 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

import numpy as np

from colearn.contract import Round
from colearn.contract.types import Node

from .shapes import Group


@dataclass(frozen=True)
class GreedyTree(Group):
    """Every acting agent samples K candidates from its prompt. The episode continues from the
    candidate with the highest credited reward, and ties are broken at random. A candidate without a
    score is selected only if no candidate has a score.

    Agents that act simultaneously sample in parallel, and their candidates are scored in the
    agents' order (Alg. 1, lines 9 to 14). Each candidate of agent i is executed together with the
    selected action of each earlier agent and the first sample of each later agent. Rewards in an
    agent's group therefore differ only because of that agent's candidates. The episode continues
    from the last agent's best joint action.

    An episode of N agents over T turns costs N T K generations and N T K environment steps, whether
    agents act simultaneously or sequentially. A full tree needs K^(N T) generations. A program
    among the agents acts once per turn.

    Wrong when an action's immediate reward predicts later turns poorly: selection is greedy, so
    training visits histories that a better team than the evaluated one would reach.
    """

    def samples(self, at: Node[Any]) -> Mapping[str, int]:
        return at.candidates(self.k)

    def joint_actions(
        self, at: Node[Any], counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        """Return the joint actions that combine each candidate of the first agent with the first
        sample of every other agent."""
        return _candidates_of(_compared(counts)[0], dict.fromkeys(counts, 0), counts)

    def next_round(
        self,
        at: Node[Any],
        counts: Mapping[str, int],
        tried: Sequence[Round],
        rng: np.random.Generator,
    ) -> Round | None:
        agents = _compared(counts)
        if not tried:
            return Round(self.joint_actions(at, counts), agents[0])
        if len(tried) == len(agents):
            return None
        agent, executed = agents[len(tried)], tried[-1].joint_actions[_best(tried[-1], rng)]
        return Round(_candidates_of(agent, executed, counts), agent)

    def continues(
        self, at: Node[Any], tried: Sequence[Round], rng: np.random.Generator
    ) -> Sequence[int]:
        *earlier, last = tried
        return [
            sum(len(earlier_round.joint_actions) for earlier_round in earlier) + _best(last, rng)
        ]


def _compared(counts: Mapping[str, int]) -> list[str]:
    """Return the agents whose candidates are scored. If only programs act, only the first program
    is returned."""
    return [agent for agent, count in counts.items() if count > 1] or list(counts)[:1]


def _candidates_of(
    agent: str, others: Mapping[str, int], counts: Mapping[str, int]
) -> list[dict[str, int]]:
    return [{**others, agent: candidate} for candidate in range(counts[agent])]


def _best(scored: Round, rng: np.random.Generator) -> int:
    """Return the index of the best candidate of the agent that a round scores."""
    assert scored.candidate_of is not None, "every round of a greedy tree scores one agent"
    rewards = [credit[scored.candidate_of] for credit in scored.credits]
    worth = [-inf if isnan(reward) else reward for reward in rewards]
    best = [number for number, reward in enumerate(worth) if reward == max(worth)]
    return best[int(rng.integers(len(best)))]
