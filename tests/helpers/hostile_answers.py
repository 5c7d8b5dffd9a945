"""Hostile programs that lie, stall or choke on the pipes, and one that looks for the tests.

As in `hostile_programs`: tests of `add(a, b)`, of which none may pass.
"""

from __future__ import annotations

import textwrap

_PIPES = """
import os, sys, time
plain = sys.modules["_plain"]
calls, answers = map(int, next(w for w in sys.orig_argv if w[:1].isdigit() and "," in w).split(","))
"""


def _on_the_pipes(text: str) -> str:
    """A program that knows the numbers of its pipes; `add` runs when it is asked."""
    return _PIPES + textwrap.dedent(text).strip() + "\n"


def _raises(error: str) -> str:
    return f"def add(a, b): raise {error}"


ANSWERS: dict[str, str] = {
    # ends that are no signal's
    "exit status 168": "import os\ndef add(a, b): os._exit(168)",
    "signal 50": "import os\ndef add(a, b): os.kill(os.getpid(), 50)",
    # frames
    "half a frame": _on_the_pipes(r"""
        def add(a, b):
            os.write(answers, b"\0\0")
            time.sleep(60)
    """),
    "answers ahead of the questions": _on_the_pipes("""
        plain.send(answers, ["ready"])
        for number in range(1000): plain.send(answers, ["returned", number + 99, None])
        time.sleep(60)
    """),
    "answers twice": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, ["returned", None, None])
            plain.send(answers, ["returned", None, None])
    """),
    "answers without end": _on_the_pipes("""
        while True: plain.send(answers, ["returned", None, None])
    """),
    "an answer of no shape": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, {"passed": True})
            os._exit(0)
    """),
    "an answer that is too short": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, ["returned"])
            os._exit(0)
    """),
    "reports as answers": _on_the_pipes("""
        def add(a, b):
            for number in range(4): plain.send(answers, ["test", number, True, "", ""])
            plain.send(answers, ["end"])
            os._exit(0)
    """),
    "raises what ends an interpreter": _on_the_pipes("""
        def add(a, b): plain.send(answers, ["raised", ["SystemExit"], "0", None]); os._exit(0)
    """),
    "raises names that are no names": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, ["raised", [None, 5, "print", "__import__"], None, None])
            os._exit(0)
    """),
    "changes of another shape": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, ["returned", None, {"arguments": [[5]]}])
            os._exit(0)
    """),
    "changes that are deep": _on_the_pipes("""
        def add(a, b):
            held = []
            for _ in range(140): held = [held]
            plain.send(answers, ["returned", held, [held, {}]])
            os._exit(0)
    """),
    "megabytes of empty lists": _on_the_pipes(r"""
        def add(a, b):
            data = b"l\0\x32\0\0" + b"l\0\0\0\0" * 0x320000
            os.write(answers, len(data).to_bytes(4, "big"))
            while data: data = data[os.write(answers, data):]
            os._exit(0)
    """),
    "a list that says it is long": _on_the_pipes(r"""
        def add(a, b):
            os.write(answers, b"\0\0\0\5l\0\xff\xff\xff")
            os._exit(0)
    """),
    "a set whose items collide": _on_the_pipes(r"""
        def add(a, b):
            items = [i * (2**61 - 1) for i in range(1, 60_000)]
            body = b"".join(plain.dump(i) for i in items)
            data = b"l\0\0\0\3" + plain.dump("returned")
            data += b"e" + len(items).to_bytes(4, "big") + body + b"N"
            os.write(answers, len(data).to_bytes(4, "big"))
            while data: data = data[os.write(answers, data):]
            os._exit(0)
    """),
    "an unhashable key": _on_the_pipes(r"""
        def add(a, b):
            data = b"d\0\0\0\1l\0\0\0\0N"
            os.write(answers, len(data).to_bytes(4, "big") + data)
            os._exit(0)
    """),
    "a range too long for len": "def add(a, b): return range(10**30)",
    "an opaque object with a long name": ("def add(a, b): return type('x' * 10_000_000, (), {})()"),
    # descriptors
    "closes the pipe of answers": _on_the_pipes("os.close(answers)\ndef add(a, b): return 5"),
    "joins the pipes": _on_the_pipes("os.dup2(calls, answers)\ndef add(a, b): return 5"),
    "pipes that do not block": _on_the_pipes("""
        os.set_blocking(calls, False); os.set_blocking(answers, False)
        def add(a, b): return "x" * 1_000_000
    """),
    "never reads": _on_the_pipes("""
        plain.send(answers, ["ready"])
        time.sleep(60)
    """),
    # words that reach a person
    "a text of control characters": _raises(r"ValueError('\n\r\x1b[2J\x00\u2028\u202e passed')"),
    "an exception with the checker's name": "class AssertionError(BaseException): pass\n"
    + _raises("AssertionError"),
    "an iterator that raises": "def add(a, b):\n    yield 1\n    raise SystemExit(0)",
}

SEARCH = """
import os, sys
for folder, folders, files in os.walk("/"):
    if any("problems" in name or "umaneval" in name.lower() for name in files):
        print("the problems", folder)
    if "colearn" in folders or "sandbox" in folders:
        print("this library", folder)
    if "pyvenv.cfg" in files:
        print("a virtual environment", folder)
    if folder.endswith("-packages") and {"torch", "pydantic", "numpy"} & {*folders}:
        print("an installed package", folder)
    if "left-by-me" in files:
        print("a message of an earlier run", folder)
    try:
        open(os.path.join(folder, "left-by-me"), "w").close()
    except OSError:
        pass
print([pid for pid in range(1, 9999) if os.path.exists(f"/proc/{pid}/cmdline")])
"""
"""Looks for what would help it at all that is shown, and leaves a message for the next run."""
