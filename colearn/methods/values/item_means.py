"""Computes running means of the returns by item and turn. A critic's network then need not learn
these means."""

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
from colearn.contract.checked_task import item_name
from colearn.contract.rows import Mark, Row
from colearn.contract.types import Tree

from .explained_variance import pairs

KEPT = 0.75
"""Factor by which the weight of a return decays in each iteration. A mean therefore covers about
the last four iterations."""

_LEAST = 0.05
"""Minimum weight of a mean. A mean with less weight is dropped, because its item has not occurred
for about ten iterations."""
PRIORS = (2.0, 8.0, 32.0, inf)
"""Candidates for the number of pseudo-returns, equal to the turn's mean, that are added to an
item's own returns. The first candidate is used until there are errors to compare."""
_BETWEEN = "\x1f"
_PRODUCT, _SQUARE = "product", "square"

Offsets = Sequence[Mapping[str, Mapping[int, float]]]
"""For every tree, the number that is added to the network's value, keyed by agent and turn."""
Shares = Sequence[Mapping[str, Mapping[int, float]]]
"""For every tree, the factor c by which the network's residual is multiplied, keyed by agent and
turn."""


@dataclass(slots=True)
class ItemMeans:
    """Means of the returns after a turn, by reader, turn and item. A reader is one input of a
    critic: the history of an agent, or of the whole team. The network predicts the difference
    between the return and this mean.

    The means used for an episode exclude the returns of that episode, so that the baseline does not
    depend on the episode's actions. A mean of few returns is shrunk towards the mean of the turn
    over all items, by the amount that predicted the returns of earlier iterations best. If items do
    not recur or do not affect the return, the shrunk mean equals the mean of the turn.

    The value is V = m + c f, with the mean m and the network's residual f. The factor c is the
    slope of a regression (without intercept) of G - m on f, clipped to [0, 1]:

        c = sum f (G - m) / sum f^2

    The sums are over values and returns G of earlier iterations at this turn. Each value was
    computed before the network was trained on its return. A network that predicts nothing on new
    episodes therefore leaves V = m.
    """

    state: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Weighted sum and total weight, by key. Entries with the keys "reader, turn" and "reader,
    turn, item" are for returns. Entries with the key "reader, turn, , prior" are for the squared
    errors with one of `PRIORS`. Entries with the keys "reader, turn, , product" and "reader, turn,
    , square" are for f (G - m) and f^2."""

    def offsets(self, critic: Critic, trees: Episodes) -> Offsets:
        """Update the means with the returns of an iteration. Return the means for every tree.
        The means for a tree exclude the returns of that tree."""
        returns = [_returns(critic, tree) for tree in trees]
        self.state = {
            key: (KEPT * total, KEPT * n)
            for key, (total, n) in self.state.items()
            if KEPT * n > _LEAST
        }
        for of_tree in returns:
            for keys, actual in of_tree.items():
                for key in keys:
                    total, n = self.state.get(key, (0.0, 0.0))
                    self.state[key] = (total + actual, n + 1.0)
        offsets = []
        errors: dict[str, tuple[float, float]] = {}
        for tree, of_tree in zip(trees, returns, strict=True):
            readers = critic.readers(tree.agents)
            by_reader: dict[str, dict[int, float]] = {reader: {} for reader in readers}
            for (of_turn, of_item), actual in of_tree.items():
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
        iterations. As long as there are no squared errors, the first prior is used."""
        errors = {p: self.state.get(_of_prior(of_turn, p), (0.0, 0.0))[0] for p in PRIORS}
        return min(errors, key=errors.__getitem__)

    def shares(self, critic: Critic, trees: Sequence[Tree[Any]]) -> Shares:
        """Return the factor c of the network's residual for every tree, computed from earlier
        iterations. In the first iteration, c is 0."""
        return [
            {
                agent: {
                    turn: self._share(f"{reader}{_BETWEEN}{turn}") for turn in range(_turns(tree))
                }
                for reader, agents in critic.readers(tree.agents).items()
                for agent in agents
            }
            for tree in trees
        ]

    def _share(self, of_turn: str) -> float:
        product, square = (
            self.state.get(f"{of_turn}{_BETWEEN}{_BETWEEN}{name}", (0.0, 0.0))[0]
            for name in (_PRODUCT, _SQUARE)
        )
        return min(max(product / square, 0.0), 1.0) if square > 0 else 0.0

    def compare(
        self,
        critic: Critic,
        trees: Episodes,
        values: Sequence[AgentValues],
        offsets: Offsets,
    ) -> None:
        """Update the sums for the factors c of later iterations. The values include the whole
        residual, and the network has not yet been trained on the episodes."""
        means = scaled(critic, trees, values, offsets, [{}] * len(trees))
        for reader, agents in critic.readers(trees[0].agents).items() if trees else ():
            by_critic, by_mean = (
                pairs(
                    trees,
                    [
                        {a: series for a, series in by_agent.items() if a in agents}
                        for by_agent in estimates
                    ],
                    of_state=critic.of_state,
                    single=True,
                )
                for estimates in (values, means)
            )
            for pair, mean_only in zip(by_critic, by_mean, strict=True):
                residual = pair.value - mean_only.value
                of_turn = f"{reader}{_BETWEEN}{pair.turn}{_BETWEEN}{_BETWEEN}"
                for name, term in (
                    (_PRODUCT, residual * (pair.actual - mean_only.value)),
                    (_SQUARE, residual**2),
                ):
                    total, n = self.state.get(of_turn + name, (0.0, 0.0))
                    self.state[of_turn + name] = (total + term, n + 1.0)

    def of_tree(self, critic: Critic, tree: Tree[Any]) -> Mapping[str, Mapping[int, float]]:
        """Return the means, by agent and turn, for a tree whose returns are not included in the
        means."""
        item = item_name(tree.item)
        turns = range(_turns(tree))
        return {
            agent: {turn: self._of_item(f"{reader}{_BETWEEN}{turn}", item) for turn in turns}
            for reader, agents in critic.readers(tree.agents).items()
            for agent in agents
        }

    def _of_item(self, of_turn: str, item: str) -> float:
        usual = _shrunk(*self.state.get(of_turn, (0.0, 0.0)), 0.0, 0.0)
        sums = self.state.get(f"{of_turn}{_BETWEEN}{item}", (0.0, 0.0))
        return _shrunk(*sums, self.prior(of_turn), usual)

    def of_readers(self, readers: Collection[str]) -> dict[str, tuple[float, float]]:
        """Return the entries of the state that belong to `readers`."""
        return {k: sums for k, sums in self.state.items() if k.split(_BETWEEN)[0] in readers}

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


def _returns(critic: Critic, tree: Tree[Any]) -> dict[tuple[str, str], float]:
    """Compute the mean return of one tree after each turn, keyed by (key of the turn's mean, key of
    the item's mean)."""
    by_turn: dict[tuple[str, int], list[float]] = {}
    for reader, agents in critic.readers(tree.agents).items():
        for agent in agents:
            returns = tree.returns_of(agent)
            for node in tree.nodes:
                if agent in node.actions and not isnan(returns[node.index]):
                    by_turn.setdefault((reader, node.turn - 1), []).append(returns[node.index])
    item = item_name(tree.item)
    return {
        (f"{reader}{_BETWEEN}{turn}", f"{reader}{_BETWEEN}{turn}{_BETWEEN}{item}"): mean(returns)
        for (reader, turn), returns in by_turn.items()
    }


def scaled(
    critic: Critic,
    trees: Sequence[Tree[Any]],
    values: Sequence[AgentValues],
    offsets: Offsets,
    shares: Shares,
) -> list[AgentValues]:
    """Return m + c (v - m) for every value v. The value v is the mean m plus the network's
    residual. For an agent or turn without a factor, c is 0."""
    return [
        {
            agent: _scaled(critic, tree, series, means.get(agent, {}), share.get(agent, {}))
            for agent, series in by_agent.items()
        }
        for tree, by_agent, means, share in zip(trees, values, offsets, shares, strict=True)
    ]


def baselined(
    row: Row,
    critic: Critic,
    tree: Tree[Any],
    agents: Sequence[str],
    means: Mapping[str, Mapping[int, float]],
) -> Row:
    """Return a copy of a value model's row in which the baseline of each mark is the mean of the
    mark's turn. `agents`: the agents whose values the row holds; `means`: the means for the
    tree."""

    def mean_at(mark: Mark) -> float:
        before = mark.inside is not None or not critic.of_state
        turn = tree.nodes[mark.node].turn - before
        return means.get(mark.agent or agents[0], {}).get(turn, 0.0)

    return replace(row, baselines=tuple(map(mean_at, row.marks)))


def _scaled(
    critic: Critic,
    tree: Tree[Any],
    series: Values,
    means: Mapping[int, float],
    shares: Mapping[int, float],
) -> Values:
    def at(turn: int, values: Sequence[float]) -> tuple[float, ...]:
        mean, share = means.get(turn, 0.0), shares.get(turn, 0.0)
        return tuple(mean + share * (value - mean) for value in values)

    before = [node.turn - 1 for node in tree.nodes]
    turns = [node.turn for node in tree.nodes] if critic.of_state else before
    at_nodes = tuple(
        None if value is None else at(turn, [value])[0]
        for turn, value in zip(turns, series, strict=True)
    )
    if isinstance(series, CounterfactualValues):
        alternatives = zip(turns, series.alternatives, strict=True)
        return CounterfactualValues(
            at_nodes, tuple(at(turn, q_values) for turn, q_values in alternatives)
        )
    if isinstance(series, TokenValues):
        # values inside the action into a node belong to the turn before the node
        inner = zip(before, series.inside, strict=True)
        return TokenValues(at_nodes, tuple(at(turn, token_values) for turn, token_values in inner))
    return at_nodes


def _turns(tree: Tree[Any]) -> int:
    return max(node.turn for node in tree.nodes) + 1
