"""An upper bound on the value to go: that of agents who share all they see, a POMDP."""

from __future__ import annotations

import numpy as np

from .model import Array, TabularModel

DIGITS = 12
"""Beliefs that agree to so many decimals share their values."""

MOST_BELIEFS = 200_000
"""How many beliefs have their value kept; the rest take the looser bound of a known state."""


class POMDPBound:
    """Q*(b, a) of the underlying POMDP, by recursion over beliefs with memory.

    Agents who cannot tell each other anything can do no better: each of their joint policies is
    also one of the agent that sees everything they see. Where the memory is full, the bound is
    sum_s b(s) Q*(s, a) of the MDP, which knows even more.
    """

    def __init__(self, model: TabularModel, horizon: int, discount: float) -> None:
        self._transition = model.transition
        self._seen = model.observation.transpose(0, 2, 1)
        self._reward = model.expected_reward
        self._discount = discount
        self._known: dict[tuple[int, bytes], Array] = {}
        self._mdp = [np.zeros_like(self._reward)]
        for _ in range(horizon):
            ahead = self._transition @ self._mdp[-1].max(axis=0)
            self._mdp.append(self._reward + discount * ahead)

    def action_values(self, weights: Array, turns: int) -> Array:
        """Bounds with `turns` turns to go, shape [rows, joint actions].

        `weights` [rows, S] are beliefs times their probabilities; so are the bounds.
        """
        if turns == 1:
            return weights @ self._reward.T
        return np.array([self._at(row, turns) for row in weights])

    def _at(self, weight: Array, turns: int) -> Array:
        mass = weight.sum()
        belief = weight / mass
        key = (turns, belief.round(DIGITS).tobytes())
        values = self._known.get(key)
        if values is None:
            if len(self._known) >= MOST_BELIEFS:
                return self._mdp[turns] @ weight
            values = self._reward @ belief + self._discount * self._ahead(belief, turns - 1)
            self._known[key] = values
        return mass * values

    def _ahead(self, belief: Array, turns: int) -> Array:
        """sum_o of the best bound after (a, o), shape [joint actions]."""
        after = (belief @ self._transition)[:, None, :] * self._seen
        if turns == 1:
            return (after @ self._reward.T).max(axis=2).sum(axis=1)
        total = np.zeros(len(after))
        for action, seen in zip(*np.nonzero(after.sum(axis=2)), strict=True):
            total[action] += self._at(after[action, seen], turns).max()
        return total
