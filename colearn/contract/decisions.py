"""A task whose players can be asked everywhere: every decision written out, and a judge of the
answers.

Where a game is small, a policy need not be sampled: it is read from the model at every decision
that can come up, and measured exactly (`evaluation.exact`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A point at which an agent chooses, as it alone sees it: an information state."""

    key: str
    """The task's name for it; no other decision of the agent has it."""
    history: tuple[tuple[str, str], ...]
    """What the agent read and answered before, turn by turn."""
    observation: str
    """What it reads now."""
    replies: tuple[str, ...]
    """The valid ones."""


@runtime_checkable
class QueriedTask(Protocol):
    """What a task offers, beside its contract, to be measured without sampling."""

    agents: tuple[str, ...]

    def decisions(self, agent: str) -> Sequence[Decision]:
        """All that can come up while every reply is valid."""
        ...

    def judge(self, policy: Mapping[str, Mapping[str, Sequence[float]]]) -> Mapping[str, float]:
        """Exact metrics of a joint policy: by agent and `Decision.key`, the probability of each
        reply, which sum to 1."""
        ...
