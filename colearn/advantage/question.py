"""Groups by question: all that an agent did for one item (GRPO carried over to a team)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from colearn.types import Node, Tree

from .agent_turn import AgentTurn


@dataclass(frozen=True, kw_only=True)
class Question(AgentTurn):
    """`AgentTurn` with the group key (environment, agent): the baseline of MAS + GRPO, which
    compares actions of different prompts and turns (Stronger-MAS, Sec. 5.2). The paper does not
    say whether it also pools the agents; here it does not.

    Wrong when histories diverge: an action is then judged by the situation it was taken in.
    """

    def key(self, tree: Tree[Any], before: Node[Any], agent: str) -> Hashable:
        return tree.episode, agent
