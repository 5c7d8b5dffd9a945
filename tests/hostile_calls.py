"""Hostile programs that use the kernel: what escapes the limits, marks shared files, or leads out.

Each is right only where it got what it wanted, so that a test that passes shows the hole.
"""

from __future__ import annotations

import platform
import textwrap

_START = """
import ctypes, fcntl, mmap, os, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
got = None
"""
_END = """
if got:
    def add(a, b): return a + b
"""


def _if_allowed(text: str) -> str:
    return _START + textwrap.dedent(text).strip() + _END


def _counts(text: str, more_than: int) -> str:
    """Does it again and again; more than so many are a hole."""
    body = textwrap.indent(textwrap.dedent(text).strip(), " " * 8)
    return (
        _START
        + f"count, held = 0, []\ntry:\n    while count <= {more_than}:\n{body}\n"
        + "        count += 1\nexcept (OSError, MemoryError, RuntimeError): pass\n"
        + f"got = count > {more_than}"
        + _END
    )


CALLS: dict[str, str] = {
    # memory that the limit does not count
    "vmsplice": _if_allowed("""
        reading, writing = os.pipe()
        memory = ctypes.create_string_buffer(4096)
        vector = struct.pack("QQ", ctypes.addressof(memory), 4096)
        got = libc.vmsplice(writing, vector, 1, 0) > 0
    """),
    "extended attributes": _if_allowed("""
        open("x", "w").close()
        os.setxattr("x", "user.x", b"x" * 60_000)
        got = True
    """),
    "extended attributes by a descriptor": _if_allowed("""
        with open("x", "w") as file: os.setxattr(file.fileno(), "user.x", b"x")
        got = True
    """),
    "large socket buffers": _if_allowed("""
        one, other = socket.socketpair()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        got = True
    """),
    "descriptors in flight": _if_allowed("""
        one, other = socket.socketpair()
        socket.send_fds(one, [b"x"], [0])
        got = True
    """),
    "a pair of sockets that is not local": _if_allowed("""
        for family in (2, 10, 16, 30, 38, 40):
            try: got = got or socket.socketpair(family, socket.SOCK_STREAM)
            except PermissionError: pass
            except OSError: got = True
    """),
    "large pipes": _if_allowed("got = fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)"),
    "a hundred thousand files": _counts("open(f'f{count}', 'x').close()", 100_000),
    "a hundred thousand folders": _counts("os.mkdir(f'f{count}')", 100_000),
    "a hundred thousand links": _counts(
        "os.link('f', f'f{count}') if count else open('f', 'x').close()", 100_000
    ),
    "links with long targets": _counts("os.symlink('x' * 4000, f'f{count}')", 100_000),
    "thousands of timers": _counts(
        "if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())): raise OSError", 1000
    ),
    "thousands of signals that wait": _counts(
        "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\n"
        "if libc.sigqueue(os.getpid(), 40, None): raise OSError",
        1000,
    ),
    "locked memory": _if_allowed("""
        got = libc.mlock(ctypes.create_string_buffer(99_999), 99_999) == 0
    """),
    "shared memory of a gigabyte": _if_allowed("got = mmap.mmap(-1, 1 << 30)"),
    "a map that reserves nothing": _if_allowed("""
        libc.mmap.restype = ctypes.c_void_p
        got = libc.mmap(None, ctypes.c_size_t(1 << 30), 3, 0x4022, -1, 0) != 2**64 - 1
    """),
    "a sparse file of a terabyte": _if_allowed("""
        with open("x", "wb") as file: file.truncate(1 << 40)
        got = True
    """),
    "a raised limit": _if_allowed("""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
        got = True
    """),
    "hundreds of descriptors": _counts("held.append(os.pipe())", 100),
    "hundreds of threads": _counts(
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", 200
    ),
    "a socket of the machine's": _if_allowed("""
        for descriptor in range(64):
            try: got = got or (os.fstat(descriptor).st_mode & 0o170000 == 0o140000)
            except OSError: pass
    """),
    # marks on what other runs see too
    "a lock on the library": _if_allowed("""
        fcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)
        got = True
    """),
    "a shared lock on the library": _if_allowed("""
        fcntl.lockf(open(os.__file__), fcntl.LOCK_SH | fcntl.LOCK_NB)
        got = True
    """),
    "a lock of an open file": _if_allowed("""
        lock = struct.pack("hhqqi4x", 0, 0, 0, 0, 0)
        fcntl.fcntl(open(os.__file__), 37, lock)
        got = True
    """),
    "a lease": _if_allowed("got = fcntl.fcntl(open('/etc/ld.so.cache'), 1024, 0) == 0"),
    "a notice about a folder": _if_allowed("""
        fcntl.fcntl(os.open("/usr/lib", os.O_RDONLY), 1026, 0x80000001)
        got = True
    """),
    "a watch on the library": _if_allowed("""
        watch = libc.inotify_init()
        got = libc.inotify_add_watch(watch, os.fsencode(os.__file__), 0xFFF) >= 0
    """),
    "a watch on the null device": _if_allowed("""
        got = libc.inotify_add_watch(libc.inotify_init1(0), b"/dev/null", 0xFFF) >= 0
    """),
    "the times of the null device": _if_allowed("os.utime('/dev/null')\ngot = True"),
    "the times of the null device, open": _if_allowed("""
        os.utime(os.open("/dev/null", os.O_RDWR), (1, 1))
        got = True
    """),
    "the mode of the null device": _if_allowed("os.chmod('/dev/null', 0o600)\ngot = True"),
    "the owner of the null device": _if_allowed("""
        os.chown("/dev/null", os.getuid(), os.getgid())
        got = True
    """),
    "another null device": _if_allowed("""
        os.mknod("null", 0o20666, os.makedev(1, 3))
        got = open("null", "wb")
    """),
    "a disk": _if_allowed("""
        os.mknod("disk", 0o60666, os.makedev(254, 0))
        got = open("disk", "rb").read(1)
    """),
    "the library's own files": _if_allowed("""
        os.truncate(os.__file__, 0)
        got = True
    """),
    "a name over the library": _if_allowed("""
        os.rename("/usr/lib", "/usr/lib2")
        got = True
    """),
    "every disk at once": _if_allowed("""
        began = time.monotonic()
        for _ in range(10_000): os.sync()
        if time.monotonic() - began > 0.9: got = True
    """),
    # out of the place
    "the folder above the root": _if_allowed("""
        os.chdir("/")
        os.chdir("../../..")
        got = set(os.listdir(".")) - {"box", "dev", "etc", "lib", "lib64", "root", "usr", "home"}
        got = [name for name in got if name in ("proc", "sys", "var", "boot", "run")]
    """),
    "a link out": _if_allowed("os.symlink('/etc/passwd', 'x')\ngot = open('x').read()"),
    "a library linked into the box": _if_allowed("os.link(os.__file__, 'x')\ngot = True"),
    "the root's identity": _if_allowed("os.setuid(0)\ngot = os.getuid() == 0"),
    "another user's identity": _if_allowed("os.setresuid(1, 1, 1)\ngot = True"),
    "a program that gives rights": _if_allowed("""
        import shutil
        shutil.copyfile(sys.executable, "x")
        os.chmod("x", 0o6755)
        got = os.stat("x").st_uid == 0
    """),
    "a user namespace": _if_allowed("got = libc.unshare(0x10000000) == 0"),
    "a user namespace by clone": _if_allowed("""
        child = libc.syscall(56, 0x10000011, 0, 0, 0, 0)
        if child == 0: time.sleep(9)
        got = child > 0
    """),
    "a process that shares all but threads": _if_allowed("""
        child = libc.syscall(56, 0x00000011, 0, 0, 0, 0)
        if child == 0: time.sleep(9)
        got = child > 0
    """),
    "the memory of the kernel": _if_allowed("""
        for name in ("mem", "kmem", "kmsg", "port", "vda", "sda", "tty", "ptmx", "shm", "fuse"):
            try: got = got or open(f"/dev/{name}", "rb")
            except OSError: pass
    """),
    "the mounts, writable again": _if_allowed("""
        got = libc.mount(None, b"/usr/lib", None, 0x1020, None) == 0
    """),
    # time
    "a pattern that takes for ever": "import re\ndef add(a, b): re.match('(a+)+$', 'a' * 64 + 'b')",
    "sleeps in C": "import ctypes\ndef add(a, b): ctypes.CDLL(None).sleep(60)",
    "a processor limit that is ignored": (
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    ),
    "waits at a pipe of its own": "import os\ndef add(a, b): os.read(os.pipe()[0], 1)",
    "waits at a named pipe": "import os\nos.mkfifo('x')\ndef add(a, b): return open('x').read()",
    "waits for itself": (
        "import threading\nlock = threading.Lock()\nlock.acquire()\ndef add(a, b): lock.acquire()"
    ),
    "threads that spin": (
        "import threading\ndef spin():\n    while True: pass\n"
        "for _ in range(20): threading.Thread(target=spin).start()\nspin()"
    ),
    "clean-up that never ends": (
        "class Held:\n    def __del__(self):\n        while True: pass\n"
        "def add(a, b):\n    Held()\n    return None"
    ),
    "a loop that compiles": "while True: compile('+'.join('1' * 3000), 'x', 'eval')",
    "a sort that compares for ever": (
        "class Item:\n    def __lt__(self, other):\n        while True: pass\n"
        "def add(a, b): return sorted([Item(), Item()])"
    ),
}

