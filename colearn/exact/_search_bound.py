"""Upper bound on the value to go: that of the POMDP of one agent with all observations."""

from __future__ import annotations

import numpy as np

from .model import Array, TabularModel

DIGITS = 12
"""Number of decimals to which two beliefs must agree to share their values."""

MOST_BELIEFS = 200_000
"""Maximum number of beliefs whose values are cached; for further beliefs, the search uses the
looser MDP bound, which assumes that the state is known."""


class POMDPBound:
    """Q*(b, a) of the underlying POMDP, by memoised recursion over beliefs.

    Q* bounds the value of every decentralised policy, because a decentralised policy is also a
    policy of a single agent that sees all observations. When the cache is full, the bound is sum_s
    b(s) Q*(s, a) of the underlying MDP, which is looser.
    """

    def __init__(self, model: TabularModel, horizon: int, discount: float) -> None:
        self._transition = model.transition
        self._seen = model.observation.transpose(0, 2, 1)
        self._reward = model.expected_reward
        self._discount = discount
        self._values_by_belief: dict[tuple[int, bytes], Array] = {}
        self._mdp = [np.zeros_like(self._reward)]
        for _ in range(horizon):
            future_values = self._transition @ self._mdp[-1].max(axis=0)
            self._mdp.append(self._reward + discount * future_values)

    def action_values(self, weights: Array, turns: int) -> Array:
        """Compute bounds with `turns` turns to go, shape [rows, joint actions].

        A row of `weights` [rows, S] is a belief times the probability of that belief; the row's
        bounds are multiplied by the same probability.
        """
        if turns == 1:
            return weights @ self._reward.T
        return np.array([self._at(row, turns) for row in weights])

    def _at(self, weight: Array, turns: int) -> Array:
        mass = weight.sum()
        belief = weight / mass
        key = (turns, belief.round(DIGITS).tobytes())
        values = self._values_by_belief.get(key)
        if values is None:
            if len(self._values_by_belief) >= MOST_BELIEFS:
                return self._mdp[turns] @ weight
            values = self._reward @ belief + self._discount * self._future_values(belief, turns - 1)
            self._values_by_belief[key] = values
        return mass * values

    def _future_values(self, belief: Array, turns: int) -> Array:
        """The sum over o of the best bound after (a, o), shape [joint actions]."""
        after = (belief @ self._transition)[:, None, :] * self._seen
        if turns == 1:
            return (after @ self._reward.T).max(axis=2).sum(axis=1)
        total = np.zeros(len(after))
        for action, observation in zip(*np.nonzero(after.sum(axis=2)), strict=True):
            total[action] += self._at(after[action, observation], turns).max()
        return total
