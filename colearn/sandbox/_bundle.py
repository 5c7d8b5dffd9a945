"""The modules that run inside, compiled here once and sent to every process over its input."""

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
"""What the interpreter starts with; reading by hand leaves the rest of the input to others.

It is fed only when it has said `.`: by then it is tied to the process that wants it, so it either
dies with that or finds its input closed.
"""
GREETING = b"."


@functools.cache
def bundle(side: Literal["program", "checker", "script"]) -> bytes:
    """Four bytes of length, then the modules of one side in the order of their imports."""
    modules = []
    for name in ("_plain", "_boot", f"_{side}"):
        path = Path(__file__).with_name(f"{name}.py")
        modules.append((name, compile(path.read_text("utf-8"), f"<{name}>", "exec")))
    data = marshal.dumps(modules)
    return len(data).to_bytes(4, "big") + data
