"""Hostile programs that lie, stall or choke on the pipes, and that look for the tests.

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


def _if_found(text: str) -> str:
    """A program that is right only where its search sets `got`."""
    return (
        "import os, sys\ngot = None\n"
        + textwrap.dedent(text).strip()
        + "\nif got:\n    def add(a, b): return a + b\n"
    )


def _raises(error: str) -> str:
    return f"def add(a, b): raise {error}"


ANSWERS: dict[str, str] = {
    # ends that are no signal's
    "exit status 168": "import os\ndef add(a, b): os._exit(168)",
    "exit status 193": "import os\ndef add(a, b): os._exit(193)",
    "exit status 255 at import": "import os\nos._exit(255)",
    "exit status 137": "import os\ndef add(a, b): os._exit(137)",
    "signal 50": "import os\ndef add(a, b): os.kill(os.getpid(), 50)",
    "signal 34": "import os\nos.kill(os.getpid(), 34)",
    "signal 64": "import os\ndef add(a, b): os.kill(os.getpid(), 64)",
    "stops itself in a call": "import os\ndef add(a, b): os.kill(os.getpid(), 19)",
    "a stack overflow": "import ctypes\ndef add(a, b): ctypes.CDLL(None).alloca(1 << 30)",
    "an illegal instruction": (
        "import ctypes, mmap\n"
        "m = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\x0f\\x0b')\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "def add(a, b): ctypes.CFUNCTYPE(None)(at)()"
    ),
    # frames
    "half a frame": _on_the_pipes(r"""
        def add(a, b):
            os.write(answers, b"\0\0")
            time.sleep(60)
    """),
    "a frame that lacks its end": _on_the_pipes(r"""
        def add(a, b):
            os.write(answers, b"\0\0\1\0l")
            time.sleep(60)
    """),
    "a frame byte by byte": _on_the_pipes(r"""
        def add(a, b):
            os.write(answers, b"\0\1\0\0l")
            while True:
                os.write(answers, b"\0")
                time.sleep(0.01)
    """),
    "half a frame at the start": _on_the_pipes(r"""
        os.write(answers, b"\0\0\1")
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
    "an answer that is a number": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, 5)
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
        def add(a, b): plain.send(answers, ["raised", ["SystemExit"], "0", None]); time.sleep(60)
    """),
    "raises a class of the checker's": _on_the_pipes("""
        def add(a, b): plain.send(answers, ["raised", ["Lost"], "", None]); time.sleep(60)
    """),
    "raises names that are no names": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, ["raised", [None, 5, "print", "__import__"], None, None])
            time.sleep(60)
    """),
    "raises a million names": _on_the_pipes("""
        def add(a, b): plain.send(answers, ["raised", ["X"] * 10**6, "", None]); time.sleep(60)
    """),
    "raises a text of megabytes": _on_the_pipes("""
        def add(a, b): plain.send(answers, ["raised", ["E"], "x" * 15_000_000, None])
    """),
    "changes of another shape": _on_the_pipes("""
        def add(a, b):
            plain.send(answers, ["returned", None, {"arguments": [[5]]}])
            time.sleep(60)
    """),
    "changes that are deep": _on_the_pipes("""
        def add(a, b):
            held = []
            for _ in range(140): held = [held]
            plain.send(answers, ["returned", held, [held, {}]])
            time.sleep(60)
    """),
    "megabytes of empty lists": _on_the_pipes(r"""
        def add(a, b):
            data = b"l\0\x32\0\0" + b"l\0\0\0\0" * 0x320000
            os.write(answers, len(data).to_bytes(4, "big"))
            while data: data = data[os.write(answers, data):]
            time.sleep(60)
    """),
    "a list that says it is long": _on_the_pipes(r"""
        def add(a, b):
            os.write(answers, b"\0\0\0\5l\0\xff\xff\xff")
            time.sleep(60)
    """),
    "a set whose items collide": _on_the_pipes(r"""
        def add(a, b):
            items = [i * (2**61 - 1) for i in range(1, 60_000)]
            body = b"".join(plain.dump(i) for i in items)
            data = b"l\0\0\0\3" + plain.dump("returned")
            data += b"e" + len(items).to_bytes(4, "big") + body + b"N"
            os.write(answers, len(data).to_bytes(4, "big"))
            while data: data = data[os.write(answers, data):]
            time.sleep(60)
    """),
    "an unhashable key": _on_the_pipes(r"""
        def add(a, b):
            data = b"d\0\0\0\1l\0\0\0\0N"
            os.write(answers, len(data).to_bytes(4, "big") + data)
            time.sleep(60)
    """),
    "a range too long for len": "def add(a, b): return range(10**30)",
    "an opaque object with a long name": ("def add(a, b): return type('x' * 10_000_000, (), {})()"),
    "an object of a class without a name": "def add(a, b): return type('', (), {})()",
    # descriptors
    "closes the pipe of answers": _on_the_pipes("os.close(answers)\ndef add(a, b): return 5"),
    "closes the pipe of calls": _on_the_pipes("os.close(calls)"),
    "answers on the pipe of calls": _on_the_pipes("""
        def add(a, b): plain.send(calls, ["returned", 5, None]); time.sleep(60)
    """),
    "reads its own answers": _on_the_pipes("def add(a, b): return os.read(answers, 10)"),
    "joins the pipes": _on_the_pipes("os.dup2(calls, answers)\ndef add(a, b): return 5"),
    "pipes that do not block": _on_the_pipes("""
        os.set_blocking(calls, False); os.set_blocking(answers, False)
        def add(a, b): return "x" * 1_000_000
    """),
    "never reads": _on_the_pipes("""
        plain.send(answers, ["ready"])
        time.sleep(60)
    """),
    "greets again and again": "import os\nwhile True: os.write(1, b'.' * 60_000)",
    # words that reach a person
    "a text of control characters": _raises(r"ValueError('\n\r\x1b[2J\x00\u2028\u202e passed')"),
    "a text of lone surrogates": _raises(r"ValueError('\ud800' * 100)"),
    "an exception with the checker's name": "class AssertionError(BaseException): pass\n"
    + _raises("AssertionError"),
    "a group of exceptions": _raises("BaseExceptionGroup('x', [SystemExit(0), KeyError()])"),
    "an iterator that raises": "def add(a, b):\n    yield 1\n    raise SystemExit(0)",
    "iterators in iterators": "def add(a, b): return iter([iter([iter([5])])])",
    "a float subclass that is anything": (
        "class Any(float):\n    __eq__ = lambda s, o: True\n    __hash__ = float.__hash__\n"
        "def add(a, b): return Any('nan')"
    ),
}

