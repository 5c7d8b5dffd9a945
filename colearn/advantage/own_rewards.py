"""The rewards from which one agent's advantages are computed."""

from __future__ import annotations

from typing import Any

from colearn.types import Credited


def own_rewards(episode: Credited[Any], agent: str) -> list[float]:
    """One agent's credited reward of each edge, by the node that the edge leads to; NaN if
    it is not scored."""
    return [rewards.get(agent, 0.0) for rewards in episode.rewards]
