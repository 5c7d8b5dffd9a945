"""The decentralised critics of CoLLM-DC: each agent's value of its own history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract import Segment
from colearn.types import Node

from .centralized import told
from .stream import StreamCritic


@dataclass(frozen=True, kw_only=True)
class Decentralized(StreamCritic):
    """V_i(h_{i,t}) or Q_i(h_{i,t}, a_{i,t}), one reader per agent (CoLLM, Eq. 2 and 3).

    A reader sees its agent's observations and actions only, and m_t where it is on: the paper
    gives it to both critics. What no agent sees is for central critics, unless it is asked for:
    players of a card game may each have a value that is told all hands.

    Wrong when an agent's value hangs on what the others are learning: its target then moves with
    them; use `Centralized`.
    """

    value: Literal["v", "q"] = "v"
    global_info: bool = True
    privileged_info: bool = False
    """Read what no agent sees as well, which makes it a critic of the state."""

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {agent: (agent,) for agent in agents}

    def seen(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        if reader not in node.observations:
            return ()
        own = Segment(reader, node.observations[reader].text)
        return (own, *told(node, self.global_info, self.privileged_info))

    def done(self, node: Node[Any], reader: str) -> Sequence[Segment]:
        return (Segment(reader, node.actions[reader].text),) if reader in node.actions else ()
