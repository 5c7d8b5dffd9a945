"""Converts training episodes between trees and lines of trees.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from colearn.contract.checked_task import item_name
from colearn.contract.types import Action, Node, Observation, Tree

from .fields import RecordedTree


def tree_of(recorded: RecordedTree) -> Tree[None]:
    """Return the tree that a line of trees.jsonl records. The tree's texts have no token ids."""
    nodes: list[Node[None]] = []
    children = [0] * len(recorded.nodes)
    for index, node in enumerate(recorded.nodes):
        path: tuple[int, ...] = ()
        if node.parent is not None:
            path = (*nodes[node.parent].path, children[node.parent])
            children[node.parent] += 1
        nodes.append(
            Node(
                index=index,
                parent=node.parent,
                path=path,
                state=None,
                observations={a: Observation(t, ()) for a, t in node.observations.items()},
                global_info=node.global_info,
                privileged_info=node.privileged_info,
                actions={agent: Action(text) for agent, text in node.actions.items()},
                reward=node.reward,
                local_rewards=node.local_rewards,
                earned={(turn, agent): reward for turn, agent, reward in node.earned},
                done=node.done,
                candidate_of=node.candidate_of,
                cut=node.cut,
                missing_turns=node.missing_turns,
            )
        )
    return Tree(
        item=recorded.item,
        episode=0,
        agents=recorded.agents,
        nodes=tuple(nodes),
        cast=recorded.cast,
    )


def recorded_tree(iteration: int, tree: Tree[Any]) -> dict[str, Any]:
    """Return a tree as a line of trees.jsonl. Empty fields are left out."""
    return {
        "iteration": iteration,
        "item": item_name(tree.item),
        "agents": list(tree.agents),
        "cast": dict(tree.cast),
        "nodes": [_plain(node) for node in tree.nodes],
    }


def _plain(node: Node[Any]) -> Mapping[str, Any]:
    fields = {
        "parent": node.parent,
        "observations": {
            agent: observation.whole for agent, observation in node.observations.items()
        },
        "global_info": node.global_info,
        "privileged_info": node.privileged_info,
        "actions": {agent: action.text for agent, action in node.actions.items()},
        "local_rewards": dict(node.local_rewards),
        "earned": [[turn, agent, reward] for (turn, agent), reward in node.earned.items()],
        "done": node.done,
        "candidate_of": node.candidate_of,
        "cut": node.cut,
        "missing_turns": node.missing_turns or None,
    }
    filled = {name: value for name, value in fields.items() if _holds(value)}
    return {**filled, "reward": node.reward}


def _holds(value: Any) -> bool:
    return value is not None and value is not False and value not in ("", {}, [])
