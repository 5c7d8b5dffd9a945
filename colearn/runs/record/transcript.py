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

    The task's `render` provides the text of the last state, `picture` the picture after each turn.
    """
    checked = CheckedTask(task, item_name(tree.item))
    chain: Sequence[Node[Any]] = tree.ancestry(tree.nodes[-1].index)
    return {
        "episode": tree.episode,
        "item": str(tree.item),
        "return": as_reward(tree.returns(1.0)[0]),
        "metrics": dict(chain[-1].metrics),
        "picture": checked.render(chain[-1].state),
        "turns": [
            {
                "reward": after.reward,
                "observations": {a: o.whole for a, o in before.observations.items()},
                "actions": {a: action.text for a, action in after.actions.items()},
                **_critic_information(before),
                **_plain_picture(checked, after.state),
            }
            for before, after in itertools.pairwise(chain)
        ],
    }


def _critic_information(node: Node[Any]) -> dict[str, str]:
    """Return the global information m_t and the privileged information of a node, as far as the
    node has them."""
    texts = {"global_info": node.global_info, "privileged_info": node.privileged_info}
    return {name: text for name, text in texts.items() if text}


def _plain_picture(checked: CheckedTask, state: Any) -> dict[str, Any]:
    picture = checked.picture(state)
    return {} if picture is None else {"picture": picture}
