"""Runs the tests in a separate sandbox and calls the program in another process.

Every `assert` is evaluated in this process, on plain values created in this process. The program's
process shares no memory, file or connection with this process except two pipes: one for calls and
one for answers.
"""

from __future__ import annotations

import builtins
import os
import sys

from _apply_limits import apply_limits  # type: ignore[import-not-found]
from _plain import NotPlain, receive, send  # type: ignore[import-not-found]

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Report = Callable[[list[Any]], None]


class Lost(BaseException):
    """Raised when the program's process has ended or sent a malformed answer."""


class CheckedProgram:
    """Client that calls the program's process through the two pipes."""

    def __init__(self, calls: int, answers: int) -> None:
        self.calls = calls
        self.answers = answers
        self.lost: str | None = None
        self.raised: BaseException | None = None
        """The last exception that a call raised."""
        self.not_plain = False
        """Whether a call of this test returned a value that cannot be serialised."""

    def started(self) -> list[Any]:
        """The program's first message: `["ready"]`, or `["failed", names of the exception's
        classes, message]`."""
        message = self._receive()
        if type(message) is list and message[:1] == ["ready"]:
            return ["ready"]
        if type(message) is list and len(message) == 3 and message[0] == "failed":
            return ["failed", _names(message[1]), str(message[2])]
        raise self._gone("crash")

    def function(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            return self._call(name, list(arguments), keywords)

        call.__name__ = call.__qualname__ = name
        return call

    def _call(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if self.lost is not None:
            raise self._gone(self.lost)
        try:
            send(self.calls, [name, arguments, keywords])
            message = self._receive()
        except OSError:
            raise self._gone("crash") from None
        match message:
            case ["returned", value, changed]:
                _update([arguments, keywords], changed)
                return value
            case ["raised", names, text, changed]:
                _update([arguments, keywords], changed)
                self.not_plain |= "NotPlain" in _names(names)
                self.raised = _exception(_names(names), str(text))
                raise self.raised
        raise self._gone("crash")

    def _receive(self) -> Any:
        try:
            return receive(self.answers)
        except (EOFError, OSError):
            raise self._gone("crash") from None
        except (NotPlain, MemoryError):
            raise self._gone("output") from None

    def _gone(self, kind: str) -> Lost:
        self.lost = kind
        return Lost(kind)


def main() -> None:
    calls, answers = map(int, sys.argv[1].split(","))
    apply_limits(sys.argv[2:])
    work = receive(0)
    results = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)

    def report(message: list[Any]) -> None:
        send(results, message)

    program = CheckedProgram(calls, answers)
    try:
        started = program.started()
    except Lost as lost:
        report(["failed", "lost", str(lost)])
        return
    if started[0] == "failed":
        report(
            [
                "failed",
                _kind(started[1], started[2], loading=True),
                f"{started[1][0]}: {started[2]}"[:300],
            ]
        )
        return
    report(["ready"])
    _run(work, program, report)
    if program.lost is None:
        report(["end"])
    os._exit(0)  # skips the interpreter's slower shutdown


def _run(work: dict[str, Any], program: CheckedProgram, report: Report) -> None:
    space: dict[str, Any] = {"__name__": "tests"}
    if work["prompt"]:
        exec(compile(work["prompt"], "<prompt>", "exec", dont_inherit=True), space)
    for name in work["entry_names"]:
        space[name] = program.function(work["entry_point"])
    for number, statement in work["statements"]:
        # a fresh process repeats every statement that later tests may depend on
        repeated = number is not None and number < work["first"]
        bare = number is not None and work["bare"][number]
        if repeated and bare:
            continue
        passed, kind, text = _statement(statement, space, program)
        if number is not None and not repeated:
            report(["test", number, passed, kind, text[:300]])
        elif not passed:
            report(["failed", kind, text[:300]])
        if program.lost is not None or not (passed or bare):
            return  # plain Python would stop too: no test runs after a partial preparation


def _statement(
    source: str, space: dict[str, Any], program: CheckedProgram
) -> tuple[bool, str, str]:
    program.raised, program.not_plain = None, False
    try:
        exec(compile(source, "<test>", "exec", dont_inherit=True), space)
    except BaseException as error:  # noqa: BLE001 - any exception fails the test
        if program.lost is not None:
            return False, "lost", program.lost
        if program.not_plain:
            return False, "output", str(error)
        names = [kind.__name__ for kind in type(error).__mro__]
        if error is not program.raised and isinstance(error, AssertionError):
            return False, "assertion", source
        return False, _kind(names, str(error), loading=False), f"{names[0]}: {error}"
    if program.lost is not None:  # also if the test caught the exception of a lost call
        return False, "lost", program.lost
    if program.not_plain:
        return (
            False,
            "output",
            "returned a value that cannot be serialised, and the test caught the error",
        )
    return True, "", ""


def _kind(names: list[str], text: str, *, loading: bool) -> str:
    if "PermissionError" in names or text.startswith("[Errno 30]"):  # a read-only file system
        return "forbidden"
    if "MemoryError" in names:
        return "memory"
    if loading and "SyntaxError" in names:
        return "syntax"
    if loading and "ImportError" in names:
        return "import"
    return "exception"


def _names(value: Any) -> list[str]:
    names = [name for name in value if type(name) is str] if type(value) is list else []
    return names or ["Exception"]


def _exception(names: list[str], text: str) -> BaseException:
    """Returns an exception of the nearest builtin class; the classes that the program defines are
    never recreated.

    StopIteration becomes RuntimeError, as in a generator: otherwise `all(map(candidate, ...))`
    would be true for a program that raises StopIteration immediately.
    """
    if not {"StopIteration", "StopAsyncIteration"}.isdisjoint(names):
        return RuntimeError(f"the program raised StopIteration outside an iterator: {text}")
    for name in names:
        kind = vars(builtins).get(name)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            try:
                return kind(text)
            except TypeError:  # the class's constructor needs further arguments
                continue
    return Exception(text)


def _update(original: Any, changed: Any) -> Any:
    """Copy the changes that the program made to its arguments back into this process's containers;
    returns the updated value."""
    if type(original) is not type(changed):
        return changed
    if type(original) is list:
        updated = [_update(*pair) for pair in zip(original, changed, strict=False)]
        original[:] = updated + changed[len(updated) :]
    elif type(original) is dict:
        updated_items = {
            key: _update(original[key], value) if key in original else value
            for key, value in changed.items()
        }
        original.clear()
        original.update(updated_items)
    elif type(original) is set:
        original.clear()
        original.update(changed)
    elif type(original) is bytearray:
        original[:] = changed
    elif type(original) is tuple and len(original) == len(changed):
        merged = tuple(_update(*pair) for pair in zip(original, changed, strict=True))
        unchanged = all(new is old for new, old in zip(merged, original, strict=True))
        return original if unchanged else merged
    elif original != changed:
        return changed
    return original


main()
