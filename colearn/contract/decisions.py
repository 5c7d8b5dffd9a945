"""Interface of tasks with enumerable decisions and an exact measure of a joint policy.

In a small game a policy need not be sampled: `evaluation.exact` reads it from the model at every
reachable decision, and the task measures it exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An information state: a point at which an agent chooses, with its private history."""

    key: str
    """The task's name for it, unique within the agent."""
    history: tuple[tuple[str, str], ...]
    """Earlier observations and answers of the agent, by turn."""
    observation: str
    """The current observation."""
    replies: tuple[str, ...]
    """The valid replies."""


@runtime_checkable
class QueriedTask(Protocol):
    """Additional methods of a task that can be measured without sampling."""

    agents: tuple[str, ...]

    def decisions(self, agent: str) -> Sequence[Decision]:
        """All decisions reachable with valid replies."""
        ...

    def judge(self, policy: Mapping[str, Mapping[str, Sequence[float]]]) -> Mapping[str, float]:
        """Exact metrics of a joint policy, given as the probability of each reply (they sum to 1)
        by agent and `Decision.key`."""
        ...
