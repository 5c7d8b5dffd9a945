"""Seccomp filter: assembles the program with which the kernel refuses unneeded system calls.

It refuses access to other processes' memory, new namespaces and mounts, all sockets except local
pairs, allocations outside the memory limit (memfd, System V, extended attributes), file state that
other runs could observe (locks, watches, times, waiters, page cache), machine-wide counters, limits
of other processes, and new processes where only one is allowed.
"""

from __future__ import annotations

import platform
import struct

EPERM, EAGAIN, ENOSYS = 1, 11, 38
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 24, 32
_CLONE_FILES, _CLONE_THREAD = 0x00000400, 0x00010000
_NEW_NAMESPACES = 0x7E020080
_X32 = 0x40000000
_UNKNOWN = 471
"""First system call number newer than this list; it and all later ones get ENOSYS."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Machine -> (column in the tables below, audit number)."""
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # sockets: there is no network and no name service
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "setsockopt": (54, 208),
    "sendmsg": (46, 211),  # no limit counts descriptors in flight
    "sendmmsg": (307, 269),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
    "listns": (470, 470),
    # memory that the limit does not count
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "vmsplice": (278, 75),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    # marks on files that other runs see too
    "flock": (73, 32),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "file_setattr": (469, 469),
    # page cache state, which all runs share
    "mincore": (27, 232),
    "fadvise64": (221, 223),
    # the memory, the processes and the load of the whole machine, and the fill of its disks
    "sysinfo": (99, 179),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "ustat": (136, None),
    # the kernel and its clock
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    # keys, and files by handle
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "lookup_dcookie": (212, 18),
    # memory placement
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
_STARTING: dict[str, tuple[int | None, int | None]] = {"fork": (57, None), "vfork": (58, None)}
_ABSENT: dict[str, tuple[int | None, int | None]] = {
    # answered with ENOSYS: libc falls back where no flag is given
    "preadv2": (327, 286),
    "pwritev2": (328, 287),
    "cachestat": (451, 451),
    # see _FUTEX
    "futex_waitv": (449, 449),
    "futex_wake": (454, 454),
    "futex_wait": (455, 455),
    "futex_requeue": (456, 456),
}
_IDLE: dict[str, tuple[int | None, int | None]] = {
    # a program's files are in memory: succeed at once without flushing the machine's disks
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "sync_file_range": (277, 84),
    "sync": (162, 81),
    "syncfs": (306, 267),
}
_FCNTL = (72, 25)
_FCNTL_REFUSED = {
    "F_SETLK": 6,
    "F_SETLKW": 7,
    "F_OFD_SETLK": 37,
    "F_OFD_SETLKW": 38,
    "F_SETLEASE": 1024,
    "F_NOTIFY": 1026,
    "F_SETPIPE_SZ": 1031,
    "F_SET_RW_HINT": 1036,
    "F_SET_FILE_RW_HINT": 1038,
}
_MADVISE = (28, 233)
_MADVISE_REFUSED = {"MADV_COLD": 20, "MADV_PAGEOUT": 21}
_GETSOCKOPT = (55, 209)
_GETSOCKOPT_REFUSED = {"SO_COOKIE": 57, "SO_NETNS_COOKIE": 71}  # counters of the machine
_PRLIMIT = (302, 261)
_CLOSE_RANGE = (436, 436)
_CLOSE_RANGE_UNSHARE = 2
_FUTEX = (202, 98)
_FUTEX_PRIVATE, _FUTEX_COMMAND = 128, 127
_FUTEX_WAKE, _FUTEX_WAKE_BITSET = 1, 10
_SOCKETPAIR = (53, 199)
_LOCAL = 1  # AF_UNIX
_CLONE = (56, 220)
_CLONE3 = 435


