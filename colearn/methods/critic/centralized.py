"""Centralised critic (CoLLM-CC): one value of the joint history for the whole team."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from colearn.contract.types import Node

from .stream import StreamCritic, Texts

TEAM = "team"
"""Name of the team's single reader, that is, of the team's joint history as input of the value
model. The value model, the checkpoint and the metrics use this name."""


@dataclass(frozen=True, kw_only=True)
class Centralized(StreamCritic):
    """V(h_t) or Q(h_t, a_t) of all agents' histories in one stream (CoLLM, Eq. 4 and 5).

    For each turn, the stream contains each agent's observation, m_t, the privileged information,
    and then each agent's action, in the task's order of agents. Each of these pieces of text is
    marked with its role and turn. An observation that all agents share is written once, under the
    role "all".

    Wrong when the joint stream exceeds the critic's window: use `Decentralized`.
    """

    value: Literal["v", "q"] = "v"
    global_info: bool = True
    privileged_info: bool = True
    """Whether the critic's input includes privileged information, such as the hidden state."""

    def readers(self, agents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {TEAM: tuple(agents)}

    def seen(self, node: Node[Any], reader: str) -> Texts:
        if not node.shown:
            return ()  # V = 0 at the end: nothing to read
        texts = [(agent, observation.whole) for agent, observation in node.shown.items()]
        if len(texts) > 1 and len({text for _, text in texts}) == 1:
            texts = [("all", texts[0][1])]
        return (*texts, *information(node, self.global_info, self.privileged_info))

    def done(self, node: Node[Any], reader: str) -> Texts:
        return tuple((agent, action.text) for agent, action in node.actions.items())


def information(node: Node[Any], global_info: bool, privileged_info: bool) -> Texts:
    """Return the texts of m_t and of the privileged information. A disabled or empty text is
    omitted."""
    texts = (
        ("global", global_info, node.global_info),
        ("hidden", privileged_info, node.privileged_info),
    )
    return tuple((role, text) for role, on, text in texts if on and text)
