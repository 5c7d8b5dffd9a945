"""Decentralised critics (CoLLM-DC): each agent's value of its own history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract import Segment
from colearn.types import Node

from .centralized import information
from .stream import StreamCritic


@dataclass(frozen=True, kw_only=True)
class Decentralized(StreamCritic):
    """V_i(h_{i,t}) or Q_i(h_{i,t}, a_{i,t}), one reader per agent (CoLLM, Eq. 2 and 3).

    A reader sees only its agent's observations and actions, plus m_t if `global_info` is on: the
    paper gives m_t to both kinds of critics. Privileged information is off by default; in a card
    game it would let each player's critic read all hands.

    Wrong when an agent's value depends on the other agents' policies: the critic's target then
    shifts as they learn. Use `Centralized`.
    """

    value: Literal["v", "q"] = "v"
    global_info: bool = True
    privileged_info: bool = False
    """Also read privileged information, which makes the critic a critic of the full state."""

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {agent: (agent,) for agent in agents}

    def seen(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        if reader not in node.observations:
            return ()
        own = Segment(reader, node.observations[reader].text)
        return (own, *information(node, self.global_info, self.privileged_info))

    def done(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        return (Segment(reader, node.actions[reader].text),) if reader in node.actions else ()
