"""Base of the optional interfaces of a task: how the library reads them."""

from __future__ import annotations

from typing import Self

from colearn.errors import TaskError


class TaskOption:
    """An optional interface of a task. A task class inherits it together with `DecPOMDP`.

    Either its members have the neutral defaults of a task without the interface, or all are
    abstract.
    """

    @classmethod
    def of(cls, task: object) -> Self:
        """The task itself, or an object with neutral answers if the task does not inherit this
        interface.

        Errors: TaskError for a task that has a member and does not inherit the interface.
        """
        if isinstance(task, cls):
            return task
        refuse_without(cls, task)
        return cls()


def refuse_without(option: type[TaskOption], task: object) -> None:
    """Errors: TaskError if a task or task class that does not inherit the interface has one of its
    members. For an interface with abstract methods, this is an error only if the task has all of
    them."""
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
