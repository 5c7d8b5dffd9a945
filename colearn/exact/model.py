"""A finite Dec-POMDP as arrays. It holds the content of a `.dpomdp` file and is the input of exact
methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class TabularModel:
    """A finite Dec-POMDP (S, A, T, O, R, b_0).

    Joint actions and joint observations are numbered in row-major order over the agents: the last
    agent's index varies fastest.

    There is no observation before the first joint action. Rewards are to be maximised; the costs of
    a file with `values: cost` are negated when it is read.
    """

    agents: tuple[str, ...]
    states: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    """By agent: the names of the agent's actions."""
    observations: tuple[tuple[str, ...], ...]
    """By agent: the names of the agent's observations."""
    start: Array
    """b_0, shape [S]."""
    transition: Array
    """T(s' | s, a), shape [joint actions, S, S']."""
    observation: Array
    """O(o | a, s'), shape [joint actions, S', joint observations]."""
    reward: Array
    """R(s, a, s', o), shape [joint actions, S, S', joint observations]; may be a broadcast view."""
    discount: float = 1.0

    @cached_property
    def action_shape(self) -> tuple[int, ...]:
        """|A_i| of every agent."""
        return tuple(len(names) for names in self.actions)

    @cached_property
    def observation_shape(self) -> tuple[int, ...]:
        """|O_i| of every agent."""
        return tuple(len(names) for names in self.observations)

    @cached_property
    def expected_reward(self) -> Array:
        """R(s, a): the mean over s' and o, shape [joint actions, S]."""
        return np.einsum(
            "ast,ato,asto->as", self.transition, self.observation, self.reward, optimize=True
        )

    def joint_action(self, numbers: tuple[int, ...]) -> int:
        """Compute the joint action's index from the agents' action indices."""
        return int(np.ravel_multi_index(numbers, self.action_shape))

    def joint_observation(self, numbers: tuple[int, ...]) -> int:
        """Compute the joint observation's index from the agents' observation indices."""
        return int(np.ravel_multi_index(numbers, self.observation_shape))
