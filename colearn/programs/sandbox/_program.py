"""Loads the untrusted program inside the sandbox and answers calls of its functions.

Nothing in this process is trusted: the program can read and change all of it. The process can
affect the outside only through the answer pipe, which carries only plain return values.
"""

from __future__ import annotations

import os
import sys
import types

from _apply_limits import apply_limits  # type: ignore[import-not-found]
from _plain import NotPlain, dump, load, receive, receive_bytes, send  # type: ignore[import-not-found]

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    calls, answers = map(int, sys.argv[1].split(","))
    apply_limits(sys.argv[2:])
    program = receive(0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))
    except BaseException as error:  # noqa: BLE001 - any exception of the program is its answer
        send(answers, ["failed", *_described(error)])
        return
    send(answers, ["ready"])
    while True:
        try:
            call = receive_bytes(calls)
        except EOFError:
            os._exit(0)
        send(answers, _answer(vars(module), call))


def _answer(names: dict[str, Any], call: bytes) -> list[Any]:
    name, arguments, keywords = load(call)
    function = names.get(name)
    if not callable(function):
        return ["raised", ["NameError"], f"the program defines no function '{name}'", None]
    before = dump(load(call)[1:])  # from a second copy, since serialising exhausts iterators
    try:
        result = function(*arguments, **keywords)
        answer = ["returned", load(dump(result))]
    except BaseException as error:  # noqa: BLE001
        answer = ["raised", *_described(error)]
    try:
        after = dump([arguments, keywords])
    except NotPlain:
        return [*answer, None]
    # a test may inspect arguments that the program changed in place
    return [*answer, None if after == before else [arguments, keywords]]


def _described(error: BaseException) -> tuple[list[str], str]:
    """The exception's class names in method resolution order, and its message."""
    names = [kind.__name__ for kind in type(error).__mro__]
    try:
        text = str(error)[:300]
    except BaseException:  # noqa: BLE001
        text = ""
    return names, text


main()
