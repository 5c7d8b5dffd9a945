"""Computes the fraction of the returns' variance that a critic explains at each turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from colearn.contract import AgentValues, CounterfactualValues, Episodes
from colearn.contract.checked_task import item_name
from colearn.contract.scored import mean_scored

ROUNDING = 1e-9
"""Threshold on the standard deviation of returns, relative to the largest absolute return. Returns
with a smaller deviation count as equal, so that there is no variance to explain."""


class TurnWorth(BaseModel):
    """Explained variance of a critic at one turn, on held-out episodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: int
    values: int
    """Number of values that were compared with a return."""
    explained_variance: float | None
    """Explained variance 1 - Var(G - V) / Var(G), which does not depend on a constant bias of V;
    None if all returns are equal."""
    r2: float | None
    """1 - mean (G - V)^2 / Var(G)."""


class Pair(NamedTuple):
    """A value and the return that it predicts."""

    turn: int
    value: float
    actual: float
    item: str = ""


def pairs(
    episodes: Episodes,
    values: Sequence[AgentValues],
    *,
    of_state: bool,
    single: bool = False,
) -> Iterator[Pair]:
    """Pair every value with a scored return. If `of_state` is true, the values are values of
    states, and each value is paired with the mean return after the node. Otherwise, each value is
    paired with the return of the edge into the node. `single`: pair the value with every return
    after the node instead of the mean return. The turn of a pair is the turn of the pair's joint
    action."""
    for episode, by_agent in zip(episodes, values, strict=True):
        below = episode.below()
        item = item_name(episode.item)
        for agent, series in by_agent.items():
            returns = episode.returns_of(agent)
            for k, value in enumerate(series):
                edges = below[k] if of_state else [k]
                if value is None or not edges:
                    continue
                for group in [[edge] for edge in edges] if single else [edges]:
                    actual = mean_scored(returns[edge] for edge in group)
                    if not isnan(actual):
                        yield Pair(episode.nodes[k].turn - (not of_state), value, actual, item)


def explained_variance(predictions: Iterable[Pair]) -> float | None:
    """Return 1 - Var(G - V) / Var(G), or None if the returns differ only by rounding."""
    return _fractions(predictions)[0]


def action_worth(episodes: Episodes, values: Sequence[AgentValues]) -> float | None:
    """Return 1 - Var(G - Q(h, a)) / Var(G - mean_k Q(h, a_-i, a_i^k)). This number measures how
    much a counterfactual critic's prediction improves by reading the agent's action. The number is
    0 if Q does not depend on the agent's action, even if Q explains the returns well. The result is
    None without alternatives, or if there is no variance to explain."""
    errors, baseline_errors = list[float](), list[float]()
    for episode, by_agent in zip(episodes, values, strict=True):
        for agent, series in by_agent.items():
            if not isinstance(series, CounterfactualValues):
                return None
            returned = episode.returns_of(agent)
            for q, alternatives, g in zip(series, series.alternatives, returned, strict=True):
                if q is not None and alternatives and not isnan(g):
                    errors.append(g - q)
                    baseline_errors.append(g - sum(alternatives) / len(alternatives))
    if not errors or (baseline_variance := float(np.var(baseline_errors))) <= ROUNDING:
        return None
    return 1.0 - float(np.var(errors)) / baseline_variance


def worth_by_turn(predictions: Iterable[Pair]) -> tuple[TurnWorth, ...]:
    """Compute the explained variance and R^2 of each turn."""
    by_turn: dict[int, list[Pair]] = {}
    for pair in predictions:
        by_turn.setdefault(pair.turn, []).append(pair)
    return tuple(
        TurnWorth(
            turn=turn,
            values=len(turn_pairs),
            **dict(zip(_NAMES, _fractions(turn_pairs), strict=True)),
        )
        for turn, turn_pairs in sorted(by_turn.items())
    )


_NAMES = ("explained_variance", "r2")


def _fractions(predictions: Iterable[Pair]) -> tuple[float | None, float | None]:
    listed = list(predictions)
    if not listed:
        return None, None
    values, actual = np.array([(p.value, p.actual) for p in listed]).T
    spread = float(np.var(actual))
    if spread <= (ROUNDING * float(np.abs(actual).max())) ** 2:
        return None, None
    errors = actual - values
    return 1 - float(np.var(errors)) / spread, 1 - float(np.mean(errors**2)) / spread
