"""Attempts at what the sandbox must refuse: what escapes the limits, marks shared files, or leads
out.

Each sets `got` only where it got what it wanted. One program makes all of them, one after the
other, and prints the names of those that succeeded.
"""

from __future__ import annotations

import platform
import textwrap

from colearn.programs.sandbox import _filter

_SCRIPT = """
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
given = dict(globals())
for number, (name, text) in enumerate({attempts!r}.items()):
    os.mkdir(f"/box/{{number}}")
    os.chdir(f"/box/{{number}}")
    space = dict(given, got=None)
    try:
        exec(text, space)
    except OSError as error:
        if error.errno == errno.EMFILE:
            print(name, "had no descriptor to try with", flush=True)
    except (MemoryError, ValueError):
        pass
    if space["got"]:
        print(name, flush=True)
print("tried", number + 1)
"""


def script(attempts: dict[str, str]) -> str:
    """A program that makes these attempts, each in an empty folder of its own."""
    return _SCRIPT.format(attempts=attempts)


def _attempts(**texts: str) -> dict[str, str]:
    return {name.replace("_", " "): textwrap.dedent(text).strip() for name, text in texts.items()}


_LIBRARY = """
library = open(os.__file__, "rb")
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = libc.mmap(None, 4096, 1, 1, library.fileno(), 0)
held = ctypes.c_uint.from_address(page).value
"""


def _at_the_library(text: str) -> str:
    """With a shared page of a file that all runs see."""
    return _LIBRARY + textwrap.dedent(text)


MEMORY = _attempts(
    a_socket_of_the_machine="""
        for descriptor in range(64):
            try: got = got or (os.fstat(descriptor).st_mode & 0o170000 == 0o140000)
            except OSError: pass
    """,
    vmsplice="""
        reading, writing = os.pipe()
        memory = ctypes.create_string_buffer(4096)
        vector = struct.pack("QQ", ctypes.addressof(memory), 4096)
        got = libc.vmsplice(writing, vector, 1, 0) > 0
    """,
    extended_attributes="""
        with open("x", "w") as file: os.setxattr(file.fileno(), "user.x", b"x")
        got = True
    """,
    large_socket_buffers="""
        one, other = socket.socketpair()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        got = True
    """,
    descriptors_in_flight="""
        one, other = socket.socketpair()
        socket.send_fds(one, [b"x"], [0])
        got = True
    """,
    a_pair_of_sockets_that_is_not_local="""
        for family in (2, 10, 16, 30, 38, 40):
            try: got = got or socket.socketpair(family, socket.SOCK_STREAM)
            except PermissionError: pass
            except OSError: got = True
    """,
    large_pipes="got = fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)",
    locked_memory="got = libc.mlock(ctypes.create_string_buffer(99_999), 99_999) == 0",
    shared_memory_of_a_gigabyte="got = mmap.mmap(-1, 1 << 30)",
    a_map_that_reserves_nothing="""
        libc.mmap.restype = ctypes.c_void_p
        got = libc.mmap(None, ctypes.c_size_t(1 << 30), 3, 0x4022, -1, 0) != 2**64 - 1
    """,
    a_sparse_file_of_a_terabyte="""
        with open("x", "wb") as file: file.truncate(1 << 40)
        got = True
    """,
    a_raised_limit="""
        resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
        got = True
    """,
    hundreds_of_descriptors="""
        held = []
        try:
            while len(held) < 100: held.append(socket.socketpair())
            got = True
        except OSError: pass
    """,
    thousands_of_timers="""
        timers = [libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) for _ in range(1000)]
        got = not any(timers)
    """,
    descriptors_of_a_threads_own="""
        got = libc.close_range(5000, 5000, 2) == 0 or libc.close_range(5000, 5000, 6) == 0
    """,
    sockets_whose_other_ends_are_closed="""
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
            got = True
        except OSError: pass
    """,
)
"""Memory that the limit does not count, and limits that are raised."""

