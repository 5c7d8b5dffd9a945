"""Advantages of 0: the other terms of the loss train alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colearn.contract import Advantage, AgentValues, Episodes, NodeAdvantages


@dataclass(frozen=True, kw_only=True)
class Zero(Advantage):
    """A = 0 for every action: no reward is read.

    Wrong unless the loss has another term, such as `teacher`: nothing is learned then.
    """

    def __call__(
        self, episodes: Episodes, values: Sequence[AgentValues] | None = None
    ) -> list[NodeAdvantages]:
        return [
            tuple(dict.fromkeys(node.actions, 0.0) for node in episode.nodes)
            for episode in episodes
        ]
