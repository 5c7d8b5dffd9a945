"""Makes one data set and scores answers in a separate process, started as a script by `scorer`.

    python scorer_process.py NAME SETTINGS SIZE SEED

Each input line is JSON: null asks for all entries, a pair (entry, answer) for the package's score.
Entries are pickled, in base 64.

Several data sets give answers to `eval`, directly or through sympy's `parse_expr`. In this process
both take an answer only if it is a literal or an expression of sympy's functions, so that no answer
runs code.
"""

from __future__ import annotations

import ast
import base64
import json
import math
import pickle
import re
import resource
import sys
import time
from types import ModuleType
from typing import Any

SECONDS = 4
"""CPU seconds per answer; an answer that takes longer ends this process."""
MEMORY = 4 * 2**30
"""Limit of this process's address space in bytes."""

_EXPRESSION = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Call, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd),
)
"""Syntax of an expression of numbers, symbols and functions."""


def check_expression(text: str) -> None:
    """Errors: ValueError for anything but an expression of numbers, symbols and sympy's
    functions."""
    import sympy

    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if not isinstance(node, _EXPRESSION):
            raise ValueError(f"no expression: {type(node).__name__}")
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise ValueError("no number")
        if isinstance(node, ast.Name) and "__" in node.id:
            raise ValueError("no symbol")
        if isinstance(node, ast.Call):
            named = getattr(sympy, node.func.id, None) if isinstance(node.func, ast.Name) else None
            known = isinstance(named, sympy.FunctionClass) or named in (sympy.sqrt, sympy.cbrt)
            if not known or node.keywords:
                raise ValueError("no function of sympy")


class _CheckedSympy:
    """sympy with a `parse_expr` that checks its text."""

    def __getattr__(self, name: str) -> Any:
        import sympy

        return _parsed if name == "parse_expr" else getattr(sympy, name)


def _parsed(text: str, *arguments: Any, **named: Any) -> Any:
    import sympy

    check_expression(text)
    return sympy.parse_expr(text, *arguments, **named)


def guard(module: ModuleType) -> None:
    """Replace, in a module of the package, what runs an answer as code."""
    import sympy

    source = vars(module).get("__file__")
    if source is None:
        return
    with open(source, encoding="utf-8") as file:
        text = file.read()
    if re.search(r"\beval\(answer\)", text):
        vars(module)["eval"] = ast.literal_eval
    for name, value in list(vars(module).items()):
        if value is sympy and "parse_expr(" in text:
            vars(module)[name] = _CheckedSympy()
        elif value is sympy.parse_expr:
            vars(module)[name] = _parsed


def score(entries: Any, entry: Any, answer: str | None) -> float:
    """The package's score; 0 for an answer at which it raises an exception."""
    try:
        return float(entries.score_answer(answer, entry))
    except Exception:  # noqa: BLE001 - whatever a text does to the package, it is a wrong answer
        return 0.0


def main() -> None:
    name, settings, size, seed = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr  # data sets print
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import reasoning_gym

    for module in [
        module for key, module in sys.modules.items() if key.startswith("reasoning_gym.")
    ]:
        guard(module)
    options = json.loads(settings)
    entries = reasoning_gym.create_dataset(name, size=int(size), seed=int(seed), **options)
    unlimited = resource.getrlimit(resource.RLIMIT_CPU)
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request is None:
            resource.setrlimit(resource.RLIMIT_CPU, unlimited)
            all_entries = [entries[number] for number in range(int(size))]
            reply: Any = base64.b64encode(pickle.dumps(all_entries)).decode()
        else:
            entry = pickle.loads(base64.b64decode(request[0]))
            if sys.platform == "linux":
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            # the limit counts whole seconds from the start of the process
            seconds = math.ceil(time.process_time()) + SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, unlimited[1]))
            reply = score(entries, entry, request[1])
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()
