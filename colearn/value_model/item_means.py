"""Running means of the returns by item and turn: what a critic's network need not learn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from statistics import fmean as mean
from typing import Any

from colearn.contract import (
    AgentValues,
    CounterfactualValues,
    Critic,
    Episodes,
    TokenValues,
    Values,
)
from colearn.contract.asking import item_name
from colearn.contract.rows import Mark, Row
from colearn.types import Credited, Tree

from .ceiling import PRIOR

KEPT = 0.75
"""Share of a mean's weight that is left after an iteration: about the last four count."""

_LEAST = 0.05
"""Weight below which a mean is forgotten: its item has not come up for about ten iterations."""
_BETWEEN = "\x1f"

Offsets = Sequence[Mapping[str, Mapping[int, float]]]
"""Of every tree: by agent and turn, what is added to the network's value."""


@dataclass(slots=True)
class ItemMeans:
    """Means of the returns after a turn, by reader, turn and item; the network's value is what is
    left of the return.

    An episode's own returns are left out of its means, so that the baseline does not depend on its
    actions. A mean of few returns is shrunk to that of the turn over all items. Items that never
    recur get the mean of the turn.
    """

    state: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Weighted sum and weight of the returns, by "reader, turn" and "reader, turn, item"."""

    def offsets(self, critic: Critic, episodes: Episodes, trees: Sequence[Tree[Any]]) -> Offsets:
        """The means for every tree of an iteration, which are then updated with its returns.

        `trees` have their items, which `episodes` may lack.
        """
        told = [_returns(critic, *pair) for pair in zip(episodes, trees, strict=True)]
        self.state = {
            key: (KEPT * total, KEPT * n)
            for key, (total, n) in self.state.items()
            if KEPT * n > _LEAST
        }
        for one in told:
            for keys, actual in one.items():
                for key in keys:
                    total, n = self.state.get(key, (0.0, 0.0))
                    self.state[key] = (total + actual, n + 1.0)
        offsets = []
        for episode, one in zip(episodes, told, strict=True):
            readers = critic.readers(episode.tree.agents)
            by_reader: dict[str, dict[int, float]] = {reader: {} for reader in readers}
            for (of_turn, of_item), actual in one.items():
                usual = self._without(of_turn, actual)
                reader, turn, _ = of_item.split(_BETWEEN, 2)
                by_reader[reader][int(turn)] = self._without(of_item, actual, usual)
            offsets.append(
                {agent: by_reader[r] for r, agents in readers.items() for agent in agents}
            )
        return offsets

    def of_tree(self, critic: Critic, tree: Tree[Any]) -> Mapping[str, Mapping[int, float]]:
        """The means for a tree whose returns are not part of them, by agent and turn."""
        item = item_name(tree.item)
        turns = range(max(node.turn for node in tree.nodes) + 1)
        return {
            agent: {
                turn: self._mean(
                    f"{reader}{_BETWEEN}{turn}{_BETWEEN}{item}",
                    self._mean(f"{reader}{_BETWEEN}{turn}"),
                )
                for turn in turns
            }
            for reader, agents in critic.readers(tree.agents).items()
            for agent in agents
        }

    def of_readers(self, readers: Collection[str]) -> dict[str, tuple[float, float]]:
        """The part of the state that concerns some readers."""
        return {k: told for k, told in self.state.items() if k.split(_BETWEEN)[0] in readers}

    def _without(self, key: str, actual: float, usual: float | None = None) -> float:
        """A mean without one of its returns, shrunk to `usual`."""
        total, n = self.state[key]
        return _shrunk(total - actual, n - 1.0, usual)

    def _mean(self, key: str, usual: float | None = None) -> float:
        return _shrunk(*self.state.get(key, (0.0, 0.0)), usual)


def _shrunk(total: float, n: float, usual: float | None) -> float:
    if usual is None:
        return total / n if n > 0 else 0.0
    return (total + PRIOR * usual) / (n + PRIOR)


def _returns(
    critic: Critic, episode: Credited[Any], tree: Tree[Any]
) -> dict[tuple[str, str], float]:
    """One tree's mean return after each turn: by the keys of the turn's and of the item's mean."""
    by_turn: dict[tuple[str, int], list[float]] = {}
    for reader, agents in critic.readers(tree.agents).items():
        for agent in agents:
            returns = episode.returns(agent)
            for node in tree.nodes:
                if agent in node.actions and not isnan(returns[node.index]):
                    by_turn.setdefault((reader, node.turn - 1), []).append(returns[node.index])
    item = item_name(tree.item)
    return {
        (f"{reader}{_BETWEEN}{turn}", f"{reader}{_BETWEEN}{turn}{_BETWEEN}{item}"): mean(returns)
        for (reader, turn), returns in by_turn.items()
    }


def added(
    critic: Critic, trees: Sequence[Tree[Any]], values: Sequence[AgentValues], offsets: Offsets
) -> list[AgentValues]:
    """The network's values with the means added."""
    return [
        {
            agent: _shifted(critic, tree, series, means.get(agent, {}))
            for agent, series in one.items()
        }
        for tree, one, means in zip(trees, values, offsets, strict=True)
    ]


def baselined(
    row: Row,
    critic: Critic,
    tree: Tree[Any],
    agents: Sequence[str],
    means: Mapping[str, Mapping[int, float]],
) -> Row:
    """A reader's row with the mean of each mark's turn as its baseline; `agents` are the reader's,
    `means` those of the tree."""

    def mean_at(mark: Mark) -> float:
        before = mark.inside is not None or not critic.of_state
        turn = tree.nodes[mark.node].turn - before
        return means.get(mark.agent or agents[0], {}).get(turn, 0.0)

    return replace(row, baselines=tuple(map(mean_at, row.marks)))


def _shifted(critic: Critic, tree: Tree[Any], series: Values, means: Mapping[int, float]) -> Values:
    by = [means.get(node.turn - (not critic.of_state), 0.0) for node in tree.nodes]
    own = tuple(
        None if value is None else value + shift for value, shift in zip(series, by, strict=True)
    )
    if isinstance(series, CounterfactualValues):
        others = zip(series.alternatives, by, strict=True)
        return CounterfactualValues(own, tuple(tuple(v + b for v in some) for some, b in others))
    if isinstance(series, TokenValues):
        # the values inside the action into a node are of the turn before it
        before = [means.get(node.turn - 1, 0.0) for node in tree.nodes]
        inner = zip(series.inside, before, strict=True)
        return TokenValues(own, tuple(tuple(v + b for v in some) for some, b in inner))
    return own
