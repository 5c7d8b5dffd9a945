"""Exact evaluation of a stochastic joint policy: J, values, action values and the gradient of J.

The method is backward induction over joint histories. All quantities of a history h are multiplied
by P(h | actions), so that the quantities of the children of h can be added.
`training/evaluation/exact.py` converts a team of language models to such a policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
from einops import rearrange

from colearn.errors import ConfigError

from .histories import JointHistories, TurnHistories
from .model import Array

Policy = Mapping[str, Sequence[Array]]
"""Agent -> pi_i(a | h_i) by turn, shape [private histories, |A_i|].

A row may sum to less than 1: the missing probability is the probability of a rejected reply, which
ends the episode.
"""

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactEvaluation:
    """Exact values of one joint policy; sequences are by turn."""

    value: float
    """J, the expected discounted sum of rewards."""
    joint_probabilities: tuple[Array, ...]
    """P(h) under the policy, shape [joint histories]; the sum is P(the turn is played)."""
    joint_values: tuple[Array, ...]
    """V(h), shape [joint histories]: the value conditional on h, defined even if the policy never
    reaches h."""
    joint_action_values: tuple[Array, ...]
    """Q(h, a), shape [joint histories, joint actions]."""
    private_values: Mapping[str, tuple[Array, ...]]
    """Agent -> V_i(h_i) = E[V(h) | h_i] under the policy, shape [private histories]: the values to
    which a decentralised critic converges. NaN if the policy never reaches h_i."""
    gradient: Mapping[str, tuple[Array, ...]]
    """Agent -> dJ / d pi_i(a | h_i), shape [private histories, |A_i|].

    The probabilities are independent variables: raising one of them lowers only the probability of
    rejection."""


def uniform(histories: JointHistories) -> Policy:
    """The policy of uniform random actions at every history."""
    model = histories.model
    return {
        agent: tuple(
            np.full((turn.counts[i], model.action_shape[i]), 1.0 / model.action_shape[i])
            for turn in histories.turns
        )
        for i, agent in enumerate(model.agents)
    }


def evaluate(
    histories: JointHistories,
    policy: Policy,
    *,
    discount: float = 1.0,
    rejected: Sequence[float] | None = None,
) -> ExactEvaluation:
    """Compute J, values and gradient of `policy` for the model and horizon of `histories`.

    `rejected[t]` is the reward (default 0) of a turn t at which at least one agent's reply is
    rejected; the episode ends there. Raises ConfigError if a policy does not fit the histories.
    """
    check_policy(histories, policy)
    ended = [0.0] * histories.horizon if rejected is None else [float(r) for r in rejected]
    if len(ended) != histories.horizon:
        raise ConfigError(
            f"rejected: {len(ended)} rewards for {histories.horizon} turns; give one for each turn"
        )
    agents = histories.model.agents
    rows = [
        [policy[agent][t][turn.private[i]] for i, agent in enumerate(agents)]
        for t, turn in enumerate(histories.turns)
    ]
    chosen = _chosen(histories, rows)

    joint_values: list[Array] = []
    joint_action_values: list[Array] = []
    private_values: dict[str, list[Array]] = {agent: [] for agent in agents}
    gradient: dict[str, list[Array]] = {agent: [] for agent in agents}
    after: TurnHistories | None = None
    values = np.zeros(0)
    for t in reversed(range(histories.horizon)):
        turn = histories.turns[t]
        action_values = turn.reward
        if after is not None:
            action_values = action_values + discount * _gather(turn, after, values)
        end_values = ended[t] * turn.probability
        accepted = math.prod(row.sum(axis=1) for row in rows[t])
        values = (_joint(rows[t]) * action_values).sum(axis=1) + (1.0 - accepted) * end_values
        joint_values.append(values / turn.probability)
        joint_action_values.append(action_values / turn.probability[:, None])
        for i, agent in enumerate(agents):
            private_values[agent].append(_private_values(turn, i, chosen[t], values))
            slope = _slope(histories.model.action_shape, rows[t], i, action_values, end_values)
            weighted = discount**t * chosen[t][:, None] * slope
            total = np.zeros((turn.counts[i], slope.shape[1]))
            np.add.at(total, turn.private[i], weighted)
            gradient[agent].append(total)
        after = turn
    return ExactEvaluation(
        value=float(values[0]),
        joint_probabilities=tuple(
            weight * turn.probability for weight, turn in zip(chosen, histories.turns, strict=True)
        ),
        joint_values=tuple(reversed(joint_values)),
        joint_action_values=tuple(reversed(joint_action_values)),
        private_values={agent: tuple(reversed(by)) for agent, by in private_values.items()},
        gradient={agent: tuple(reversed(by)) for agent, by in gradient.items()},
    )


def check_policy(histories: JointHistories, policy: Policy) -> None:
    """Raise ConfigError unless every agent has rows of probabilities for every turn."""
    model = histories.model
    if set(policy) != set(model.agents):
        raise ConfigError(
            f"policy: given for {sorted(policy)}; give one for each of {sorted(model.agents)}"
        )
    for i, agent in enumerate(model.agents):
        if len(policy[agent]) != histories.horizon:
            raise ConfigError(
                f"policy: {agent} has {len(policy[agent])} turns; give {histories.horizon}"
            )
        for t, (table, turn) in enumerate(zip(policy[agent], histories.turns, strict=True)):
            shape = (turn.counts[i], model.action_shape[i])
            if table.shape != shape:
                raise ConfigError(
                    f"policy: {agent}'s turn {t} has shape {table.shape}; give {shape}"
                )
            if not (table >= 0.0).all() or not (table.sum(axis=1) <= 1.0 + TOLERANCE).all():
                raise ConfigError(
                    f"policy: {agent}'s turn {t} has a row that is not a distribution; "
                    "make each at least 0 and their sum at most 1"
                )


def _joint(rows: Sequence[Array]) -> Array:
    """pi(a | h) of every joint action, shape [joint histories, joint actions]."""
    product = rows[0]
    for row in rows[1:]:
        outer = product[:, :, None] * row[:, None, :]
        product = rearrange(outer, "history others agent -> history (others agent)")
    return product


def _chosen(histories: JointHistories, rows: Sequence[Sequence[Array]]) -> list[Array]:
    """For each turn: the probability that the agents choose the actions of h, given the
    observations of h."""
    chosen = [np.ones(1)]
    for t in range(1, histories.horizon):
        turn = histories.turns[t]
        step = _joint(rows[t - 1])[turn.parent, turn.joint_action]
        chosen.append(chosen[-1][turn.parent] * step)
    return chosen


def _gather(turn: TurnHistories, after: TurnHistories, values: Array) -> Array:
    """Sum of the values of the children of each (history, joint action)."""
    shape = turn.reward.shape
    pair = np.ravel_multi_index((after.parent, after.joint_action), shape)
    total = np.zeros(math.prod(shape))
    np.add.at(total, pair, values)
    return total.reshape(shape)


def _private_values(turn: TurnHistories, agent: int, chosen: Array, values: Array) -> Array:
    number, count = turn.private[agent], turn.counts[agent]
    reached = np.bincount(number, weights=chosen * turn.probability, minlength=count)
    total = np.bincount(number, weights=chosen * values, minlength=count)
    return np.divide(total, reached, out=np.full(count, np.nan), where=reached > 0.0)


def _slope(
    shape: Sequence[int], rows: Sequence[Array], agent: int, action_values: Array, end_values: Array
) -> Array:
    """d value(h) / d pi_i(a | h_i) at each joint history, shape [joint histories, |A_i|]."""
    axes = ascii_lowercase[: len(shape)]
    others = [j for j in range(len(shape)) if j != agent]
    terms = ",".join([f"Z{axes}", *(f"Z{axes[j]}" for j in others)])
    expected = np.einsum(
        f"{terms}->Z{axes[agent]}",
        action_values.reshape(-1, *shape),
        *(rows[j] for j in others),
        optimize=True,
    )
    others_accept = math.prod((rows[j].sum(axis=1) for j in others), start=np.ones(len(end_values)))
    return expected - (others_accept * end_values)[:, None]
