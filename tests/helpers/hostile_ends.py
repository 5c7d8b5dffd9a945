"""Hostile programs that end, or answer out of turn, while a test prepares its state.

As in `hostile_states`: most tests are true of the state before the program was called, and the
honest twin beside each program passes them all.
"""

from __future__ import annotations

from hostile_states import Forgery

_PIPES = """
import os, sys
plain = sys.modules["_plain"]
calls, answers = map(int, next(w for w in sys.orig_argv if w[:1].isdigit() and "," in w).split(","))
"""
_LOOP = """
out = []
for n in range(3): out.append(f(n))
assert all(v == n + 1 for n, v in enumerate(out))
assert f(1) == 2 or not out
"""
_GOT = """
got = None
got = f(2)
assert got is None or got == 3
assert got != 4
"""
_SUPPRESSED = """
import contextlib
out = []
with contextlib.suppress(BaseException): out.append(f(0))
assert all(v == 1 for v in out)
"""
_FINALLY = """
out = []
try:
    out.append(f(0))
finally:
    done = True
assert all(v == 1 for v in out)
"""
_ITERATED = """
seen = []
for value in f(3): seen.append(value)
assert all(v == n for n, v in enumerate(seen))
"""
_RANGE = "def f(n): return list(range(n))\n"

ENDS: dict[str, Forgery] = {
    "reads from nowhere in a loop": Forgery(
        "import ctypes\ndef f(n): return ctypes.string_at(0)\n", _LOOP
    ),
    "aborts in an assignment": Forgery("import os\ndef f(n): os.abort()\n", _GOT),
    "kills itself in a loop": Forgery("import os\ndef f(n): os.kill(os.getpid(), 9)\n", _LOOP),
    "asks for too much memory in an assignment": Forgery(
        "def f(n): return bytearray(1 << 45)\n", _GOT
    ),
    "recurses without end in a loop": Forgery("def f(n): return f(n)\n", _LOOP),
    "becomes another program in an assignment": Forgery(
        "import os\ndef f(n): os.execv('/usr/bin/true', ['true'])\n", _GOT
    ),
    "closes its descriptors in a loop": Forgery(
        "import os\ndef f(n):\n    os.closerange(0, 4096)\n    return n + 1\n", _LOOP
    ),
    "answers half a frame in a loop": Forgery(
        _PIPES + "def f(n):\n    os.write(answers, b'\\0\\0')\n    os._exit(0)\n", _LOOP
    ),
    "answers in no form in an assignment": Forgery(
        _PIPES + "def f(n):\n    plain.send(answers, {'passed': True})\n    os._exit(0)\n", _GOT
    ),
    "reports tests in a loop": Forgery(
        _PIPES
        + "def f(n):\n"
        + "    for k in range(4): plain.send(answers, ['test', k, True, '', ''])\n"
        + "    os._exit(0)\n",
        _LOOP,
    ),
    "dies where a test suppresses everything": Forgery(
        "import os\ndef f(n): os._exit(0)\n", _SUPPRESSED
    ),
    "dies where a test cleans up": Forgery("import os\ndef f(n): os._exit(0)\n", _FINALLY),
    "raises where a test cleans up": Forgery("def f(n): raise ValueError\n", _FINALLY),
    "dies in what it answered with": Forgery(
        "import os\ndef f(n):\n    yield 0\n    os._exit(0)\n", _ITERATED, honest=_RANGE
    ),
    "raises in what it answered with": Forgery(
        "def f(n):\n    yield 0\n    raise ValueError\n", _ITERATED, honest=_RANGE
    ),
    "answers with an iterator of its own in a loop": Forgery(
        "class Own:\n    def __iter__(self): return iter(())\ndef f(n): return Own()\n",
        _ITERATED,
        honest=_RANGE,
    ),
    "is honest until it is asked again": Forgery(
        "asked = []\ndef f(n):\n    asked.append(n)\n    return n + 1 if asked == [n] else 1 / 0\n",
        "assert f(5) == 6\nout = []\nfor n in range(3): out.append(f(n))\n"
        "assert all(v == n + 1 for n, v in enumerate(out))\n",
        earned=1,
    ),
}
