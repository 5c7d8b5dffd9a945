"""Advantages in heterogeneous groups (MHGPO). A group contains actions of one agent that answer
different prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Annotated, Any, Literal

from pydantic import Field

from colearn.contract import Advantage, AgentValues, AnswerGroup, Episodes, NodeAdvantages
from colearn.contract.bounds import Clip
from colearn.contract.scored import mean_scored
from colearn.contract.seeding import derive_rng
from colearn.contract.types import Node, Tree

from .finish import EPSILON, clipped, deviation

Group = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class InputOutputPair:
    """One action, called an input-output pair in MHGPO."""

    episode: int
    """Index among the episodes of the call."""
    node: int
    """The first node that the action leads to."""
    agent: str
    occasion: int
    """Number of actions that the same agent took before this action."""
    worth: float
    forked: bool
    """Whether the action has siblings: other answers of the agent to the same prompt."""


@dataclass(frozen=True, kw_only=True)
class Heterogeneous(Advantage):
    """A = (R - mean) / std over a group (MHGPO, Eq. 5). A group contains the k-th actions of one
    agent in all branches of a tree. After a fork these actions have different prompts, so the group
    is heterogeneous.

    An action before the fork is alone in its group. Depending on `ungrouped`, an action that is
    alone has no advantage, or is compared with actions of other trees in the batch. With `Backward`
    credit and discount 0, R is an action's full credit.

    Wrong when the branches' prompts differ widely: the advantage then depends more on the prompt,
    which the agent did not choose, than on the action.
    """

    keep: Literal["all", "forked"] = "all"
    """Groups that are trained. "forked" selects only groups whose actions answer the same prompt,
    as in Algorithm 4."""
    ungrouped: Literal["drop", "shuffle", "same_fork"] = "drop"
    """Treatment of single-action groups. "shuffle": regroup single actions at random, across
    agents, into groups of `size`, and drop the remaining actions (Algorithm 5). "same_fork": form
    one group for each agent from the trees that fork at the same agent (the version in the paper's
    text)."""
    size: Annotated[int, Field(ge=2, description="4 is the paper's")] = 4
    """G, the size of shuffled groups."""
    equal_roles: bool = True
    """Whether to use the weights of Eq. 6. Each of the n roles of a question then has weight 1/n,
    divided equally among the role's G_k actions. False: all actions have equal weight."""
    normalize_std: bool = True
    """Whether to divide by the group's population standard deviation + 1e-6."""
    clip: Clip | None = None
    """Bound: each advantage is clipped to [-clip, clip]."""

    minimum_group = 2

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        advantages: list[tuple[dict[str, float], ...]] = [
            tuple({} for _ in episode.nodes) for episode in episodes
        ]
        for group in self.groups(episodes):
            worths = [pair.worth for pair in group]
            mean = sum(worths) / len(worths)
            scale = deviation(worths) + EPSILON if self.normalize_std else 1.0
            for pair in group:
                advantages[pair.episode][pair.node][pair.agent] = (pair.worth - mean) / scale
        return clipped(advantages, self.clip)

    def weight_group(self, episode: Tree[Any], agent: str) -> Hashable | None:
        return (episode.episode, agent) if self.equal_roles else None

    def groups(self, episodes: Episodes) -> list[list[InputOutputPair]]:
        """Return the groups of actions that are compared with each other; every group has at least
        two actions."""
        together = self._within_trees(episodes)
        groups = [group for group in together if len(group) > 1]
        alone = [group[0] for group in together if len(group) == 1]
        if self.ungrouped == "shuffle":
            groups += self._shuffled(alone, episodes)
        elif self.ungrouped == "same_fork":
            groups += _by_fork(alone, episodes)
        return groups

    def answer_groups(self, episodes: Episodes) -> list[AnswerGroup]:
        """Return the groups within single trees (MHGPO, Figures 7 and 9), without the groups that
        combine actions of several trees."""
        groups = []
        for group in self._within_trees(episodes):
            if len(group) < 2:
                continue
            agent, nodes = group[0].agent, episodes[group[0].episode].nodes
            edges = [(nodes[nodes[pair.node].parent or 0], nodes[pair.node]) for pair in group]
            groups.append(
                AnswerGroup(
                    agent,
                    tuple(before.observations[agent].whole for before, _ in edges),
                    tuple(after.actions[agent].text for _, after in edges),
                )
            )
        return groups

    def _within_trees(self, episodes: Episodes) -> list[list[InputOutputPair]]:
        """Group scored actions by tree, agent and occasion; some groups have only one action."""
        together: dict[Group, list[InputOutputPair]] = {}
        for number, episode in enumerate(episodes):
            for pair in _pairs(number, episode):
                if (self.keep == "all" or pair.forked) and not isnan(pair.worth):
                    together.setdefault((number, pair.agent, pair.occasion), []).append(pair)
        return list(together.values())

    def _shuffled(
        self, alone: Sequence[InputOutputPair], episodes: Episodes
    ) -> Iterator[list[InputOutputPair]]:
        # the seed depends only on the episodes, so a repeated run shuffles alike
        keys = (pair.episode for pair in episodes)
        order = derive_rng("regroup", *keys).permutation(len(alone))
        for number in range(len(alone) // self.size):
            yield [alone[k] for k in order[number * self.size : (number + 1) * self.size]]


def _pairs(number: int, episode: Tree[Any]) -> Iterator[InputOutputPair]:
    """Yield every action once. Sibling nodes can share an agent's action and differ only in another
    agent's action. A shared action is yielded for the first sibling node, with the mean credit of
    all siblings that share the action."""
    worths = {agent: episode.returns_of(agent) for agent in episode.agents}
    acted = [Counter[str]() for _ in episode.nodes]
    for node, below in zip(episode.nodes, episode.below(), strict=True):
        children = [episode.nodes[index] for index in below]
        for child in children:
            acted[child.index] = acted[node.index] + Counter(list(child.actions))
        for agent in node.observations if children else ():
            different = _different(children, agent)
            for group in different:
                yield InputOutputPair(
                    episode=number,
                    node=group[0].index,
                    agent=agent,
                    occasion=acted[node.index][agent],
                    worth=mean_scored(worths[agent][child.index] for child in group),
                    forked=len(different) > 1,
                )


def _different(children: Sequence[Node[Any]], agent: str) -> list[list[Node[Any]]]:
    """Group child nodes by the agent's action object."""
    by_action: dict[int, list[Node[Any]]] = {}
    for child in children:
        by_action.setdefault(id(child.actions[agent]), []).append(child)
    return list(by_action.values())


def _by_fork(alone: Sequence[InputOutputPair], episodes: Episodes) -> list[list[InputOutputPair]]:
    forks = [
        next((pair.agent for pair in _pairs(number, episode) if pair.forked), None)
        for number, episode in enumerate(episodes)
    ]
    together: dict[Group, list[InputOutputPair]] = {}
    for pair in alone:
        key = (forks[pair.episode], pair.agent, pair.occasion)
        together.setdefault(key, []).append(pair)
    return [group for group in together.values() if len(group) > 1]
