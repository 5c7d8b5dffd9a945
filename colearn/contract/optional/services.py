"""Optional interface: services, processes and servers that a task uses."""

from __future__ import annotations

from collections.abc import Mapping

from .option import TaskOption


class Services(TaskOption):
    """A task that uses resources outside this process, such as services, processes or servers."""

    steps_at_once: bool = False
    """Whether steps of different episodes may run concurrently in several threads. The rollout uses
    threads as soon as one step waits. A step that sets an alarm needs the main thread; after the
    first such step, the rollout no longer uses threads."""

    def costs(self) -> Mapping[str, float]:
        """Total use of each service by the task so far in this process, by name, such as `judge
        calls`. Reports show these totals with the run's other costs."""
        return {}

    def close(self) -> None:
        """Ends the processes, threads and servers that the task started in this process. The next
        use of the task starts these resources again."""
