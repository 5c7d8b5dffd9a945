"""Tabular critics (exact, fitted by TD(0), untrained) and their policy gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _propositions_estimators import Advantages, Places
from _propositions_team import Array, Rows, Team, credited, rows_of

from colearn.contract import AgentValues
from colearn.contract.types import Tree
from colearn.exact.histories import TurnHistories
from colearn.methods.advantage.gae import GAE

TEAM = "team"


@dataclass(frozen=True, eq=False, kw_only=True)
class TableCritic:
    """V by number: of the joint history with a central critic, of the agent's own without."""

    team: Team
    central: bool
    values: Mapping[str, Array]
    """By reader: TEAM, or every agent."""

    def reader(self, agent: str) -> str:
        return TEAM if self.central else agent

    def number(self, agent: str, rows: Rows) -> int:
        return self.team.joint_of[rows] if self.central else rows[self.team.agents.index(agent)]

    def read(self, places: Places) -> list[AgentValues]:
        """What `Advantage` takes: a value at every node where somebody acts."""
        values: list[AgentValues] = []
        for rows in places:
            by_agent = {}
            for agent in self.team.agents:
                table = self.values[self.reader(agent)]
                by_agent[agent] = [
                    None if at is None else float(table[self.number(agent, at)]) for at in rows
                ]
            values.append(by_agent)
        return values


def td_error(critic: TableCritic) -> Advantages:
    """Eq. 2 (decentral) or Eq. 4 (central) with this critic."""
    return lambda trees, places: GAE()(credited(trees), critic.read(places))


def fresh(team: Team, central: bool) -> TableCritic:
    """V = 0, as the library's value head begins."""
    if central:
        return TableCritic(team=team, central=True, values={TEAM: np.zeros(len(team.joint_of))})
    zeros = {agent: np.zeros(len(team.tables[agent])) for agent in team.agents}
    return TableCritic(team=team, central=False, values=zeros)


def exact(team: Team, central: bool) -> TableCritic:
    """V(h), or V_i(h_i) = E[V(h) | h_i], of the policy that plays."""
    if central:
        values = {TEAM: np.concatenate(team.exact.joint_values)}
    else:
        values = {a: np.concatenate(team.exact.private_values[a]) for a in team.agents}
    return TableCritic(team=team, central=central, values=values)


def converged(team: Team, central: bool, trees: Sequence[Tree[Any]]) -> tuple[TableCritic, float]:
    """The fixed point of TD(0) on fixed chains, and how far from the exact values it is.

    Every sweep replaces V by the mean of the library's own targets r + V(h') at the history. As a
    history has one history before it, H sweeps reach the fixed point: the mean return of the
    chains through it. The distance is the root mean square over play, relative to the exact
    values'.
    """
    places = [rows_of(team, tree) for tree in trees]
    critic = fresh(team, central)
    for _ in range(team.horizon):
        critic = _sweep(critic, trees, places)
    truth = exact(team, central)
    weights = {TEAM: np.concatenate(team.exact.joint_probabilities)} if central else team.reached
    gap = sum(weights[r] @ (critic.values[r] - truth.values[r]) ** 2 for r in critic.values)
    return critic, math.sqrt(gap / sum(weights[r] @ truth.values[r] ** 2 for r in critic.values))


def _sweep(critic: TableCritic, trees: Sequence[Tree[Any]], places: Places) -> TableCritic:
    targets = GAE().targets(credited(trees), critic.read(places))
    sums = {reader: np.zeros(len(table)) for reader, table in critic.values.items()}
    visits = {reader: np.zeros(len(table)) for reader, table in critic.values.items()}
    # One reader gives the same value to all of its agents: read it once.
    agents = {critic.reader(agent): agent for agent in critic.team.agents}
    for rows, by_agent in zip(places, targets, strict=True):
        for reader, agent in agents.items():
            for at, target in zip(rows, by_agent[agent], strict=True):
                if at is not None and target is not None:
                    sums[reader][critic.number(agent, at)] += target
                    visits[reader][critic.number(agent, at)] += 1.0
    values = {reader: sums[reader] / np.maximum(1.0, visits[reader]) for reader in sums}
    return TableCritic(team=critic.team, central=critic.central, values=values)


def expected_gradient(critic: TableCritic) -> Array:
    """E of the estimator with this critic, exactly: sum over h of P(h) sum over a of
    grad pi_i(a | h) (R(h, a) + E[V(h') | h, a]); the baseline V(h) falls out."""
    team = critic.team
    slopes: dict[str, Array] = {}
    for i, agent in enumerate(team.agents):
        by_turn = []
        for t, turn in enumerate(team.histories.turns):
            worth = turn.reward
            if t + 1 < team.horizon:
                after = team.histories.turns[t + 1]
                values = _next_values(critic, agent, t + 1, after)
                worth = worth + _summed(turn, after, after.probability * values)
            chosen = team.exact.joint_probabilities[t] / turn.probability
            joint = worth.reshape(-1, *team.histories.model.action_shape)
            joint = np.moveaxis(joint, i + 1, 1)
            for j, other in enumerate(team.agents):
                if j != i:
                    row = team.policy[other][t][turn.private[j]]
                    row = row.reshape(len(row), 1, row.shape[1], *[1] * (joint.ndim - 3))
                    joint = (joint * row).sum(axis=2)
            total = np.zeros((turn.counts[i], joint.shape[1]))
            np.add.at(total, turn.private[i], chosen[:, None] * joint)
            by_turn.append(total)
        slopes[agent] = np.concatenate(by_turn)
    return team.through_softmax(slopes)


def _next_values(critic: TableCritic, agent: str, t: int, after: TurnHistories) -> Array:
    team = critic.team
    if critic.central:
        start = sum(len(turn.parent) for turn in team.histories.turns[:t])
        return critic.values[TEAM][start : start + len(after.parent)]
    i = team.agents.index(agent)
    return team.by_turn(agent, critic.values[agent])[t][after.private[i]]


def _summed(turn: TurnHistories, after: TurnHistories, worth: Array) -> Array:
    """The worth of each (history, joint action)'s children, summed."""
    pair = np.ravel_multi_index((after.parent, after.joint_action), turn.reward.shape)
    total: Array = np.bincount(pair, worth, minlength=turn.reward.size).astype(np.float64)
    return total.reshape(turn.reward.shape)
