"""Simulates a run's schedule: the times at which iterations are rolled out, models updated and
weights published.

The simulated run follows the order of `colearn.experiment`: one rollout at a time, one update at a
time, and weights published after every S-th update. No time is measured; all durations are inputs
or computed from inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Simulated:
    """The outcome of a simulated schedule. Times are in seconds from the start."""

    ends: tuple[float, ...]
    """Times at which each iteration's update was published."""
    generating: float
    """Time that the generator spent working."""
    updating: float
    """Time that models spent on updates."""
    transferring: float
    """Time that generators spent receiving weights."""

    @property
    def seconds(self) -> float:
        """Mean time of an iteration, without the first, which has no predecessor."""
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1)

    @property
    def bottleneck(self) -> str:
        """The activity that takes the most time: `generation`, `update` or `transfer`."""
        parts = {
            "generation": self.generating,
            "update": self.updating,
            "transfer": self.transferring,
        }
        return max(parts, key=lambda part: parts[part])


def simulate(
    rollouts: Sequence[float],
    updates: Sequence[float],
    *,
    transfer: float = 0.0,
    staleness: int = 0,
) -> Simulated:
    """Simulate iterations whose rollouts and updates take the given numbers of seconds.

    With staleness 0, an iteration is a rollout, an update and a transfer in sequence. With
    staleness S > 0, a thread rolls out S iterations with the same weights while models update.
    After every S-th update, the run waits for the rollouts in flight, and generators receive the
    weights. If there are more rollouts than updates, the extra rollouts are still in flight at the
    last update.
    Errors: ValueError for fewer than two updates, or fewer rollouts than updates.
    """
    if len(rollouts) < len(updates) or len(updates) < 2:
        raise ValueError("simulate: give each of two or more updates a rollout")
    interval = max(1, staleness)
    ready = [0.0] * len(rollouts)
    ends: list[float] = []
    clock = free = 0.0  # of the updates, and when the rollout thread is free
    submitted = 0
    for number, update in enumerate(updates):
        last = number
        if staleness and number % interval == 0:
            last = number + interval
        while submitted <= min(last, len(rollouts) - 1):
            free = max(free, clock) + rollouts[submitted]
            ready[submitted] = free
            submitted += 1
        clock = max(clock, ready[number]) + update
        if (number + 1) % interval == 0:
            clock = max(clock, free) + transfer
        ends.append(clock)
    return Simulated(
        ends=tuple(ends),
        generating=sum(rollouts),
        updating=sum(updates),
        transferring=transfer * (len(updates) // interval),
    )


def lockstep(answers: Sequence[Sequence[float]]) -> float:
    """Return the seconds of a rollout whose episodes advance together, turn by turn. `answers`
    holds the seconds of each turn for each episode. In each turn, all episodes wait for the slowest
    episode."""
    turns = max(map(len, answers), default=0)
    return sum(
        max(episode[turn] for episode in answers if turn < len(episode)) for turn in range(turns)
    )


def free(answers: Sequence[Sequence[float]]) -> float:
    """Return the seconds of a rollout whose episodes advance independently: the time of the slowest
    episode."""
    return max((sum(episode) for episode in answers), default=0.0)
