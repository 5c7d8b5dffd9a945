"""Optional interfaces of tasks that are measured exactly (`evaluation.exact`).

In a small game, a policy can be measured without sampling: the language models compute the policy's
probabilities at every reachable decision. The task itself computes the metrics (`QueriedTask`), or
colearn computes them from the task's Dec-POMDP model (`FiniteTask`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colearn.contract.headline import Headline
from colearn.tabular.model import TabularModel

from .option import TaskOption


class ExactlyMeasured(TaskOption):
    """A task with exact measures of a joint policy."""

    exact_headline: Headline | None = None
    """The headline metric with `evaluation.exact`; None: the task's `headline`."""


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


class QueriedTask(ExactlyMeasured, ABC):
    """A task with enumerable decisions that computes the measures of a joint policy itself."""

    agents: tuple[str, ...]

    @abstractmethod
    def decisions(self, agent: str) -> Sequence[Decision]:
        """All decisions of the agent that valid replies can reach."""

    @abstractmethod
    def judge(self, policy: Mapping[str, Mapping[str, Sequence[float]]]) -> Mapping[str, float]:
        """Exact metrics of a joint policy. `policy` gives the probability of each reply, by agent
        and `Decision.key`; the probabilities of one decision sum to 1."""


class FiniteTask(ExactlyMeasured, ABC):
    """A task that is a finite Dec-POMDP with a known model, such as `dpomdp`."""

    agents: tuple[str, ...]
    horizon: int
    model: TabularModel
    reward_scale: float

    @abstractmethod
    def action_words(self, agent: str) -> tuple[str, ...]:
        """The legal replies, in the order of the model's actions."""

    @abstractmethod
    def shown(self, agent: str, turn: int, observation: int | None) -> str:
        """The text that `observe` returns at `turn` for the index `observation` of the Dec-POMDP
        model; at turn 0, `observation` is None."""

    @abstractmethod
    def rejection_reward(self, turn: int) -> float:
        """The scaled reward for an illegal reply at `turn`."""
