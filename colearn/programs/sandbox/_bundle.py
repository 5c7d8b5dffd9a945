"""Bundles: compiled modules that run inside a sandbox, sent over its standard input."""

from __future__ import annotations

import functools
import marshal
from pathlib import Path
from typing import Literal

LOADER = """
import os, sys
from marshal import loads
def read(left):
    data = b""
    while len(data) < left:
        part = os.read(0, left - len(data))
        if not part:
            os._exit(1)
        data += part
    return data
os.write(1, b".")
for name, code in loads(read(int.from_bytes(read(4), "big"))):
    module = sys.modules[name] = type(sys)(name)
    exec(code, vars(module))
"""
"""Start script of the sandboxed interpreter. Unbuffered reads leave the rest of the input intact.

The script writes `.` when it is ready. From then on the script ends with its parent process: when
the parent ends, the script is killed or reads the end of its input.
"""
GREETING = b"."


@functools.cache
def bundle(side: Literal["program", "checker", "script"]) -> bytes:
    """The modules of one side of a run (`program`, `checker` or `script`) in import order, preceded
    by their total length as four bytes."""
    modules = []
    for name in ("_plain", "_apply_limits", f"_{side}"):
        path = Path(__file__).with_name(f"{name}.py")
        modules.append((name, compile(path.read_text("utf-8"), f"<{name}>", "exec")))
    data = marshal.dumps(modules)
    return len(data).to_bytes(4, "big") + data
