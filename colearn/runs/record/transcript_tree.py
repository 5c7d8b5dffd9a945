"""Converts a recorded episode to a tree of texts, which critics read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from colearn.contract.types import Action, Node, Observation, Tree
from colearn.errors import ConfigError


def transcript_tree(episode: Mapping[str, Any], agents: Sequence[str]) -> Tree[None]:
    """Convert an episode in the format of episodes.jsonl to a chain of nodes. The episode has
    `turns` with `observations` and `actions` by agent, and optionally `reward`, `global_info` and
    `privileged_info`.

    The nodes have texts without token ids. Errors: ConfigError for an episode without a list
    `turns`, or with an agent that is not in `agents`.
    """
    turns = episode.get("turns")
    if not isinstance(turns, Sequence) or not all(isinstance(turn, Mapping) for turn in turns):
        raise ConfigError("an episode has a list 'turns', as a line of episodes.jsonl has")
    nodes: list[Node[None]] = []
    before: Mapping[str, Any] = {}
    for number, turn in enumerate([*turns, {}]):
        observations, actions = turn.get("observations", {}), before.get("actions", {})
        for agent in (*observations, *actions):
            if agent not in agents:
                raise ConfigError(
                    f"turns[{number}]: the critic knows no agent '{agent}'; it was trained with "
                    + ", ".join(agents)
                )
        nodes.append(
            Node(
                index=number,
                parent=number - 1 if number else None,
                path=(0,) * number,
                state=None,
                observations={agent: Observation(text, ()) for agent, text in observations.items()},
                global_info=turn.get("global_info", ""),
                privileged_info=turn.get("privileged_info", ""),
                actions={agent: Action(text) for agent, text in actions.items()},
                reward=before.get("reward", 0.0),
                done=number == len(turns),
            )
        )
        before = turn
    return Tree(item=episode.get("item"), episode=0, agents=tuple(agents), nodes=tuple(nodes))
