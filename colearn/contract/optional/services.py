"""Optional interface: services, processes and servers that a task uses."""

from __future__ import annotations

from collections.abc import Mapping

from .option import TaskOption


class Services(TaskOption):
    """A task that uses resources outside this process, such as services, processes or servers."""

    steps_at_once: bool = False
    """Whether steps of different episodes may run concurrently in several threads. Threads are used
    as soon as one step waits. A step that sets an alarm needs the main thread, so the first step
    that sets an alarm ends the use of threads."""

    def costs(self) -> Mapping[str, float]:
        """Totals of the services that the task has used so far in this process, by name, such as
        `judge calls`. Reports show them with the run's other costs."""
        return {}

    def close(self) -> None:
        """Ends the processes, threads and servers that the task started in this process. The next
        use starts them again."""
