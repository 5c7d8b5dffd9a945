"""Hostile programs that skip what a test relies on: they raise, die, or answer out of turn at the
right moment.

Each has tests of its own, most of them true of the state before the program was called, and an
honest twin that passes them all.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

HONEST = "def f(n): return n + 1\n"


@dataclass(frozen=True)
class Forgery:
    program: str
    tests: str | Sequence[str]
    honest: str = HONEST
    earned: int = 0
    """Tests that the program passes rightly, from the first on."""


def _text(text: str) -> str:
    return textwrap.dedent(text).strip() + "\n"


def _raises(error: str) -> str:
    return f"def f(n): raise {error}\n"


_DIES = "import os\ndef f(n): os._exit(0)\n"
_LOOP = _text("""
    out = []
    for n in range(3): out.append(f(n))
    assert all(v > 0 for v in out)
    assert f(1) == 2 or not out
""")
_GOT = _text("""
    got = None
    got = f(2)
    assert got is None or got == 3
    assert got != 4
""")
_PIPES = """
import os, sys
plain = sys.modules["_plain"]
calls, answers = map(int, next(w for w in sys.orig_argv if w[:1].isdigit() and "," in w).split(","))
"""
_RIGHT_UNTIL = "import os\ndef f(n):\n    if n == {}: {}\n    return {}\n"

FORGERIES: dict[str, Forgery] = {
    # by raising in what prepares
    "raises in a loop that prepares": Forgery(_raises("ValueError"), _LOOP),
    "exits in an assignment": Forgery(_raises("SystemExit(0)"), _GOT),
    "ends an iteration in a loop": Forgery(_raises("StopIteration"), _LOOP),
    "fails an assertion of its own in a loop": Forgery(_raises("AssertionError"), _LOOP),
    "is no function": Forgery("f = 5", _GOT),
    "answers in a loop with what cannot cross": Forgery(
        "import itertools\ndef f(n): return itertools.count()", _LOOP
    ),
    "raises after half of a loop": Forgery(
        _RIGHT_UNTIL.format(1, "raise ValueError", "n + 1"),
        _text("""
            out = []
            for n in range(3): out.append(f(n))
            assert out[:1] == [1]
            assert out == list(range(1, len(out) + 1))
        """),
    ),
    "clears a list and raises": Forgery(
        "def f(xs):\n    xs.clear()\n    raise ValueError\n",
        _text("""
            xs = [3, 1, 2]
            f(xs)
            assert all(a <= b for a, b in zip(xs, xs[1:]))
        """),
        honest="def f(xs): xs.sort()\n",
    ),
    "raises between two tests": Forgery(
        _RIGHT_UNTIL.format(5, "raise ValueError", "n + 1"),
        "assert f(1) == 2\nout = []\nout += [f(5)]\nassert out in ([], [6])\nassert f(2) == 3\n",
        earned=1,
    ),
    # by raising in a test that is more than a bare assert
    "raises in a test that is a loop": Forgery(
        _raises("ValueError"),
        _text("""
            seen = []
            for n in range(3):
                seen.append(f(n))
                assert seen
            assert all(v == n + 1 for n, v in enumerate(seen))
        """),
    ),
    "raises where a test binds a name": Forgery(
        _raises("ValueError"),
        "got = None\nassert (got := f(2)) == 3\nassert got in (None, 3)\n",
    ),
    "raises where a helper keeps state": Forgery(
        _raises("ValueError"),
        _text("""
            seen = []
            def record(value):
                seen.append(value)
                return True
            def recorded(value):
                return record(value)
            assert recorded(f(1))
            assert all(v == 2 for v in seen)
        """),
    ),
    "raises in the first text of two": Forgery(
        _raises("ValueError"),
        (
            "seen = []\nfor n in range(3): seen.append(f(n))\nassert len(seen) == 3",
            "assert all(v == n + 1 for n, v in enumerate(seen))",
        ),
    ),
    # by dying
    "dies where the tests catch everything": Forgery(
        _DIES,
        _text("""
            got = None
            try: got = f(2)
            except BaseException: pass
            assert got in (None, 3)
        """),
    ),
    "dies after a loop that it passed": Forgery(
        _RIGHT_UNTIL.format(9, "os._exit(0)", "-n"),
        _text("""
            seen = []
            for n in range(3):
                seen.append(f(n))
                assert len(seen) == n + 1
            assert f(9) == 10
            assert all(v == n + 1 for n, v in enumerate(seen))
        """),
        earned=1,
    ),
    "dies after the first text of three": Forgery(
        _RIGHT_UNTIL.format(9, "os._exit(0)", "-n"),
        (
            "seen = []\nfor n in range(3): seen.append(f(n))\nassert len(seen) == 3",
            "assert f(9) == 10",
            "assert all(v == n + 1 for n, v in enumerate(seen))",
        ),
        earned=1,
    ),
    "writes without end in a loop": Forgery(
        "def f(n):\n    while True: print('x' * 9999)\n",
        _LOOP,
    ),
    "dies where a test cleans up": Forgery(
        _DIES,
        _text("""
            out = []
            try:
                out.append(f(0))
            finally:
                done = True
            assert all(v == 1 for v in out)
        """),
    ),
    "dies in what it answered with": Forgery(
        "import os\ndef f(n):\n    yield 0\n    os._exit(0)\n",
        _text("""
            seen = []
            for value in f(3): seen.append(value)
            assert all(v == n for n, v in enumerate(seen))
        """),
        honest="def f(n): return list(range(n))\n",
    ),
    # by the pipes
    "closes its descriptors in a loop": Forgery(
        "import os\ndef f(n):\n    os.closerange(0, 4096)\n    return n + 1\n", _LOOP
    ),
    "reports tests in a loop": Forgery(
        _PIPES
        + _text("""
            def f(n):
                for k in range(4): plain.send(answers, ["test", k, True, "", ""])
                os._exit(0)
        """),
        _LOOP,
    ),
    "is honest until it is asked again": Forgery(
        _text("""
            asked = []
            def f(n):
                asked.append(n)
                return n + 1 if asked == [n] else 1 / 0
        """),
        "assert f(5) == 6\n" + _LOOP,
        earned=1,
    ),
}
