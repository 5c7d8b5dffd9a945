"""Namespace server: starts one sandbox per request, without bubblewrap.

    python _namespaces.py DESCRIPTOR

The server runs trusted code up to `execve`. It forks for every sandbox, which is faster than
starting a new interpreter. A request is a message on the socket DESCRIPTOR: settings, a command and
inherited descriptors. An unprivileged user gets a user namespace; root needs none and drops its
privileges instead. The mounts are the same as with bubblewrap.
"""

from __future__ import annotations

import array
import ctypes
import marshal
import os
import platform
import select
import signal
import socket
import sys

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_RDONLY, _NOSUID, _NODEV, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_OLD = "/.old"
_LONGEST = 1 << 17

_libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def main() -> None:
    """Serve until the other end of the socket is closed."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the server does not wait for its sandboxes
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # sandboxes end with the run that started them
    size = array.array("i").itemsize
    while True:
        data, ancillary, _, _ = requests.recvmsg(_LONGEST, socket.CMSG_SPACE(8 * size))
        if not data:
            os._exit(0)
        descriptors = array.array("i", b"".join(payload for _, _, payload in ancillary))
        if os.fork() == 0:
            requests.close()
            line = socket.socket(fileno=descriptors[0])
            try:
                _sandbox(marshal.loads(data), line, list(descriptors[1:]))
            except BaseException:  # noqa: BLE001 - a fork must never go on in its parent's loop
                sys.excepthook(*sys.exc_info())
            os._exit(1)
        for descriptor in descriptors:
            os.close(descriptor)


def _sandbox(settings: dict[str, Any], line: socket.socket, descriptors: list[int]) -> None:
    """Run the command and report its exit status on `line`; kill the command if `line` is closed.

    descriptors: standard input, output and error, then the descriptors of the channel, whose
    numbers are passed to the command.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for standard in range(3):
        os.dup2(descriptors[standard], standard)
        os.close(descriptors[standard])
    channel = descriptors[3:]
    root = os.geteuid() == 0
    uid, gid = os.geteuid(), os.getegid()
    kinds = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET | (0 if root else _NEWUSER)
    _check(_libc.unshare(kinds), "unshare")
    if not root:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    alive, alive_writer = os.pipe()
    parent_lives, parent_holds = os.pipe()
    first = os.fork()
    if first == 0:
        # process 1 of the namespace: the kernel ends all others with it
        line.close()
        os.close(alive)
        os.close(parent_holds)
        _die_with_parent(parent_lives)
        _first(settings, channel)
    for descriptor in (0, 1, 2, alive_writer, *channel):
        os.close(descriptor)
    ready, _, _ = select.select([line.fileno(), alive], [], [])
    if alive not in ready:
        os.kill(first, signal.SIGKILL)
    _, status = os.waitpid(first, 0)
    line.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _first(settings: dict[str, Any], channel: list[int]) -> None:
    _mount(settings)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = os.fork()
    if program:
        for descriptor in (0, 1, 2, *channel):
            os.close(descriptor)
        _exit_like(program)
    os.setsid()
    for descriptor in channel:
        os.set_inheritable(descriptor, True)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    if settings["filter"] is not None:
        _install_filter(settings["filter"])
    numbers = ",".join(map(str, channel)) or "-"
    command = [numbers if word is None else word for word in settings["command"]]
    # execve drops a user's rights in the namespace; _apply_limits.py drops root's
    os.execve(command[0], command, settings["environment"])


def _die_with_parent(alive: int) -> None:
    """End this process when its parent ends.

    alive: a pipe that the parent keeps open; the pipe is closed if the parent ended before this
    call.
    """
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    os.set_blocking(alive, False)
    try:
        os.read(alive, 1)
    except BlockingIOError:
        os.close(alive)
    else:
        os._exit(1)


def _exit_like(child: int) -> None:
    """Reap orphans of the namespace until the child ends, then exit with the child's status."""
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _mount(settings: dict[str, Any]) -> None:
    _call_mount("none", "/", None, _REC | _PRIVATE, None)
    # over /tmp only until the roots change places
    _call_mount("root", "/tmp", "tmpfs", _NOSUID | _NODEV, "size=1m,mode=0755")
    os.mkdir("/tmp" + _OLD)
    pivot = _PIVOT_ROOT[platform.machine()]
    _check(_libc.syscall(pivot, b"/tmp", ("/tmp" + _OLD).encode()), "pivot_root")
    os.chdir("/")
    for path in settings["read_only"]:
        _bind(path)
    _make_read_only(settings["read_only"])
    for path in settings["hidden"]:
        _call_mount("none", path, "tmpfs", _RDONLY | _NOSUID | _NODEV, "size=4k,mode=0555")
    for path in settings["devices"]:
        _bind(path)
    for path, target in settings["links"]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    folder = settings["folder"]
    os.makedirs(folder)
    options = f"size={settings['file_bytes']},nr_inodes={settings['files']},mode=1777"
    _call_mount("box", folder, "tmpfs", _NOSUID | _NODEV, options)
    _check(_libc.umount2(_OLD.encode(), _DETACH), "umount")
    os.rmdir(_OLD)
    _call_mount("none", "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV, None)
    os.chdir(folder)


def _bind(path: str) -> None:
    """Bind a path of the old root, with its mounts, under the same name."""
    source = _OLD + path
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    _call_mount(source, path, None, _BIND | _REC, None)


def _make_read_only(paths: tuple[str, ...]) -> None:
    """Make paths and every mount below them read-only; one remount changes only the top mount."""
    with open(_OLD + "/proc/self/mountinfo", "rb") as file:
        fields = [line.split()[4] for line in file]
    for field in fields:
        # spaces and the like are written as `\040`
        point = os.fsdecode(field.decode("unicode_escape").encode("latin-1"))
        if any(point == path or point.startswith(path + "/") for path in paths):
            mount_flags = os.statvfs(point).f_flag & 0xF  # keeps the outer mount's restrictions
            flags = _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | mount_flags
            _call_mount("none", point, None, flags, None)


def _call_mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    code = _libc.mount(
        source.encode(),
        target.encode(),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        None if data is None else data.encode(),
    )
    _check(code, f"mount {target}")


def _install_filter(code: bytes) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    address = ctypes.cast(buffer, ctypes.c_void_p)
    program = _FilterProgram(len(code) // 8, address)
    _check(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0), "seccomp")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _check(code: int, operation: str) -> None:
    if code < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
