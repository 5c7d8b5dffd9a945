"""PPO's critics: each agent's value of its own history, token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from colearn.contract import Critic, Segment
from colearn.types import Node


@dataclass(frozen=True, kw_only=True)
class Tokenwise(Critic):
    """V_i before every token of an action, of the very ids that the agent has read and said: the
    value model and the agents it values must share a tokenizer.

    Wrong when actions are long and rewards few: most of what it learns is to copy one number from
    token to token. Wrong when a role is called often with long prompts: all of its calls in an
    episode stand in one row, whose mask grows with the square. Use `Decentralized`, which reads one
    value an action.
    """

    value: Literal["token"] = field(default="token", init=False)
    global_info: bool = field(default=False, init=False)

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {agent: (agent,) for agent in agents}

    def seen(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        shown = node.observations.get(reader)
        return () if shown is None else (Segment(reader, shown.text),)

    def done(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        return (Segment(reader, node.actions[reader].text),) if reader in node.actions else ()
