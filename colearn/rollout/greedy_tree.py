"""Greedy tree: samples K candidates per turn and continues from the best (AT-GRPO, Alg. 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan

from colearn.contract import Child, FrontierNode, Round
from colearn.contract.seeding import derive_rng

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

    def samples(self, at: FrontierNode) -> Mapping[str, int]:
        return at.candidates(self.k)

    def joint_actions(
        self, at: FrontierNode, counts: Mapping[str, int]
    ) -> Sequence[Mapping[str, int]]:
        """Return the joint actions that combine each candidate of the first agent with the first
        sample of every other agent."""
        return _candidates_of(_compared(counts)[0], dict.fromkeys(counts, 0), counts)

    def next_round(
        self, at: FrontierNode, counts: Mapping[str, int], tried: Sequence[Child]
    ) -> Round | None:
        agents = _compared(counts)
        if not tried:
            return Round(self.joint_actions(at, counts), agents[0])
        following = agents[agents.index(_last_agent(tried)) + 1 :]
        if not following:
            return None
        executed = tried[_best_of_last(at, tried)].chosen
        return Round(_candidates_of(following[0], executed, counts), following[0])

    def continues(self, at: FrontierNode, children: Sequence[Child]) -> Sequence[int]:
        return [_best_of_last(at, children)]


def _compared(counts: Mapping[str, int]) -> list[str]:
    """Return the agents whose candidates are scored. If only programs act, only the first program
    is returned."""
    return [agent for agent, count in counts.items() if count > 1] or list(counts)[:1]


def _candidates_of(
    agent: str, others: Mapping[str, int], counts: Mapping[str, int]
) -> list[dict[str, int]]:
    return [{**others, agent: candidate} for candidate in range(counts[agent])]


def _last_agent(tried: Sequence[Child]) -> str:
    agent = tried[-1].candidate_of
    assert agent is not None, "every round of a greedy tree scores one agent"
    return agent


def _best_of_last(at: FrontierNode, tried: Sequence[Child]) -> int:
    """Return the index of the best candidate of the agent that was scored last."""
    agent = _last_agent(tried)
    worth = {
        number: child.rewards[agent] if not isnan(child.rewards[agent]) else -inf
        for number, child in enumerate(tried)
        if child.candidate_of == agent
    }
    best = [number for number, reward in worth.items() if reward == max(worth.values())]
    return best[int(derive_rng(*at.keys, agent).integers(len(best)))]