SHARED = _attempts(
    a_lock_on_the_library="""
        fcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)
        got = True
    """,
    a_shared_lock_on_the_library="""
        fcntl.lockf(open(os.__file__), fcntl.LOCK_SH | fcntl.LOCK_NB)
        got = True
    """,
    a_lock_of_an_open_file="""
        fcntl.fcntl(open(os.__file__), 37, struct.pack("hhqqi4x", 0, 0, 0, 0, 0))
        got = True
    """,
    a_lease="got = fcntl.fcntl(open('/etc/ld.so.cache'), 1024, 0) == 0",
    a_notice_about_a_folder="""
        fcntl.fcntl(os.open("/usr/lib", os.O_RDONLY), 1026, 0x80000001)
        got = True
    """,
    a_watch_on_the_library="""
        watch = libc.inotify_init()
        got = libc.inotify_add_watch(watch, os.fsencode(os.__file__), 0xFFF) >= 0
    """,
    the_times_of_the_null_device="os.utime('/dev/null')\ngot = True",
    the_mode_of_the_null_device="os.chmod('/dev/null', 0o600)\ngot = True",
    another_null_device="""
        os.mknod("null", 0o20666, os.makedev(1, 3))
        got = open("null", "wb")
    """,
    the_librarys_own_files="os.truncate(os.__file__, 0)\ngot = True",
    a_name_over_the_library="os.rename('/usr/lib', '/usr/lib2')\ngot = True",
    a_file_beside_the_library="""
        for path in (os.__file__, "/escaped", "/dev/escaped", "/usr/lib/escaped"):
            try: got = got or open(path, "w")
            except OSError: pass
    """,
    every_disk_at_once="got = libc.fsync(-1) != 0 or libc.fdatasync(-1) != 0",
    the_library_out_of_the_cache="""
        os.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
        got = True
    """,
    a_read_that_does_not_wait="""
        file, into = os.open(os.__file__, os.O_RDONLY), bytearray(4096)
        try: got = os.preadv(file, [into], 0, os.RWF_NOWAIT)
        except BlockingIOError: got = True
    """,
    what_is_cached_by_a_map=_at_the_library("""
        held = ctypes.create_string_buffer(1)
        got = libc.mincore(ctypes.c_void_p(page), ctypes.c_size_t(4096), held) == 0
    """),
    a_page_out_by_advice=_at_the_library("""
        for advice in (20, 21):
            got = got or libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(4096), advice) == 0
    """),
    a_hint_on_a_file="""
        # of the library's files too, where the user owns them
        got = fcntl.fcntl(os.open("x", os.O_CREAT | os.O_RDWR), 1036, struct.pack("Q", 2))
    """,
)
"""Marks on files that other runs see too."""

OUTSIDE = _attempts(
    the_folder_above_the_root="""
        os.chdir("/")
        os.chdir("../../..")
        got = {"proc", "sys", "var", "boot", "run"} & set(os.listdir("."))
    """,
    a_link_out="os.symlink('/etc/passwd', 'x')\ngot = open('x').read()",
    a_library_linked_into_the_box="os.link(os.__file__, 'x')\ngot = True",
    the_roots_identity="os.setuid(0)\ngot = os.getuid() == 0",
    another_users_identity="os.setresuid(1, 1, 1)\ngot = True",
    a_program_that_gives_rights="""
        import shutil
        shutil.copyfile("/etc/ld.so.cache", "x")
        os.chmod("x", 0o6755)
        got = os.stat("x").st_uid == 0
    """,
    a_user_namespace="got = libc.unshare(0x10000000) == 0",
    a_mount_namespace="got = libc.unshare(0x20000) == 0 or libc.chroot(b'/box') == 0",
    a_mount="""
        got = libc.mount(b"none", b"/box", b"proc", 0, None) == 0
        got = got or libc.mount(None, b"/usr/lib", None, 0x1020, None) == 0
    """,
    the_memory_of_the_kernel="""
        for name in ("mem", "kmem", "kmsg", "port", "vda", "sda", "tty", "ptmx", "shm", "fuse"):
            try: got = got or open(f"/dev/{name}", "rb")
            except OSError: pass
    """,
    a_disk="""
        os.mknod("disk", 0o60666, os.makedev(254, 0))
        got = open("disk", "rb").read(1)
    """,
    the_memory_and_environment_of_other_processes="""
        for path in (f"/proc/{os.getppid()}/mem", "/proc/1/environ"):
            try: got = got or open(path, "rb").read(10)
            except OSError: pass
    """,
    other_processes_by_ptrace="""
        for target in (1, os.getppid()): got = got or libc.ptrace(16, target, 0, 0) == 0
    """,
    a_counter_of_the_machine_by_a_socket="""
        got = socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 57, 8)
    """,
    a_counter_of_the_machines_networks="""
        got = socket.socketpair()[0].getsockopt(socket.SOL_SOCKET, 71, 8)
    """,
    the_fill_of_the_machines_disk="got = os.statvfs(os.__file__)",
    the_load_of_the_machine="got = libc.sysinfo(ctypes.create_string_buffer(200)) == 0",
    the_limits_of_the_first_process="got = resource.prlimit(1, resource.RLIMIT_NOFILE)",
    limits_by_the_number_of_a_process="""
        got = resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
    """,
)
"""What is outside of the place, the machine, and its other processes."""

