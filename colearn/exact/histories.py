"""All reachable joint action-observation histories of a model, as index arrays.

A joint history is h = (a_0, o_1, a_1, o_2, ...) of joint actions and joint observations. The
private history of agent i is the sequence of agent i's actions and observations in h. Reachability
depends on the model alone, so the arrays are built once. Each policy is then evaluated by gathers
and sums over these arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colearn.errors import ConfigError

from .model import Array, TabularModel

Index = NDArray[np.int64]

LIMIT = 2**27
"""Maximum number of elements in an array: 1 GiB of float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TurnHistories:
    """The joint histories of one turn, ordered by (parent, joint action, joint observation)."""

    parent: Index
    """The history of the previous turn, shape [histories]; 0 at turn 0."""
    joint_action: Index
    """The last joint action, shape [histories]; 0 at turn 0."""
    joint_observation: Index
    """The last joint observation, shape [histories]; 0 at turn 0."""
    private: tuple[Index, ...]
    """By agent: the index of the agent's private history within the turn, shape [histories]."""
    counts: tuple[int, ...]
    """By agent: the number of the agent's private histories at this turn."""
    probability: Array
    """P(o_1..o_t | a_0..a_{t-1}), shape [histories]; positive."""
    belief: Array
    """P(o_1..o_t, s_t = s | a_0..a_{t-1}), shape [histories, S], not normalised."""
    reward: Array
    """sum_s belief[s] R(s, a), shape [histories, joint actions], not normalised."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Step:
    """One agent's private histories of a turn, represented as extensions of the agent's histories
    one turn earlier."""

    parent: Index
    action: Index
    observation: Index


class JointHistories:
    """All reachable joint histories of turns 0 to H - 1, with beliefs and expected rewards.

    Private histories are numbered within their turn in lexicographic order. Raises ConfigError if
    the horizon needs an array of more than `LIMIT` numbers.
    """

    def __init__(self, model: TabularModel, horizon: int) -> None:
        if horizon < 1:
            raise ConfigError(f"horizon: {horizon} leaves no turn to act in; give at least 1")
        self.model = model
        self.horizon = horizon
        turns = [_first(model)]
        self._steps: list[tuple[_Step, ...]] = []
        for _ in range(horizon - 1):
            turn, steps = _extend(model, turns[-1], len(turns))
            turns.append(turn)
            self._steps.append(steps)
        self.turns = tuple(turns)

    def private(self, agent: str) -> list[list[tuple[int, ...]]]:
        """By turn: the agent's reachable histories (a_0, o_1, a_1, o_2, ...), in index order.

        Turn t has tuples of 2t numbers; turn 0 has the empty tuple.
        """
        number = self.model.agents.index(agent)
        by_turn: list[list[tuple[int, ...]]] = [[()]]
        for steps in self._steps:
            step, before = steps[number], by_turn[-1]
            columns = (step.parent.tolist(), step.action.tolist(), step.observation.tolist())
            by_turn.append([(*before[p], a, o) for p, a, o in zip(*columns, strict=True)])
        return by_turn


def _first(model: TabularModel) -> TurnHistories:
    zero = np.zeros(1, dtype=np.int64)
    belief = model.start[None, :]
    return TurnHistories(
        parent=zero,
        joint_action=zero,
        joint_observation=zero,
        private=tuple(zero for _ in model.agents),
        counts=tuple(1 for _ in model.agents),
        probability=belief.sum(axis=1),
        belief=belief,
        reward=belief @ model.expected_reward.T,
    )


def _extend(
    model: TabularModel, turn: TurnHistories, number: int
) -> tuple[TurnHistories, tuple[_Step, ...]]:
    joint_actions, states, joint_observations = model.observation.shape
    _check_size(len(turn.parent) * joint_actions * max(states, joint_observations), number)
    predicted = np.einsum("hs,ast->hat", turn.belief, model.transition, optimize=True)
    probabilities = np.einsum("hat,ato->hao", predicted, model.observation, optimize=True)
    parent, action, observation = np.nonzero(probabilities > 0.0)
    _check_size(len(parent) * max(states, joint_actions), number)
    belief = predicted[parent, action] * model.observation[action, :, observation]

    agent_actions = np.unravel_index(action, model.action_shape)
    agent_observations = np.unravel_index(observation, model.observation_shape)
    private, steps = [], []
    for agent in range(len(model.agents)):
        shape = (turn.counts[agent], model.action_shape[agent], model.observation_shape[agent])
        before = turn.private[agent][parent]
        key = np.ravel_multi_index((before, agent_actions[agent], agent_observations[agent]), shape)
        known, numbers = np.unique(key, return_inverse=True)
        private.append(numbers)
        before_known, action_known, observation_known = np.unravel_index(known, shape)
        steps.append(_Step(parent=before_known, action=action_known, observation=observation_known))
    extended = TurnHistories(
        parent=parent,
        joint_action=action,
        joint_observation=observation,
        private=tuple(private),
        counts=tuple(len(step.parent) for step in steps),
        probability=belief.sum(axis=1),
        belief=belief,
        reward=belief @ model.expected_reward.T,
    )
    return extended, tuple(steps)


def _check_size(numbers: int, turn: int) -> None:
    if numbers > LIMIT:
        raise ConfigError(
            f"horizon: the joint histories of turn {turn} take an array of {numbers} numbers "
            f"(at most {LIMIT}); lower it to {turn}"
        )
