"""A process with devices in name only, which forks for each case that it is asked to run.

    python -m tests.rehearsal.process LIBRARY

reads a JSON line for each case, `[module, function, arguments, fault, result file]`, and answers
with an empty line once the file is written. A fork costs far less than importing torch again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.rehearsal import guard_library

LONGEST = 240
"""Seconds of a case."""


def seed_fault(module: str, before: str, after: str) -> None:
    """Run a module's functions from its source with `before` replaced once by `after`."""
    changed = import_module(module)
    assert changed.__file__ is not None
    source = Path(changed.__file__).read_text()
    assert source.count(before) == 1, f"{module} holds this {source.count(before)} times: {before}"
    fresh: dict[str, Any] = {
        "__name__": module,
        "__file__": changed.__file__,
        "__package__": changed.__package__,
    }
    exec(compile(source.replace(before, after), changed.__file__, "exec"), fresh)
    _replace_code(vars(changed), fresh)


def _replace_code(old: Any, new: Any) -> None:
    for name, value in list(new.items()):
        known = old.get(name)
        if (
            isinstance(value, type)
            and isinstance(known, type)
            and value.__module__ == known.__module__
        ):
            _replace_code(dict(vars(known)), dict(vars(value)))
        if isinstance(value, property):
            value, known = value.fget, getattr(known, "fget", None)
        value, known = getattr(value, "__wrapped__", value), getattr(known, "__wrapped__", known)
        codes = [getattr(function, "__code__", None) for function in (value, known)]
        if None not in codes and codes[0].co_freevars == codes[1].co_freevars:
            known.__code__ = codes[0]


def run(module: str, function: str, arguments: dict[str, Any], fault: Any, result: str) -> None:
    answer: dict[str, Any]
    try:
        if fault:
            seed_fault(*fault)
        answer = {"value": getattr(import_module(module), function)(**arguments)}
    except BaseException as error:  # noqa: BLE001 - the parent reports whatever it was
        answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    Path(result).write_text(json.dumps(answer))


def main() -> None:
    guard_library.load(Path(sys.argv[1]))
    import torch

    torch.set_num_threads(1)
    from tests.rehearsal import nominal_device

    imported_once = ("peft", "transformers.models.qwen3", "colearn.training.loop")
    for module in (*imported_once, "tests.helpers.tiny"):
        import_module(module)
    nominal_device.install()
    step_graphs = import_module("colearn.engines.step_graphs")
    step_graphs.GraphRecorder = import_module("tests.helpers.operator_recorder").OperatorRecorder
    print(flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            signal.alarm(LONGEST)
            os.dup2(2, 1)  # standard output tells the parent that the case has ended
            try:
                run(*json.loads(line))
            finally:  # threads of the case may still run
                os._exit(0)
        os.waitpid(child, 0)
        print(flush=True)


if __name__ == "__main__":
    main()
