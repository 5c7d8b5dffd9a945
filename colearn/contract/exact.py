"""What exact evaluation reads of a task: a finite Dec-POMDP, or a game with enumerable
decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from colearn.exact.model import TabularModel


class FiniteProblem(Protocol):
    """A finite Dec-POMDP with a known model."""

    model: TabularModel
    reward_scale: float

    def action_words(self, agent: str) -> tuple[str, ...]:
        """The legal replies, in the order of the model's actions."""
        ...

    def shown(self, agent: str, turn: int, observation: int | None) -> str:
        """The text that `observe` returns at `turn` for the index `observation` of the Dec-POMDP
        model; at turn 0, `observation` is None."""
        ...

    def rejection_reward(self, turn: int) -> float:
        """The scaled reward for an illegal reply at `turn`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An information state: a point at which an agent chooses, with its private history."""

    key: str
    """The name that the task gives to this decision; unique among the agent's decisions."""
    history: tuple[tuple[str, str], ...]
    """Earlier observations and answers of the agent, by turn."""
    observation: str
    """The current observation."""
    replies: tuple[str, ...]
    """The valid replies."""


class EnumeratedGame(Protocol):
    """A game with enumerable decisions that computes the measures of a joint policy itself."""

    def decisions(self, agent: str) -> Sequence[Decision]:
        """All decisions of the agent that valid replies can reach."""
        ...

    def judge(self, policy: Mapping[str, Mapping[str, Sequence[float]]]) -> Mapping[str, float]:
        """Exact metrics of a joint policy. `policy` gives the probability of each reply, by agent
        and `Decision.key`; the probabilities of one decision sum to 1."""
        ...