SEARCHES: dict[str, str] = {
    # given time enough to look at all that is shown
    "walks for the problems": _if_found("""
        for folder, _, files in os.walk("/"):
            if any("problems" in name or "umaneval" in name.lower() for name in files): got = folder
    """),
    "walks for this library": _if_found("""
        for folder, folders, files in os.walk("/"):
            if "colearn" in folders or "sandbox" in folders: got = folder
    """),
    "walks for packages that this library needs": _if_found("""
        needed = {"torch", "transformers", "pydantic", "safetensors", "typer"}
        for folder, folders, files in os.walk("/"):
            if folder.endswith("-packages") and needed & {*folders}: got = folder
    """),
    "imports this library": _if_found("""
        for folder, folders, _ in os.walk("/"):
            if "colearn" in folders: sys.path.append(folder)
        try: import colearn as got
        except ImportError: pass
    """),
    "imports an installed package": _if_found("""
        for folder, folders, _ in os.walk("/"):
            if folder.endswith("-packages"): sys.path.append(folder)
        try: import numpy as got
        except ImportError: pass
    """),
    "looks for a virtual environment": _if_found("""
        for folder, _, files in os.walk("/"):
            if "pyvenv.cfg" in files: got = folder
    """),
    "looks for command lines": _if_found("""
        got = [pid for pid in range(1, 9999) if os.path.exists(f"/proc/{pid}/cmdline")]
    """),
    "looks for other boxes": _if_found("got = os.listdir('/box')"),
    "a message by a file for the next run": _if_found("""
        for folder, _, _ in os.walk("/"):
            path = os.path.join(folder, "left-by-me")
            if os.path.exists(path): got = path
            try: open(path, "w").close()
            except OSError: pass
    """),
}