_WAITER = """
def wait(): libc.syscall(202, ctypes.c_void_p(page), {wait}, held, None, None, -1)
threading.Thread(target=wait, daemon=True).start()
ends = time.monotonic() + 0.4
while not got and time.monotonic() < ends:
    got = libc.syscall(202, ctypes.c_void_p(page), {wake}, 9, None, None, -1) > 0
"""


def _cloned(flags: int) -> str:
    """A child that waits for ever, on a stack that it needs not."""
    return f"""
        memory = mmap.mmap(-1, 4096, prot=7)
        # mov eax, clone; syscall; test eax, eax; jnz end; wait: mov eax, pause; syscall; jmp wait;
        memory.write(bytes.fromhex("b8380000000f0585c07509b8220000000f05ebf7c3"))  # end: ret
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        clone = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.c_void_p)(at)
        got = clone({flags}, at + 4096) > 0
    """


ON_X86 = _attempts(
    a_user_namespace_by_clone=_cloned(0x10000011),
    a_process_that_shares_all_but_threads=_cloned(0x00000011),
    a_thread_without_shared_descriptors=_cloned(0x00010B00),
    a_thread_without_shared_descriptors_by_clone3="""
        stack = ctypes.create_string_buffer(65536)
        given = struct.pack("8Q", 0x00010B00, 0, 0, 0, 0, ctypes.addressof(stack), 65536, 0)
        got = libc.syscall(435, given, 64) >= 0
    """,
    # waiters at a file that all runs see: who wakes them is told how many there were
    a_waiter_at_the_library=_at_the_library(_WAITER.format(wait=0, wake=1)),
    a_waiter_for_some_bits=_at_the_library(_WAITER.format(wait=9, wake=10)),
    a_waiter_that_is_moved=_at_the_library("""
        def wait(): libc.syscall(202, ctypes.c_void_p(page), 0, held, None, None, 0)
        threading.Thread(target=wait, daemon=True).start()
        time.sleep(0.2)
        there = ctypes.c_void_p(page + 64)
        got = libc.syscall(202, ctypes.c_void_p(page), 3, 0, ctypes.c_void_p(9), there, 0) > 0
    """),
)
"""Attempts by the numbers of x86-64."""

ATTEMPTS = MEMORY | SHARED | OUTSIDE | (ON_X86 if platform.machine() == "x86_64" else {})

REFUSED = (
    *("socket", "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_open"),
    *("pidfd_getfd", "unshare", "setns", "mount", "pivot_root", "open_tree", "move_mount"),
    *("fsopen", "mount_setattr", "statmount", "listmount", "listns", "memfd_create"),
    *("memfd_secret", "shmget", "msgget", "semget", "mq_open", "userfaultfd", "io_uring_setup"),
    *("io_setup", "landlock_create_ruleset", "bpf", "perf_event_open", "syslog", "acct"),
    *("quotactl_fd", "reboot", "sethostname", "kexec_load", "init_module", "settimeofday"),
    *("swapon", "add_key", "keyctl", "name_to_handle_at", "open_by_handle_at", "fanotify_init"),
    *("mbind", "move_pages", "mincore", "fadvise64", "sysinfo"),
)
ABSENT = (
    *("preadv2", "pwritev2", "cachestat"),
    *("futex_waitv", "futex_wake", "futex_wait", "futex_requeue"),
)


def calls_by_number() -> dict[str, str]:
    """Attempts at system calls by number: refused by it, the kernel never looks at what it is
    given. Among them are one that no kernel has yet, and one by the numbers of x32."""
    column, _ = _filter._MACHINES[platform.machine()]
    known = {name: _filter._REFUSED[name][column] for name in REFUSED}
    known |= {name: _filter._ABSENT[name][column] for name in ABSENT}
    known |= {"clone3": 435, "a call of the future": 499, "by the x32 numbers": 0x40000000 + 39}
    return {
        name: f"libc.syscall({n}, 0, 0, 0, 0, 0, 0)\ngot = ctypes.get_errno() not in (1, 38)"
        for name, n in known.items()
    }