def filter_program(processes: int) -> bytes | None:
    """The filter as an array of `struct sock_filter`; None on an unsupported machine.

    processes: process limit of the program. With 1 the filter refuses new processes, and threads
        that do not share the file descriptor table.
    """
    if platform.machine() not in _MACHINES:
        return None
    column, arch = _MACHINES[platform.machine()]
    calls = _REFUSED | (_STARTING if processes == 1 else {})
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | EPERM),
        (_JUMP_AT_LEAST, 0, 1, _UNKNOWN),
        (_RETURN, 0, 0, _ERRNO | ENOSYS),
        # a filter cannot read its flags, which are in memory; libc falls back to clone
        (_JUMP_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERRNO | ENOSYS),
    ]
    for answer, numbers in (
        *((_ERRNO | EPERM, numbers) for numbers in calls.values()),
        *((_ERRNO | ENOSYS, numbers) for numbers in _ABSENT.values()),
        *((_ERRNO, numbers) for numbers in _IDLE.values()),
    ):
        number = numbers[column]
        if number is not None:
            code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    code += _by_argument(_FCNTL[column], _SECOND_ARGUMENT, tuple(_FCNTL_REFUSED.values()))
    code += _by_argument(_MADVISE[column], _THIRD_ARGUMENT, tuple(_MADVISE_REFUSED.values()))
    code += _by_argument(_GETSOCKOPT[column], _THIRD_ARGUMENT, tuple(_GETSOCKOPT_REFUSED.values()))
    code += [
        # a process may limit itself (process 0); without root the sandbox's first process is also
        # the program's user's
        (_JUMP_EQUAL, 0, 4, _PRLIMIT[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _ERRNO | EPERM),
        (_RETURN, 0, 0, _ALLOW),
        # refuses a private descriptor table for one thread, which would escape the limit
        (_JUMP_EQUAL, 0, 4, _CLOSE_RANGE[column]),
        (_LOAD, 0, 0, _THIRD_ARGUMENT),
        (_JUMP_SET, 0, 1, _CLOSE_RANGE_UNSHARE),
        (_RETURN, 0, 0, _ERRNO | EPERM),
        (_RETURN, 0, 0, _ALLOW),
        *_private_futexes(_FUTEX[column]),
        (_JUMP_EQUAL, 0, 4, _SOCKETPAIR[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 1, 0, _LOCAL),
        (_RETURN, 0, 0, _ERRNO | EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_JUMP_EQUAL, 1, 0, _CLONE[column]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_SET, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERRNO | EPERM),
    ]
    if processes == 1:
        for flag in (_CLONE_THREAD, _CLONE_FILES):
            code += [(_JUMP_SET, 1, 0, flag), (_RETURN, 0, 0, _ERRNO | EPERM)]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _by_argument(
    number: int, argument: int, refused: tuple[int, ...]
) -> list[tuple[int, int, int, int]]:
    """Refuse a call if the low 32 bits of one argument are in `refused`."""
    tests = [(_JUMP_EQUAL, len(refused) - at, 0, value) for at, value in enumerate(refused)]
    return [
        (_JUMP_EQUAL, 0, len(tests) + 3, number),
        (_LOAD, 0, 0, argument),
        *tests,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | EPERM),
    ]


def _private_futexes(number: int) -> list[tuple[int, int, int, int]]:
    """Disable shared futexes, which may be in a file that other runs map too.

    A wait returns immediately, as if the value had changed; a wake reports no waiter.
    """
    return [
        (_JUMP_EQUAL, 0, 8, number),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        (_JUMP_SET, 0, 1, _FUTEX_PRIVATE),
        (_RETURN, 0, 0, _ALLOW),
        (_AND, 0, 0, _FUTEX_COMMAND),
        (_JUMP_EQUAL, 1, 0, _FUTEX_WAKE),
        (_JUMP_EQUAL, 0, 1, _FUTEX_WAKE_BITSET),
        (_RETURN, 0, 0, _ERRNO),
        (_RETURN, 0, 0, _ERRNO | EAGAIN),
    ]
