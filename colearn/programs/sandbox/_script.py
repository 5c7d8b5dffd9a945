"""Runs a program inside the sandbox as a plain script, with the rest of standard input as input."""

from __future__ import annotations

import sys
import types

from _apply_limits import apply_limits  # type: ignore[import-not-found]
from _plain import receive  # type: ignore[import-not-found]


def main() -> None:
    apply_limits(sys.argv[2:])
    program = receive(0)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))


main()
