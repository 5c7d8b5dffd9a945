"""Base class of a task's optional interfaces. The library calls the method `of` to read an
interface."""

from __future__ import annotations

from typing import Self

from colearn.errors import TaskError


class TaskOption:
    """An optional interface of a task. A task class inherits both the interface and `DecPOMDP`.

    The interface's members either all have the neutral defaults of a task without the interface, or
    are all abstract.
    """

    @classmethod
    def of(cls, task: object) -> Self:
        """Returns the task itself or, if the task does not inherit this interface, an object with
        neutral answers.

        Errors: TaskError for a task that has a member of the interface but does not inherit the
        interface.
        """
        if isinstance(task, cls):
            return task
        refuse_without(cls, task)
        return cls()


def refuse_without(option: type[TaskOption], task: object) -> None:
    """Errors: TaskError if a task or task class that does not inherit the interface has one of its
    members. If the interface has abstract methods, the error is raised only if the task has all of
    these methods."""
    names, all_of_them = _members(option)
    given = [name for name in names if hasattr(task, name)]
    if not given or (all_of_them and len(given) < len(names)):
        return
    kind = (task if isinstance(task, type) else type(task)).__name__
    raise TaskError(
        f"task.{min(given)}: {kind} has it without its interface, so nobody would read it; add "
        f"colearn.contract.{option.__name__} to the bases of {kind}, or rename it"
    )


def _members(option: type[TaskOption]) -> tuple[tuple[str, ...], bool]:
    """The names of the interface's members, and whether they are abstract."""
    if option not in _known:
        abstract: frozenset[str] = getattr(option, "__abstractmethods__", frozenset())
        names = abstract or {name for name in vars(option) if not name.startswith("_")}
        _known[option] = tuple(sorted(names)), bool(abstract)
    return _known[option]


_known: dict[type[TaskOption], tuple[tuple[str, ...], bool]] = {}
