"""Inside the sandbox: loads the program and answers calls of its functions.

Nothing here is trusted: the program may read and change all of it. What it can reach by that is the
pipe over which it answers, and there it can only say which plain values it returns.
"""

from __future__ import annotations

import os
import sys
import types

from _boot import boot  # type: ignore[import-not-found]
from _plain import NotPlain, dump, load, receive, receive_bytes, send  # type: ignore[import-not-found]

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    calls, answers = map(int, sys.argv[1].split(","))
    boot(sys.argv[2:])
    program = receive(0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))
    except BaseException as error:  # noqa: BLE001 - whatever a program raises is its answer
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
    before = dump(load(call)[1:])  # of a second copy: iterators are used up by it
    try:
        result = function(*arguments, **keywords)
        answer = ["returned", load(dump(result))]
    except BaseException as error:  # noqa: BLE001
        answer = ["raised", *_described(error)]
    try:
        after = dump([arguments, keywords])
    except NotPlain:
        return [*answer, None]
    # a test may look at what became of the lists that it passed
    return [*answer, None if after == before else [arguments, keywords]]


def _described(error: BaseException) -> tuple[list[str], str]:
    """The names of its classes, its own first, and what it says."""
    names = [kind.__name__ for kind in type(error).__mro__]
    try:
        text = str(error)[:300]
    except BaseException:  # noqa: BLE001
        text = ""
    return names, text


main()
