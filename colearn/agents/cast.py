"""Who sits in which seat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from colearn.contract import Cast


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
    """The agents' players change seats from episode to episode: in episode e the player of seat k
    sits in seat k + e. Wrong when seats are roles that a player's prompt is written for."""

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


NAMES = {"own": ":Own", "swap": ":Swap"}
"""The shipped casts, by name."""
