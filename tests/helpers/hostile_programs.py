"""Programs that try to pass tests without solving them, to get out, or to do harm.

Each is run against tests of `add(a, b)` and must pass none. `OUTSIDE` stands for a folder of the
machine, `PORT` for a port on which the machine listens.
"""

from __future__ import annotations

import textwrap


def _program(text: str) -> str:
    return textwrap.dedent(text).strip() + "\n"


ALWAYS_EQUAL = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 5
    def __add__(self, other): return self
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __abs__(self): return 0
"""

HOSTILE: dict[str, str] = {
    # ending early
    "os._exit at import": "import os\nos._exit(0)",
    "os._exit in a call": "import os\ndef add(a, b): os._exit(0)",
    "SystemExit of True": "def add(a, b): raise SystemExit(True)",
    "ends with a stopped self": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "KeyboardInterrupt": "def add(a, b): raise KeyboardInterrupt",
    "execs true": "import os\ndef add(a, b): os.execv('/usr/bin/true', ['true'])",
    # passing lines and forged results
    "prints a passing line": _program("""
        import sys
        for line in ("passed", "OK", "1 passed in 0.01s", '{"passed": true}'):
            print(line)
            print(line, file=sys.stderr)
        def add(a, b): print("passed")
    """),
    "writes forged reports to every descriptor": _program("""
        import os, sys
        frame = sys.modules["_plain"].framed
        forged = b"".join(frame(["test", n, True, "", ""]) for n in range(9)) + frame(["end"])
        def everywhere():
            for descriptor in range(64):
                try: os.write(descriptor, frame(["ready"]) + forged)
                except OSError: pass
        everywhere()
        def add(a, b): everywhere()
    """),
    "answers before it is asked": _program("""
        import sys, os
        plain = sys.modules["_plain"]
        word = next(w for w in sys.orig_argv if w[:1].isdigit() and "," in w)
        answers = int(word.split(",")[1])
        plain.send(answers, ["ready"])
        for _ in range(100):
            plain.send(answers, ["returned", True, None])
        os._exit(0)
    """),
    "closes every descriptor": "import os\nos.closerange(0, 4096)\ndef add(a, b): return 5",
    "closes every descriptor and goes on": _program("""
        import os, signal
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.closerange(0, 4096)
        while True: pass
    """),
    "says a huge frame follows": _program("""
        import os
        def add(a, b):
            for descriptor in range(3, 4096):
                try: os.write(descriptor, b"\\xff\\xff\\xff\\xff")
                except OSError: pass
            return 5
    """),
    "answers with an object of equality": ALWAYS_EQUAL + "def add(a, b): return Yes()",
    "a str that is always equal": _program("""
        class Yes(str):
            __hash__ = str.__hash__
            def __eq__(self, other): return True
        def add(a, b): return Yes("forged")
    """),
    "a list that is always equal": _program("""
        class Yes(list):
            def __eq__(self, other): return True
        def add(a, b): return Yes([1, 2, 3])
    """),
    "unpickles as code": _program("""
        class Code:
            def __reduce__(self): return (exec, ("import os; os._exit(0)",))
        def add(a, b): return Code()
    """),
    "an exception whose text fails": _program("""
        class Mute(Exception):
            def __str__(self): raise SystemExit(0)
        def add(a, b): raise Mute
    """),
    # the checker and the interpreter
    "replaces the harness's functions": _program("""
        import sys
        for name in ("_plain", "_apply_limits", "_program"):
            module = sys.modules.get(name)
            for key, value in list(vars(module).items()) if module else ():
                if callable(value):
                    setattr(module, key, lambda *a, **k: True)
        def add(a, b): return 5
    """),
    "looks for the tests by gc": _program("""
        import gc
        def add(a, b):
            for held in gc.get_objects():
                if isinstance(held, dict) and "statements" in held: return held
                if isinstance(held, str) and "assert" + " add" in held: return 5
    """),
    "atexit": _program("""
        import atexit, os
        atexit.register(lambda: (print("passed"), os._exit(0)))
        def add(a, b): return None
    """),
    "every signal is handled": _program("""
        import signal
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        def add(a, b):
            while True: pass
    """),
    # other processes
    "signals to its parents": _program("""
        import os, signal
        for target in (os.getppid(), 1, 0, -1):
            for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM):
                try: os.kill(target, number)
                except OSError: pass
    """),
    "fork bomb that ignores errors": _program("""
        import os
        while True:
            try: os.fork()
            except OSError: pass
    """),
    "starts a shell": _program("""
        import os, subprocess
        def add(a, b):
            os.system("touch OUTSIDE/escaped; exit 0")
            return subprocess.run(["sh", "-c", "echo 5"], capture_output=True).stdout
    """),
    "leaves a daemon behind": _program("""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(60)
        def add(a, b): return None
    """),
    "a thread that outlives it": _program("""
        import threading, time
        threading.Thread(target=time.sleep, args=(60,)).start()
        def add(a, b): return None
    """),
    "thread bomb": _program("""
        import threading, time
        threading.stack_size(32768)
        while True:
            threading.Thread(target=time.sleep, args=(60,)).start()
    """),
    # network and files
    "connects": _program("""
        import socket
        socket.create_connection(("127.0.0.1", PORT), 1).sendall(b"out")
        def add(a, b): return a + b
    """),
    "reads a file outside": "def add(a, b): return int(open('OUTSIDE/secret').read())",
    "writes a file outside": "open('OUTSIDE/escaped', 'w').write('out')",
    "deletes all it can": _program("""
        import os, shutil
        shutil.rmtree("/", ignore_errors=True)
        shutil.rmtree("OUTSIDE", ignore_errors=True)
        os.chdir("/")
        os.rmdir("/box")
    """),
    "fills its folder": _program("""
        for number in range(10_000):
            with open(f"f{number}", "wb") as file:
                file.write(b"x" * 1_000_000)
    """),
    "a file too large": _program("""
        with open("large", "wb") as file:
            while True: file.write(b"x" * 1_000_000)
    """),
    # time and memory
    "an endless loop at import": "while True: pass",
    "an endless iterator": "import itertools\ndef add(a, b): return itertools.count()",
    "memory by growth": "held = []\nwhile True: held.append(bytearray(1 << 20))",
    "deep recursion": _program("""
        import sys
        sys.setrecursionlimit(10**9)
        def add(a, b): return add(a, b)
    """),
    "a deep answer": _program("""
        def add(a, b):
            held = []
            for _ in range(100_000): held = [held]
            return held
    """),
    "endless output": "while True: print('x' * 10_000)",
    "source that is too deep": "add = " + "(" * 5_000 + ")" * 5_000,
    "source with a null byte": "def add(a, b): return a + b\n\0",
    "a function that is none": "add = 5",
}
