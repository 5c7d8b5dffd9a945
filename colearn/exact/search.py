"""Exact search for the best deterministic joint policy of small problems.

Depth-first branch and bound over turns. A node fixes the decision rules of all earlier turns. The
node's bound is the reward that these rules earn plus an upper bound on the value to go. The node's
children are the joint decision rules of the node's turn, in decreasing order of their bounds, as
long as a bound exceeds the incumbent. At the last turn the bound is the reward itself, and the last
agent's rule is a best response. Two nodes of a turn with the same distribution of state and cells
have the same future, so the node with the lower reward is dropped.

The bound is the value of the underlying POMDP, in which one agent sees all observations. The bound
never removes an optimum: from any node on, every joint policy of the team is also a policy of that
single agent from the same beliefs.

Values are exact up to rounding: beliefs and cells count as equal at 12 decimals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import get_args

import numpy as np

from colearn.errors import ConfigError, nearest

from ._search_bound import POMDPBound
from ._search_rules import Rules, best_rules, joint_rules
from ._search_stage import DIGITS, Information, Stage, first_stage, next_stage
from .model import Array, TabularModel

NODES = 100_000
RULES_PER_NODE = 1_000
"""Number of partial decision rules that together count as one node, because they take about as long
as a node."""
MARGIN = 1e-10
"""Minimum gain over the incumbent that does not count as rounding error, as a fraction of the
incumbent's value.
"""

DecisionRule = Mapping[tuple[int, ...], int]
"""Maps an agent's information to the agent's action, for all information that is reachable under
the joint policy."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """An optimal joint policy for one information structure."""

    value: float
    """J of `policy`, the maximum over deterministic joint policies with this information."""
    policy: Mapping[str, tuple[DecisionRule, ...]]
    """Agent -> decision rules by turn. The keys of the rule of turn t are the agent's observations
    (o_1, .., o_t) with "history", (o_t,) with "memoryless" and () with "open_loop". At turn 0 the
    key is ()."""
    nodes: int
    """The number of partial joint policies that the search visited."""


def best_joint_policy(
    model: TabularModel,
    horizon: int,
    *,
    information: Information = "history",
    discount: float = 1.0,
    limit: int = NODES,
) -> Solution:
    """Find a best deterministic joint policy of `horizon` turns.

    `information` selects what an agent's action may depend on besides the turn: all its
    observations ("history"; they determine its earlier actions), the latest observation
    ("memoryless"), or nothing ("open_loop"). Raises ConfigError if more than `limit` nodes are
    needed; every thousand partial decision rules count as one more node.
    """
    if horizon < 1:
        raise ConfigError(f"horizon: {horizon} leaves no turn to act in; give at least 1")
    if information not in get_args(Information):
        known = nearest(information, get_args(Information))
        raise ConfigError(f"information: '{information}' is unknown; {known}")
    search = _Search(model, horizon, information, discount, limit)
    search.visit(first_stage(model), 0.0, ())
    return Solution(
        value=search.best,
        policy=_written_out(model, search.best_path, information),
        nodes=search.nodes,
    )


_Path = tuple[tuple[Stage, Rules], ...]


class _Search:
    def __init__(
        self,
        model: TabularModel,
        horizon: int,
        information: Information,
        discount: float,
        limit: int,
    ) -> None:
        self.model, self.horizon, self.information = model, horizon, information
        self.discount, self.limit = discount, limit
        self.bound = POMDPBound(model, horizon, discount)
        self.best = -math.inf
        self.best_path: _Path = ()
        self.nodes = 0
        self._rules = 0
        self._earned: dict[tuple[int, tuple[int, ...], bytes], float] = {}

    def visit(self, stage: Stage, earned: float, path: _Path) -> None:
        """Search the subtree of the node at `path`; the turns before the node earn `earned`."""
        turn = len(path)
        self.nodes += 1
        self._check_limit()
        numbers = stage.weights.round(DIGITS).tobytes()
        key = (turn, stage.weights.shape, blake2b(numbers, digest_size=16).digest())
        if earned <= self._earned.get(key, -math.inf):
            return
        self._earned[key] = earned

        game = self._game(stage, turn)
        if turn == self.horizon - 1:
            last = best_rules(game, self._needed(earned), self._count)
            if last is not None:
                self.best, self.best_path = earned + last[0], (*path, (stage, last[1]))
            return
        for _, rules in joint_rules(game, lambda: self._needed(earned), self._count):
            after = next_stage(self.model, stage, rules, self.information)
            further = earned + self._reward(stage, rules, turn)
            self.visit(after, further, (*path, (stage, rules)))

    def _count(self, rules: int) -> None:
        self._rules += rules
        self._check_limit()

    def _check_limit(self) -> None:
        if self.nodes + self._rules // RULES_PER_NODE > self.limit:
            raise ConfigError(
                f"horizon: {self.horizon} is too large for an exact search "
                f"(more than {self.limit} nodes); lower it"
            )

    def _needed(self, earned: float) -> float:
        """Reward that the remaining turns must exceed to beat the incumbent."""
        margin = MARGIN * max(1.0, abs(self.best)) if self.best_path else 0.0
        return self.best + margin - earned

    def _game(self, stage: Stage, turn: int) -> Array:
        """Compute bounds on the value to go, shape [cells by agent.., actions by agent..]."""
        at = np.nonzero(stage.weights.sum(axis=-1))
        game = np.zeros((*stage.weights.shape[:-1], len(self.model.transition)))
        game[at] = self.bound.action_values(stage.weights[at], self.horizon - turn)
        discounted = self.discount**turn * game
        return discounted.reshape(*stage.weights.shape[:-1], *self.model.action_shape)

    def _reward(self, stage: Stage, rules: Rules, turn: int) -> float:
        joint = np.ravel_multi_index(np.ix_(*rules), self.model.action_shape)
        mean = (stage.weights * self.model.expected_reward[joint]).sum()
        return float(self.discount**turn * mean)


def _information(observations: tuple[int, ...], information: Information) -> tuple[int, ...]:
    """The part of an agent's observations that the agent's action may depend on."""
    if information == "open_loop":
        return ()
    return observations if information == "history" else observations[-1:]


def _written_out(
    model: TabularModel, path: _Path, information: Information
) -> Mapping[str, tuple[DecisionRule, ...]]:
    """Convert the rules of `path`: use observations instead of cells as keys."""
    policy: dict[str, tuple[DecisionRule, ...]] = {}
    for i, agent in enumerate(model.agents):
        cells: dict[tuple[int, ...], int] = {(): 0}
        by_turn: list[DecisionRule] = []
        for turn, (stage, rules) in enumerate(path):
            if turn:
                cells = {
                    _information((*known, o), information): int(stage.update[i][cell, o])
                    for known, cell in cells.items()
                    for o in range(model.observation_shape[i])
                    if stage.update[i][cell, o] >= 0
                }
            by_turn.append({known: int(rules[i][cell]) for known, cell in cells.items()})
        policy[agent] = tuple(by_turn)
    return policy
