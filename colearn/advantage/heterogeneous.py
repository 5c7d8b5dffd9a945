"""Heterogeneous groups (MHGPO): actions of one agent, grouped across different prompts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from colearn.bounds import Clip
from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages
from colearn.seeding import derive_rng
from colearn.types import Credited, Node

from .finish import EPSILON, clipped, deviation

Group = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """One action: an input-output pair of MHGPO."""

    episode: int
    """Place in the call."""
    node: int
    """The first node that it led to."""
    agent: str
    occasion: int
    """How often the agent had acted before."""
    worth: float
    forked: bool
    """It has siblings: other answers of the agent to the same prompt."""


@dataclass(frozen=True, kw_only=True)
class Heterogeneous(Advantage):
    """A = (R - mean) / std over a group (MHGPO, Eq. 5): all actions of one agent, at the same of
    its occasions, in one tree. After a fork their prompts differ, so the group is heterogeneous.

    Actions that are alone in their group (those before a fork) have no advantage, or are compared
    over the batch (`ungrouped`). With `Backward` credit and discount 0, R is an action's
    whole worth.
    Wrong when the branches' prompts differ much: the baseline then tells good prompts from bad
    ones, which this agent did not choose.
    """

    keep: Literal["all", "forked"] = "all"
    """"forked": only groups that answer one prompt, as in Algorithm 4; the rest is left out."""
    ungrouped: Literal["drop", "shuffle", "same_fork"] = "drop"
    """What comes of actions alone in their group. "shuffle": dealt at random into groups of
    `size`, whoever acted; those left over are dropped (Algorithm 5). "same_fork": one group for
    each agent among the trees that fork at the same agent (the text's version)."""
    size: Annotated[int, Field(ge=2, description="4 is the paper's")] = 4
    """G, of shuffled groups."""
    equal_roles: bool = True
    """Weigh as Eq. 6: the roles of a question alike (1/n), however many actions a role has (1/G_k).
    False: every action alike."""
    normalize_std: bool = True
    """Divide by the group's population deviation + 1e-6."""
    clip: Clip | None = None
    """Keep each advantage within [-clip, clip]."""

    minimum_group = 2

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        found: list[tuple[dict[str, float], ...]] = [
            tuple({} for _ in episode.tree.nodes) for episode in episodes
        ]
        for group in self.groups(episodes):
            worths = [pair.worth for pair in group]
            mean = sum(worths) / len(worths)
            scale = deviation(worths) + EPSILON if self.normalize_std else 1.0
            for pair in group:
                found[pair.episode][pair.node][pair.agent] = (pair.worth - mean) / scale
        return clipped(found, self.clip)

    def weight_group(self, episode: Credited[Any], agent: str) -> Hashable | None:
        return (episode.tree.episode, agent) if self.equal_roles else None

    def groups(self, episodes: Episodes) -> list[list[Pair]]:
        """Which actions are compared with which; every group has two or more."""
        together: dict[Group, list[Pair]] = {}
        for number, episode in enumerate(episodes):
            for pair in _pairs(number, episode):
                if self.keep == "forked" and not pair.forked:
                    continue
                together.setdefault((number, pair.agent, pair.occasion), []).append(pair)
        groups = [group for group in together.values() if len(group) > 1]
        alone = [group[0] for group in together.values() if len(group) == 1]
        if self.ungrouped == "shuffle":
            groups += self._shuffled(alone, episodes)
        elif self.ungrouped == "same_fork":
            groups += _by_fork(alone, episodes)
        return groups

    def _shuffled(self, alone: Sequence[Pair], episodes: Episodes) -> Iterator[list[Pair]]:
        # the shuffle is a function of what is compared, so a run repeats
        keys = (one.tree.episode for one in episodes)
        order = derive_rng("regroup", *keys).permutation(len(alone))
        for number in range(len(alone) // self.size):
            yield [alone[k] for k in order[number * self.size : (number + 1) * self.size]]


def _pairs(number: int, episode: Credited[Any]) -> Iterator[Pair]:
    """Every action once: where siblings share one (they differ in another agent's), the mean of
    its worths stands at the first of them."""
    tree = episode.tree
    worths = {agent: episode.returns(agent) for agent in tree.agents}
    acted: list[dict[str, int]] = [{} for _ in tree.nodes]
    for node, below in zip(tree.nodes, tree.below(), strict=True):
        children = [tree.nodes[index] for index in below]
        for child in children:
            acted[child.index] = dict(acted[node.index])
            for agent in child.actions:
                acted[child.index][agent] = acted[node.index].get(agent, 0) + 1
        for agent in node.observations if children else ():
            different = _different(children, agent)
            for same in different:
                own = [worths[agent][child.index] for child in same]
                yield Pair(
                    episode=number,
                    node=same[0].index,
                    agent=agent,
                    occasion=acted[node.index].get(agent, 0),
                    worth=sum(own) / len(own),
                    forked=len(different) > 1,
                )


def _different(children: Sequence[Node[Any]], agent: str) -> list[list[Node[Any]]]:
    """Children by which of its actions the agent took: one action is one object."""
    found: dict[int, list[Node[Any]]] = {}
    for child in children:
        found.setdefault(id(child.actions[agent]), []).append(child)
    return list(found.values())


def _by_fork(alone: Sequence[Pair], episodes: Episodes) -> list[list[Pair]]:
    forks = [
        next((pair.agent for pair in _pairs(number, episode) if pair.forked), None)
        for number, episode in enumerate(episodes)
    ]
    together: dict[Group, list[Pair]] = {}
    for pair in alone:
        key = (forks[pair.episode], pair.agent, pair.occasion)
        together.setdefault(key, []).append(pair)
    return [group for group in together.values() if len(group) > 1]
