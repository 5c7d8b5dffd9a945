"""Small trees by hand, for tests that compute by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from colearn.contract.types import Action, Node, Observation, Tree


def tree(
    edges: Sequence[tuple[int, float]],
    *,
    agents: tuple[str, ...] = ("alice", "bob"),
    acting: Mapping[int, tuple[str, ...]] | None = None,
    cut: tuple[int, ...] = (),
    truncated: Mapping[int, int] | None = None,
    global_info: str = "",
    privileged_info: str = "",
) -> Tree[Any]:
    """Node 0 is the root; edge k is (parent, reward) of node k + 1, parents first.

    All agents act at every node with a child, or those that `acting` names for the node. `cut`
    names leaves at which the episode had not ended. `truncated` gives the missing turns of leaves
    at which the episode was truncated; whoever `acting` names for such a leaf, or everyone, would
    have acted there.
    """
    missing = truncated or {}
    inner = {parent for parent, _ in edges} | set(cut)
    who = {node: (acting or {}).get(node, agents) for node in inner}
    nodes: list[Node[Any]] = []
    for index, (parent, reward) in enumerate([(None, 0.0), *edges]):
        siblings = sum(node.parent == parent for node in nodes)
        before = () if parent is None else who[parent]
        nodes.append(
            Node(
                index=index,
                parent=parent,
                path=() if parent is None else (*nodes[parent].path, siblings),
                state=index,
                observations={
                    a: Observation(f"{a} sees {index}", (1,)) for a in who.get(index, ())
                },
                actions={a: Action(f"{a} makes {index}", (2,), (-1.0,)) for a in before},
                reward=reward,
                done=index not in inner and index not in missing,
                missing_turns=missing.get(index, 0),
                unanswered={
                    a: Observation(f"{a} sees {index}", (1,))
                    for a in (acting or {}).get(index, agents)
                    if index in missing
                },
                global_info=global_info,
                privileged_info=privileged_info,
            )
        )
    return Tree(item=None, episode=0, agents=agents, nodes=tuple(nodes))


def chain(rewards: Sequence[float], **settings: Any) -> Tree[Any]:
    return tree([(turn, reward) for turn, reward in enumerate(rewards)], **settings)
