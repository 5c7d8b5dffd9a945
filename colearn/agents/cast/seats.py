"""Stateless casts: every agent in its own seat, rotated seats, fixed opponents. A seat is an agent
of the task; the cast decides which player acts in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colearn.contract import Cast
from colearn.contract.bounds import Share
from colearn.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Own(Cast):
    """Every agent plays its own seat."""

    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        return {agent: agent for agent in agents}


@dataclass(frozen=True, kw_only=True)
class Swap(Cast):
    """Players rotate: in episode e, the player of seat k takes seat k + e, modulo the number of
    seats. Wrong when seats are roles and each player's prompt is written for one role."""

    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        count = len(agents)
        return {agents[(k + episode) % count]: player for k, player in enumerate(agents)}


@dataclass(frozen=True, kw_only=True)
class Against(Cast):
    """In episode e, agent e mod n plays its own seat; every other seat is taken by one of
    `players`, drawn at random for each seat. These opponents are not trained: they are programs,
    untrained models or servers.

    Wrong as the only cast in training, since a policy that beats one opponent may lose to another
    (MARSHAL, Table 3). `self_play` is the fraction of episodes in which all agents play their own
    seats.
    """

    self_play: Share = 0.0
    """Fraction of episodes without opponents, drawn at random."""

    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        rivals = [name for name in players if name not in agents]
        if not rivals:
            raise ConfigError("players: no opponent; add one")
        if rng.random() < self.self_play:
            return {agent: agent for agent in agents}
        kept = agents[episode % len(agents)]
        return {
            agent: agent if agent == kept else rivals[int(rng.integers(len(rivals)))]
            for agent in agents
        }
