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
    "sys.exit at import": "import sys\nsys.exit(0)",
    "sys.exit in a call": "import sys\ndef add(a, b): sys.exit(0)",
    "SystemExit of True": "def add(a, b): raise SystemExit(True)",
    "kills itself": "import os, signal\ndef add(a, b): os.kill(os.getpid(), signal.SIGKILL)",
    "aborts": "import os\ndef add(a, b): os.abort()",
    "ends with a stopped self": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "KeyboardInterrupt": "def add(a, b): raise KeyboardInterrupt",
    "GeneratorExit": "def add(a, b): raise GeneratorExit",
    "execs true": "import os\ndef add(a, b): os.execv('/usr/bin/true', ['true'])",
    "execs an interpreter": _program("""
        import os, sys
        def add(a, b):
            os.execv(sys.executable, [sys.executable, "-c", "print('passed')"])
    """),
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
    "writes noise to every descriptor": _program("""
        import os
        for descriptor in range(3, 4096):
            try: os.write(descriptor, b"\\xff" * 100)
            except OSError: pass
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
    "an int that is always equal": _program("""
        class Yes(int):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __hash__(self): return 0
        def add(a, b): return Yes(77)
    """),
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
    "nan and infinities": "def add(a, b): return float('nan')",
    "unpickles as code": _program("""
        class Code:
            def __reduce__(self): return (exec, ("import os; os._exit(0)",))
        def add(a, b): return Code()
    """),
    "an exception that is every exception": _program("""
        class Every(BaseException):
            __mro_entries__ = None
            def __init__(self): self.__class__ = Every
        def add(a, b): raise Every
    """),
    "an exception whose text fails": _program("""
        class Mute(Exception):
            def __str__(self): raise SystemExit(0)
        def add(a, b): raise Mute
    """),
    # the checker and the interpreter
    "replaces builtins": _program("""
        import builtins
        class Never(Exception): pass
        builtins.AssertionError = Never
        builtins.all = builtins.any = builtins.bool = builtins.isinstance = lambda *a: True
        builtins.abs = builtins.len = lambda *a: 0
        def add(a, b): return None
    """),
    "defines the names of the tests": _program("""
        def check(candidate): return True
        def candidate(a, b): return True
        tests = passed = True
        def add(a, b): return None
    """),
    "replaces the harness's functions": _program("""
        import sys
        for name in ("_plain", "_apply_limits", "_program"):
            module = sys.modules.get(name)
            for key, value in list(vars(module).items()) if module else ():
                if callable(value):
                    setattr(module, key, lambda *a, **k: True)
        def add(a, b): return 5
    """),
    "walks the frames and replaces locals": _program("""
        import ctypes, sys
        def add(a, b):
            frame = sys._getframe()
            while frame:
                for name in list(frame.f_locals):
                    frame.f_locals[name] = True
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
                frame = frame.f_back
    """),
    "looks for expected values in frames": _program("""
        import inspect
        def add(a, b):
            for info in inspect.stack():
                for scope in (info.frame.f_locals, info.frame.f_globals):
                    for key in ("expected", "statements", "tests", "work", "answer"):
                        if key in scope: return scope[key]
    """),
    "looks for the tests by gc": _program("""
        import gc
        def add(a, b):
            for held in gc.get_objects():
                if isinstance(held, dict) and "statements" in held: return held
                if isinstance(held, str) and "assert" + " add" in held: return 5
    """),
    "replaces json, stdout and marshal": _program("""
        import io, json, marshal, sys
        json.dumps = json.loads = marshal.dumps = marshal.loads = lambda *a, **k: "true"
        sys.stdout = sys.stderr = sys.__stdout__ = io.StringIO("passed")
        def add(a, b): return None
    """),
    "an import hook": _program("""
        import sys
        class Hook:
            def find_spec(self, name, path=None, target=None): raise SystemExit(0)
        sys.meta_path.insert(0, Hook())
        sys.modules.clear()
        def add(a, b): return None
    """),
    "atexit": _program("""
        import atexit, os
        atexit.register(lambda: (print("passed"), os._exit(0)))
        def add(a, b): return None
    """),
    "trace and profile": _program("""
        import sys
        sys.settrace(lambda *a: None)
        sys.setprofile(lambda *a: sys.exit(0))
        def add(a, b): return None
    """),
    "writes to memory by ctypes": _program("""
        import ctypes
        def add(a, b):
            for value in (0, 5, 1, True, False):
                ctypes.memset(id(value) + 24, 0xFF, 4)
            return 5
    """),
    "null pointer": "import ctypes\ndef add(a, b): return ctypes.string_at(0)",
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
    "ptrace": _program("""
        import ctypes, os
        libc = ctypes.CDLL(None)
        for target in (1, os.getppid()):
            if libc.ptrace(16, target, 0, 0) == 0: add = lambda a, b: 5
    """),
    "reads the parent by /proc": _program("""
        import os
        def add(a, b):
            return open(f"/proc/{os.getppid()}/mem", "rb").read(10)
    """),
    "reads the environment of the first process": _program("""
        def add(a, b): return open("/proc/1/environ").read()
    """),
    "reads another's memory": _program("""
        import ctypes, os
        libc = ctypes.CDLL(None)
        def add(a, b):
            if libc.process_vm_readv(1, None, 0, None, 0, 0) == 0: return a + b
            raise OSError
    """),
    "fork bomb": "import os\nwhile True: os.fork()",
    "fork bomb that ignores errors": _program("""
        import os
        while True:
            try: os.fork()
            except OSError: pass
    """),
    "fork bomb by raw calls": _program("""
        import ctypes
        libc = ctypes.CDLL(None)
        while True:
            for number in (56, 57, 58, 220, 435):
                libc.syscall(number, 17, 0, 0, 0, 0)
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
    "connects by raw calls": _program("""
        import ctypes, socket, struct
        libc = ctypes.CDLL(None)
        descriptor = libc.socket(2, 1, 0)
        address = struct.pack("=HHI8x", 2, socket.htons(PORT), 0x0100007F)
        if libc.connect(descriptor, address, 16) == 0:
            def add(a, b): return a + b
    """),
    "resolves a name": "import socket\nsocket.getaddrinfo('example.org', 80)",
    "reads the password file": "def add(a, b): return open('/etc/passwd').read()",
    "reads a file outside": "def add(a, b): return int(open('OUTSIDE/secret').read())",
    "writes a file outside": "open('OUTSIDE/escaped', 'w').write('out')",
    "writes over the interpreter": _program("""
        import os
        for path in (os.__file__, "/escaped", "/dev/escaped", "/usr/lib/escaped"):
            try: open(path, "w").write("out")
            except OSError: pass
            else: add = lambda a, b: a + b
    """),
    "deletes all it can": _program("""
        import os, shutil
        shutil.rmtree("/", ignore_errors=True)
        shutil.rmtree("OUTSIDE", ignore_errors=True)
        os.chdir("/")
        os.rmdir("/box")
    """),
    "mounts and leaves the root": _program("""
        import ctypes, os
        libc = ctypes.CDLL(None)
        done = [libc.unshare(0x10000000), libc.unshare(0x20000), libc.chroot(b"/box")]
        done += [libc.mount(b"none", b"/box", b"proc", 0, None), libc.umount(b"/box")]
        done += [libc.setuid(0)]
        if 0 in done: add = lambda a, b: a + b
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
    "an endless loop in a call": "def add(a, b):\n    while True: pass",
    "sleeps": "import time\ndef add(a, b): time.sleep(3600)",
    "waits for input": "def add(a, b): return input()",
    "reads its input for ever": _program("""
        import sys
        def add(a, b):
            while not sys.stdin.read(): pass
    """),
    "catches everything for ever": _program("""
        def add(a, b):
            while True:
                try:
                    while True: pass
                except BaseException: pass
    """),
    "an endless iterator": "import itertools\ndef add(a, b): return itertools.count()",
    "memory by a list": "def add(a, b): return [0] * 10**10",
    "memory by growth": "held = []\nwhile True: held.append(bytearray(1 << 20))",
    "memory by files in memory": _program("""
        import os
        while True: os.write(os.memfd_create("x"), b"x" * 1_000_000)
    """),
    "huge integers": "def add(a, b): return 9 ** 9 ** 9",
    "a huge integer as an answer": "def add(a, b): return 1 << (1 << 28)",
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
    "an answer that holds itself": _program("""
        def add(a, b):
            held = []
            held.append(held)
            return held
    """),
    "endless output": "while True: print('x' * 10_000)",
    "endless output in a call": _program("""
        import sys
        def add(a, b):
            while True: sys.stderr.write("x" * 10_000)
    """),
    "source that is too deep": "add = " + "(" * 5_000 + ")" * 5_000,
    "source with a null byte": "def add(a, b): return a + b\n\0",
    "source of twenty megabytes": "#" * 20_000_000,
    "source that is no Python": "def add(a, b) return a + b",
    "no function": "subtract = 1",
    "a function that is none": "add = 5",
}
