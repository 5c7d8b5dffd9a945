"""Computes action weights with which all groups of a model's actions have equal weight, regardless
of group size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from colearn.contract import Advantage, Advantages, Episodes
from colearn.types import Tree

ModelOf = Callable[[Tree[Any], str], str | None]
"""The trained model that plays an agent's seat, if any."""


def equal_groups(
    advantages: Advantages, part: Advantage, episodes: Episodes, model_of: ModelOf
) -> Advantages:
    """Returns advantages multiplied by N / (P n), for a model with N actions in P groups, where n
    is the number of actions in the action's group (`Advantage.weight_group`). The loss's mean over
    actions then equals the mean of the group means."""
    groups: dict[tuple[int, str], tuple[str, Hashable]] = {}
    sizes: Counter[tuple[str, Hashable]] = Counter()
    for place, episode in enumerate(episodes):
        for agent in episode.agents:
            group, model = part.weight_group(episode, agent), model_of(episode, agent)
            acted = sum(agent in by_agent for by_agent in advantages[place])
            if group is not None and model is not None and acted:
                groups[place, agent] = model, group
                sizes[model, group] += acted
    if not groups:
        return advantages
    actions: Counter[str] = Counter()
    counts: Counter[str] = Counter(model for model, _ in sizes)
    for (model, _), size in sizes.items():
        actions[model] += size

    def weighed(place: int, agent: str, advantage: Any) -> Any:
        if (place, agent) not in groups:
            return advantage
        model, _ = key = groups[place, agent]
        return advantage * actions[model] / (counts[model] * sizes[key])

    return [
        tuple(
            {agent: weighed(place, agent, advantage) for agent, advantage in by_agent.items()}
            for by_agent in tree
        )
        for place, tree in enumerate(advantages)
    ]
