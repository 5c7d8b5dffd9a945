"""Converts an episode to a line of episodes.jsonl."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, item_name
from colearn.contract.scored import as_reward
from colearn.contract.types import Node, Tree


def transcript(task: DecPOMDP[Any, Any], tree: Tree[Any]) -> dict[str, Any]:
    """Return an episode as plain data: the observations, actions and reward of each turn.

    The task's `picture` provides the picture after each turn, and `render` the text of the state
    after each turn without a picture and after the last turn.
    """
    checked = CheckedTask(task, item_name(tree.item))
    chain: Sequence[Node[Any]] = tree.ancestry(tree.nodes[-1].index)
    return {
        "episode": tree.episode,
        "item": str(tree.item),
        "return": as_reward(tree.returns(1.0)[0]),
        "metrics": dict(chain[-1].metrics),
        "turns": [
            {
                "reward": after.reward,
                "observations": {a: o.whole for a, o in before.observations.items()},
                "actions": {a: action.text for a, action in after.actions.items()},
                **_critic_information(before),
                **_drawn(checked, after, last=after is chain[-1]),
            }
            for before, after in itertools.pairwise(chain)
        ],
    }


def _critic_information(node: Node[Any]) -> dict[str, str]:
    """Return the global information m_t and the privileged information of a node, as far as the
    node has them."""
    texts = {"global_info": node.global_info, "privileged_info": node.privileged_info}
    return {name: text for name, text in texts.items() if text}


def _drawn(checked: CheckedTask, node: Node[Any], *, last: bool) -> dict[str, Any]:
    picture = checked.picture(node.state)
    # a task may render its whole history, which would be recorded at every turn
    text = checked.render(node.state) if picture is None or last else None
    drawn = {"picture": picture, "rendered": text}
    return {name: value for name, value in drawn.items() if value is not None}
