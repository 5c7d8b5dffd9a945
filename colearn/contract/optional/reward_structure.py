"""Optional interface: the kinds of rewards that a task pays, when the task pays them, and known
bounds."""

from __future__ import annotations

from colearn.contract.reward_credit import Paid

from .option import TaskOption


class RewardStructure(TaskOption):
    """A task that rewards single agents, rewards earlier actions at later turns, or knows bounds of
    its rewards."""

    pays: frozenset[Paid] = frozenset({"team"})
    """The kinds of reward that the task pays: to the team (`Outcome.reward`), to single agents
    (`Outcome.local_rewards` and `earned`), or both."""
    pays_later: bool = False
    """Whether the task rewards some actions at a later turn (`Outcome.earned`). A rollout shape
    that compares candidate actions by immediate rewards cannot be used to train on this task."""
    optimum: float | None = None
    """The optimal return, if known; reports draw it as a line."""
    reward_range: tuple[float, float] | None = None
    """Bounds of one turn's joint reward, if known."""