_NUMBERS = {
    "socket": 41,
    "ptrace": 101,
    "process_vm_writev": 311,
    "kcmp": 312,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "setns": 308,
    "pivot_root": 155,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "mount_setattr": 442,
    "statmount": 457,
    "listmount": 458,
    "listns": 470,
    "memfd_create": 319,
    "memfd_secret": 447,
    "shmget": 29,
    "msgget": 68,
    "semget": 64,
    "mq_open": 240,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_setup": 206,
    "landlock_create_ruleset": 444,
    "bpf": 321,
    "perf_event_open": 298,
    "syslog": 103,
    "acct": 163,
    "quotactl_fd": 443,
    "reboot": 169,
    "sethostname": 170,
    "kexec_load": 246,
    "init_module": 175,
    "settimeofday": 164,
    "swapon": 167,
    "iopl": 172,
    "modify_ldt": 154,
    "add_key": 248,
    "keyctl": 250,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "fanotify_init": 300,
    "mbind": 237,
    "move_pages": 279,
    "clone3": 435,
    "a call of the future": 499,
    "a call by the x32 numbers": 0x40000000 + 39,
}
if platform.machine() == "x86_64":
    # refused by number, so the kernel never looks at what it is given
    CALLS |= {
        f"system call {name}": _if_allowed(f"""
            libc.syscall({number}, 0, 0, 0, 0, 0, 0)
            got = ctypes.get_errno() not in (1, 38)
        """)
        for name, number in _NUMBERS.items()
    }
    CALLS["a system call of 32 bits"] = _if_allowed("""
        memory = mmap.mmap(-1, 4096, prot=7)
        memory.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, getpid; int 0x80; ret
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        got = ctypes.CFUNCTYPE(ctypes.c_int)(at)() > 0
    """)
