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
    # the machine, and other processes of the sandbox
    "a counter of the machine, by a socket": _if_allowed("""
        got = socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 57, 8)
    """),
    "a counter of the machine's networks": _if_allowed("""
        got = socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 71, 8)
    """),
    "the fill of the machine's disk": _if_allowed("got = os.statvfs(os.__file__)"),
    "the fill of the machine's disk, by a descriptor": _if_allowed("""
        with open(os.__file__) as file: got = os.fstatvfs(file.fileno())
    """),
    "the limits of the first process": _if_allowed("""
        import resource
        got = resource.prlimit(1, resource.RLIMIT_NOFILE)
    """),
    "limits by the number of a process": _if_allowed("""
        import resource
        got = resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
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

_FILL = """
def fill():
    held, total = [], 0
    try:
        while True: held.append(socket.socketpair())
    except OSError: pass
    for one in (end for pair in held for end in pair):
        one.setblocking(False)
        try:
            while True: total += one.send(b"x" * 4096)
        except OSError: pass
    return held, total
"""
_LIBRARY = """
library = open(os.__file__, "rb")
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = libc.mmap(None, 4096, 1, {}, library.fileno(), 0)
held = ctypes.c_uint.from_address(page).value
"""


def _at_the_library(text: str, flags: int = 1) -> str:
    """With a page of a file that all runs see, mapped shared or, by 2, private."""
    return _if_allowed(_LIBRARY.format(flags).strip() + "\n" + textwrap.dedent(text).strip())


CALLS |= {
    # memory in sockets and pipes: a table of descriptors is all the limit that it has
    "descriptors of a thread's own": _if_allowed("got = libc.close_range(5000, 5000, 2) == 0"),
    "descriptors of a thread's own, later": _if_allowed(
        "got = libc.close_range(5000, 5000, 6) == 0"
    ),
    "descriptors of a thread's own, by unshare": _if_allowed("got = libc.unshare(0x400) == 0"),
    "sockets of three threads": _if_allowed(
        _FILL.strip()
        + """
totals, held = [], []
def work():
    libc.close_range(5000, 5000, 2)
    held.append(fill())
    totals.append(held[-1][1])
    time.sleep(9)
for _ in range(3): threading.Thread(target=work, daemon=True).start()
while len(totals) < 3: time.sleep(0.01)
got = sum(totals) > 15 << 20
"""
    ),
    "sockets whose other ends are closed": _if_allowed("""
        held, total = [], 0
        try:
            while total < 30 << 20:
                one, other = socket.socketpair()
                one.setblocking(False)
                held.append(other)
                try:
                    while True: total += one.send(b"x" * 65536)
                except BlockingIOError: pass
                one.close()
        except OSError: pass
        got = total >= 30 << 20
    """),
    "pipes full to the brim": _if_allowed("""
        total, held = 0, []
        try:
            while total < 8 << 20:
                held.append(os.pipe())
                os.set_blocking(held[-1][1], False)
                try:
                    while True: total += os.write(held[-1][1], b"x" * 65536)
                except BlockingIOError: pass
        except OSError: pass
        got = total >= 8 << 20
    """),
    # what of a file is cached, which other runs see
    "the library out of the cache": _if_allowed("""
        os.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
        got = True
    """),
    "the library into the cache": _if_allowed("""
        os.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_WILLNEED)
        got = True
    """),
    "a read that does not wait": _if_allowed("""
        file, into = os.open(os.__file__, os.O_RDONLY), bytearray(4096)
        try: got = os.preadv(file, [into], 0, os.RWF_NOWAIT)
        except BlockingIOError: got = True
    """),
    "a read that leaves no cache": _if_allowed("""
        got = os.preadv(os.open(os.__file__, os.O_RDONLY), [bytearray(4096)], 0, 0x80)
    """),
    "what is cached, by a map": _at_the_library("""
        held = ctypes.create_string_buffer(1)
        got = libc.mincore(ctypes.c_void_p(page), ctypes.c_size_t(4096), held) == 0
    """),
    "a page out by advice": _at_the_library("""
        got = libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(4096), 21) == 0
    """),
    "a page cold by advice": _at_the_library("""
        got = libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(4096), 20) == 0
    """),
    "a hint on a file": _if_allowed("""
        # of the library's files too, where the user owns them
        got = fcntl.fcntl(os.open("x", os.O_CREAT | os.O_RDWR), 1036, struct.pack("Q", 2))
    """),
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
    "mincore": 27,
    "fadvise64": 221,
    "preadv2": 327,
    "pwritev2": 328,
    "cachestat": 451,
    "futex_waitv": 449,
    "futex_wake": 454,
    "futex_wait": 455,
    "futex_requeue": 456,
    "sysinfo": 99,
    "a call of the future": 499,
    "a call by the x32 numbers": 0x40000000 + 39,
}
_WAITER = """
def wait(): libc.syscall(202, ctypes.c_void_p(page), {wait}, held, None, None, -1)
threading.Thread(target=wait, daemon=True).start()
ends = time.monotonic() + 0.4
while not got and time.monotonic() < ends:
    got = libc.syscall(202, ctypes.c_void_p(page), {wake}, 9, None, None, -1) > 0
"""


def _cloned(flags: int) -> str:
    """A child that waits for ever, on a stack that it needs not."""
    return _if_allowed(f"""
        memory = mmap.mmap(-1, 4096, prot=7)
        # mov eax, clone; syscall; test eax, eax; jnz end; wait: mov eax, pause; syscall; jmp wait;
        memory.write(bytes.fromhex("b8380000000f0585c07509b8220000000f05ebf7c3"))  # end: ret
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        clone = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.c_void_p)(at)
        got = clone({flags}, at + 4096) > 0
    """)


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
    CALLS |= {
        # waiters at a file that all runs see: who wakes them is told how many there were
        "a waiter at the library": _at_the_library(_WAITER.format(wait=0, wake=1)),
        "a waiter at the library, mapped by itself": _at_the_library(
            _WAITER.format(wait=0, wake=1), flags=2
        ),
        "a waiter for some bits": _at_the_library(_WAITER.format(wait=9, wake=10)),
        "a waiter by another clock": _at_the_library(_WAITER.format(wait=9 | 256, wake=10)),
        "a waiter that is moved": _at_the_library("""
            def wait(): libc.syscall(202, ctypes.c_void_p(page), 0, held, None, None, 0)
            threading.Thread(target=wait, daemon=True).start()
            time.sleep(0.2)
            there = ctypes.c_void_p(page + 64)
            got = libc.syscall(202, ctypes.c_void_p(page), 3, 0, ctypes.c_void_p(9), there, 0) > 0
        """),
        "the load of the machine": _if_allowed("""
            told = ctypes.create_string_buffer(200)
            got = libc.sysinfo(told) == 0
        """),
        "a thread without shared descriptors": _cloned(0x00010B00),
        "a process of shared descriptors": _cloned(0x00000511),
        "a process of shared memory": _cloned(0x00000111),
        "a thread without shared descriptors, by clone3": _if_allowed("""
            stack = ctypes.create_string_buffer(65536)
            given = struct.pack("8Q", 0x00010B00, 0, 0, 0, 0, ctypes.addressof(stack), 65536, 0)
            got = libc.syscall(435, given, 64) >= 0
        """),
    }
