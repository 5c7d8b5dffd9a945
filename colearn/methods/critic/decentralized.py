"""Decentralised critics (CoLLM-DC): one value per agent, predicted from that agent's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract.types import Node

from .centralized import information
from .stream import StreamCritic, Texts


@dataclass(frozen=True, kw_only=True)
class Decentralized(StreamCritic):
    """Predicts V_i(h_{i,t}) or Q_i(h_{i,t}, a_{i,t}) for each agent i (CoLLM, Eq. 2 and 3).

    The critic's input for agent i contains only the observations and actions of agent i, and m_t if
    `global_info` is on. In the paper, both kinds of critics receive m_t. Privileged information is
    off by default: in a card game, each player's critic would otherwise see all hands.

    Wrong when an agent's value depends on the other agents' policies: the critic's target then
    shifts as they learn. Use `Centralized`.
    """

    value: Literal["v", "q"] = "v"
    global_info: bool = True
    privileged_info: bool = False
    """Whether the critic's input includes privileged information, so that the critic predicts
    values of the full state."""

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {agent: (agent,) for agent in agents}

    def seen(self, node: Node[Any], reader: str) -> Texts:
        if reader not in node.shown:
            return ()
        own_text = (reader, node.shown[reader].whole)
        return (own_text, *information(node, self.global_info, self.privileged_info))

    def done(self, node: Node[Any], reader: str) -> Texts:
        return ((reader, node.actions[reader].text),) if reader in node.actions else ()
