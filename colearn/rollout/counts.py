"""Counts of the model calls, joint actions and tokens of rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from colearn.contract import TokenAnswer


@dataclass(slots=True)
class Counts:
    """Counters summed over the trees of one or several rollouts."""

    generations: int = 0
    """Number of actions sampled, summed over agents. Proposition 4.3 counts these model calls."""
    joint_actions: int = 0
    """Number of joint actions executed, that is, environment steps."""
    tokens: int = 0
    """Number of tokens sampled, summed over agents."""
    response_seconds: list[float] = field(default_factory=list)
    """Durations of requests in seconds. In lockstep order, only the slowest request of each turn is
    listed, because engines run concurrently. In free order, every request is listed with the time
    from joining a batch to the answer."""

    @property
    def tokens_per_action(self) -> float:
        """Mean number of tokens per action. The mean is 0 if no action was sampled, for example
        because a task's program called no agent."""
        return self.tokens / max(self.generations, 1)

    def answered(self, answers: Iterable[TokenAnswer]) -> None:
        """Count the answers that one agent's player gave."""
        for answer in answers:
            self.generations += 1
            self.tokens += len(answer.action.tokens)
