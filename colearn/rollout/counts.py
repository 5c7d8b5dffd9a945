"""Cost counters of a rollout: joint actions, tokens, generations, response times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from colearn.contract import TokenAnswer


@dataclass(slots=True)
class Counts:
    """Sums over the trees of one or several collections."""

    generations: int = 0
    """Number of actions sampled, summed over agents: the model calls of Proposition 4.3."""
    joint_actions: int = 0
    """Number of joint actions executed, that is, environment steps."""
    tokens: int = 0
    """Number of tokens sampled, summed over agents."""
    response_seconds: list[float] = field(default_factory=list)
    """Durations of requests in seconds. In lockstep: the slowest request of each turn, because
    engines run concurrently. In the free order: every request, from joining a batch to the
    answer."""

    @property
    def tokens_per_action(self) -> float:
        """Mean number of tokens per action; 0 if there are no actions, for example because programs
        ask no agent."""
        return self.tokens / max(self.generations, 1)

    def answered(self, answers: Iterable[TokenAnswer]) -> None:
        """Count the answers that one agent's player gave."""
        for answer in answers:
            self.generations += 1
            self.tokens += len(answer.action.tokens)

    def add(self, other: Counts) -> None:
        """Add the counts of another collection; its response times are appended."""
        self.generations += other.generations
        self.joint_actions += other.joint_actions
        self.tokens += other.tokens
        self.response_seconds += other.response_seconds
