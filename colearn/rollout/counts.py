"""Cost counters of a rollout: joint actions, tokens, generations, response times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from colearn.contract import TokenAnswer


@dataclass(slots=True)
class Counts:
    """Sums over the trees of one or several collections."""

    generations: int = 0
    """Actions sampled, over agents: the model calls of Proposition 4.3."""
    joint_actions: int = 0
    """Joint actions executed: the environment steps."""
    tokens: int = 0
    """Tokens sampled, over agents."""
    response_seconds: list[float] = field(default_factory=list)
    """Seconds of the slowest request in each turn, because engines run concurrently. In the free
    order, seconds of each request, from the time at which it joined a batch to its answer."""

    @property
    def tokens_per_action(self) -> float:
        """Mean tokens of an action; 0 without any, as when programs ask no agent."""
        return self.tokens / max(self.generations, 1)

    def answered(self, answers: Iterable[TokenAnswer]) -> None:
        """Count the answers of one seat."""
        for answer in answers:
            self.generations += 1
            self.tokens += len(answer.action.tokens)

    def add(self, other: Counts) -> None:
        """Add another collection's counts; its turns follow these."""
        self.generations += other.generations
        self.joint_actions += other.joint_actions
        self.tokens += other.tokens
        self.response_seconds += other.response_seconds
