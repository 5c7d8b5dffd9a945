"""Optional interface: episodes that are runs of a program."""

from __future__ import annotations

from typing import Any

from colearn.contract.engine import Listener

from .option import TaskOption


class ProgramEpisodes(TaskOption):
    """A task whose episodes run outside of the task's state, for example in a program."""

    program: bool = False
    """Whether an episode cannot be forked after its first request. A rollout shape that forks later
    cannot be used to train on this task."""
    steps_here: bool = False
    """Whether `step` works only in the run's own process, for example because connections are open
    there. `run.step_workers` then has no effect."""

    def listener(self, state: Any, agent: str) -> Listener | None:
        """The function that receives the text of the agent's answer in `state` during sampling;
        None: no function. The default generator calls this function only if a request samples a
        single action."""
        return None

    def abandon(self, state: Any) -> None:
        """Frees the resources of an episode that ends at `state` because an agent's history no
        longer fits the agent's model."""
