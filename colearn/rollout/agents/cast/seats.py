"""Stateless casts: default seats, rotated seats, and fixed opponents. A seat is an agent of the
task, and the cast decides which player acts for that agent."""

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
    """Every agent of the task is played by the player of the same name."""

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
    """In episode e, agent e mod n keeps its seat. Each other seat is taken by one of `players`,
    drawn at random for each seat. The opponents in `players` are not trained; an opponent is a
    program, an untrained model or a server.

    Wrong as the only cast in training, since a policy that beats one opponent may lose to another
    (MARSHAL, Table 3). `self_play` is the fraction of episodes in which all agents keep their
    seats.
    """

    self_play: Share = 0.0
    """Fraction of episodes in which no opponent plays. These episodes are drawn at random."""

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
        own_seat = agents[episode % len(agents)]
        return {
            agent: agent if agent == own_seat else rivals[int(rng.integers(len(rivals)))]
            for agent in agents
        }
