"""Running means of the returns by item and turn, which a critic's network therefore need not
learn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
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

KEPT = 0.75
"""Factor by which a mean's weight decays per iteration: a mean covers about the last four
iterations."""

_LEAST = 0.05
"""Minimum weight of a mean. Means with less weight are dropped: their item has not occurred for
about ten iterations."""
PRIORS = (2.0, 8.0, 32.0, inf)
"""Candidates for the number of pseudo-returns, equal to the turn's mean, that are added to an
item's own returns. The first candidate is used until there are errors to compare."""
_BETWEEN = "\x1f"

Offsets = Sequence[Mapping[str, Mapping[int, float]]]
"""One mapping for every tree: the number that is added to the network's value, by agent and
turn."""


@dataclass(slots=True)
class ItemMeans:
    """Means of the returns after a turn, by reader, turn and item. A reader is one input of a
    critic: the history of an agent, or of the whole team. The network predicts the difference
    between the return and this mean.

    An episode's own returns are left out of its means, so that the baseline does not depend on the
    episode's actions. A mean of few returns is shrunk towards the mean of the turn over all items,
    by the amount that predicted the returns of earlier iterations best. Where items do not recur or
    do not affect the return, only the mean of the turn remains.
    """

    state: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Weighted sum and total weight, by key. Entries with the keys "reader, turn" and "reader,
    turn, item" are for returns. Entries with the key "reader, turn, , prior" are for the squared
    errors with one of `PRIORS`."""

    def offsets(self, critic: Critic, episodes: Episodes, trees: Sequence[Tree[Any]]) -> Offsets:
        """Update the means with the returns of an iteration. Return the means for every tree,
        computed without the returns of that tree.

        The items are read from `trees`, because the trees of `episodes` may lack them.
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
        errors: dict[str, tuple[float, float]] = {}
        for episode, one in zip(episodes, told, strict=True):
            readers = critic.readers(episode.tree.agents)
            by_reader: dict[str, dict[int, float]] = {reader: {} for reader in readers}
            for (of_turn, of_item), actual in one.items():
                reader, turn, _ = of_item.split(_BETWEEN, 2)
                usual = self._without(of_turn, actual, 0.0, 0.0)
                by_reader[reader][int(turn)] = self._without(
                    of_item, actual, self.prior(of_turn), usual
                )
                for prior in PRIORS:
                    missed = actual - self._without(of_item, actual, prior, usual)
                    key = _of_prior(of_turn, prior)
                    total, n = errors.get(key, (0.0, 0.0))
                    errors[key] = (total + missed**2, n + 1.0)
            offsets.append(
                {agent: by_reader[r] for r, agents in readers.items() for agent in agents}
            )
        for key, (total, n) in errors.items():
            before, weight = self.state.get(key, (0.0, 0.0))
            self.state[key] = (before + total, weight + n)
        return offsets

    def prior(self, of_turn: str) -> float:
        """Choose the prior in `PRIORS` with the smallest squared error on the returns of earlier
        iterations. Until there are errors, the first prior is used."""
        told = {p: self.state.get(_of_prior(of_turn, p), (0.0, 0.0))[0] for p in PRIORS}
        return min(told, key=told.__getitem__)

    def of_tree(self, critic: Critic, tree: Tree[Any]) -> Mapping[str, Mapping[int, float]]:
        """Return the means, by agent and turn, for a tree whose returns are not included in the
        means."""
        item = item_name(tree.item)
        turns = range(max(node.turn for node in tree.nodes) + 1)
        return {
            agent: {turn: self._of_item(f"{reader}{_BETWEEN}{turn}", item) for turn in turns}
            for reader, agents in critic.readers(tree.agents).items()
            for agent in agents
        }

    def _of_item(self, of_turn: str, item: str) -> float:
        usual = _shrunk(*self.state.get(of_turn, (0.0, 0.0)), 0.0, 0.0)
        told = self.state.get(f"{of_turn}{_BETWEEN}{item}", (0.0, 0.0))
        return _shrunk(*told, self.prior(of_turn), usual)

    def of_readers(self, readers: Collection[str]) -> dict[str, tuple[float, float]]:
        """The part of the state that belongs to `readers`."""
        return {k: told for k, told in self.state.items() if k.split(_BETWEEN)[0] in readers}

    def _without(self, key: str, actual: float, prior: float, usual: float) -> float:
        """Compute a mean without the return `actual`, shrunk towards `usual`."""
        total, n = self.state[key]
        return _shrunk(total - actual, n - 1.0, prior, usual)


def _of_prior(of_turn: str, prior: float) -> str:
    return f"{of_turn}{_BETWEEN}{_BETWEEN}{prior:g}"


def _shrunk(total: float, n: float, prior: float, usual: float) -> float:
    """Compute the mean of `n` returns with sum `total` and `prior` pseudo-returns equal to
    `usual`."""
    if prior == inf or n + prior <= 0:
        return usual
    return (total + prior * usual) / (n + prior)


def _returns(
    critic: Critic, episode: Credited[Any], tree: Tree[Any]
) -> dict[tuple[str, str], float]:
    """Compute the mean return of one tree after each turn. Keys are pairs (key of the turn's mean,
    key of the item's mean)."""
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
    """Add the means to the network's values."""
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
    """Return a row of a value model with the mean of each mark's turn as the mark's baseline.
    `agents`: the agents whose values the row holds; `means`: the means for the tree."""

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
        # values inside the action into a node belong to the turn before the node
        before = [means.get(node.turn - 1, 0.0) for node in tree.nodes]
        inner = zip(series.inside, before, strict=True)
        return TokenValues(own, tuple(tuple(v + b for v in some) for some, b in inner))
    return own
