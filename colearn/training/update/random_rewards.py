"""Detects random rewards: rewards that differ for equal joint actions after equal joint
histories."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from colearn.contract.types import Node, Tree


def rewards_are_random(trees: Sequence[Tree[Any]]) -> bool:
    """Whether, in `trees`, two equal joint actions after equal joint histories earned different
    rewards.

    A joint history is the text that all agents have read and written. The item and the task's state
    are ignored, because the team sees neither. A result of False does not prove that rewards are
    deterministic: if no joint history occurs twice, no rewards can be compared.
    """
    numbers: dict[Hashable, int] = {}
    paid: dict[int, Hashable] = {}
    for tree in trees:
        histories: list[int] = []  # by node: the number of its joint history
        for node in tree.nodes:
            edge = -1
            if node.parent is not None:
                joint_action = _by_agent(
                    {agent: action.text for agent, action in node.actions.items()}
                )
                edge = numbers.setdefault((histories[node.parent], joint_action), len(numbers))
                reward = _reward(node)
                if paid.setdefault(edge, reward) != reward:
                    return True
            joint_observation = _by_agent(
                {agent: observation.whole for agent, observation in node.observations.items()}
            )
            histories.append(numbers.setdefault((edge, joint_observation), len(numbers)))
    return False


def _by_agent(texts: Mapping[str, str]) -> Hashable:
    return tuple(sorted(texts.items()))


def _reward(node: Node[Any]) -> Hashable:
    local, earned = node.local_rewards, node.earned
    return node.reward, tuple(sorted(local.items())), tuple(sorted(earned.items()))
