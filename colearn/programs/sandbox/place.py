"""The file system inside a sandbox: this interpreter, its libraries and an empty folder."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = "/box"
"""The working folder of a program without commands, the only writable one."""
ENVIRONMENT = {
    "HOME": FOLDER,
    "TMPDIR": FOLDER,
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONHASHSEED": "0",  # sets keep their order from run to run
}
_SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc/ld.so.cache")
_COMMANDS = ("/usr/bin", "/usr/sbin", "/etc/alternatives")
_LIBRARIES = ("stdlib", "platstdlib")
_PACKAGES = ("purelib", "platlib")
_BASE = dict.fromkeys(("base", "platbase", "installed_base", "installed_platbase"), sys.base_prefix)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True, kw_only=True)
class VisiblePaths:
    """The paths that are visible inside a sandbox."""

    interpreter: str
    """The file behind sys.executable."""
    read_only: tuple[str, ...]
    """Paths shown read-only under their own names; none is inside another."""
    hidden: tuple[str, ...]
    """Folders of installed packages, which are shown empty."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links among the system's paths, each with its target."""
    devices: tuple[str, ...]
    folder: str = FOLDER
    """The writable folder, in which a run begins; `/`: everything but the paths above."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The parent folders of all paths, outer ones first."""
        visible = (*self.read_only, *self.devices, *(path for path, _ in self.links))
        above = {str(parent) for path in visible for parent in Path(path).parents}
        return tuple(sorted(above - {"/"}))


@functools.cache
def find_place() -> VisiblePaths:
    """The paths of the running interpreter without its site-packages."""
    interpreter = os.path.realpath(sys.executable)
    # paths of the base interpreter: a virtual environment's `platstdlib` contains its packages
    paths = [interpreter, *(sysconfig.get_path(kind, vars=_BASE) for kind in _LIBRARIES)]
    prefix = Path(sys.base_prefix)
    paths += [str(path) for path in (prefix / "lib", prefix / "lib64") if path.is_dir()]
    links = []
    for path in _SYSTEM:
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.exists(path):
            paths.append(path)
    outermost = _outermost(paths)
    return VisiblePaths(
        interpreter=interpreter,
        read_only=outermost,
        hidden=_outermost([path for path in _packages() if _within(path, outermost)]),
        links=tuple(links),
        devices=tuple(path for path in _DEVICES if os.path.exists(path)),
    )


@functools.cache
def find_commands() -> VisiblePaths:
    """The paths of `find_place` with the machine's commands, in a root folder that is writable."""
    place = find_place()
    links = [(path, os.readlink(path)) for path in ("/bin", "/sbin") if os.path.islink(path)]
    paths = [path for path in _COMMANDS if os.path.isdir(path)]
    if ("/bin", "usr/bin") not in links:
        paths += ["/bin", "/sbin"]
    if not os.path.exists("/usr/bin/python3"):
        links.append(("/usr/local/bin/python3", place.interpreter))
    return replace(
        place,
        read_only=_outermost([*place.read_only, *paths]),
        links=(*place.links, *links),
        folder="/",
    )


def _packages() -> tuple[str, ...]:
    """All folders of installed packages, of this and other interpreters, and of colearn itself."""
    folders = {sysconfig.get_path(kind, vars=base) for kind in _PACKAGES for base in (None, _BASE)}
    folders |= {sysconfig.get_path(kind, "posix_prefix", _BASE) for kind in _PACKAGES}
    prefix = Path(sys.base_prefix)
    for library in {prefix / "lib", prefix / "lib64", Path("/usr/lib"), Path("/usr/lib64")}:
        for kind in ("site-packages", "dist-packages"):
            folders |= {str(path) for path in library.glob(f"python*/{kind}")}
    folders.add(str(Path(__file__).parents[2]))
    if sys.prefix != sys.base_prefix:
        folders.add(sys.prefix)
    return tuple(sorted(path for path in folders if os.path.isdir(path)))


def _outermost(paths: list[str]) -> tuple[str, ...]:
    outermost: list[str] = []
    for path in sorted(set(paths)):
        if not _within(path, outermost):
            outermost.append(path)
    return tuple(outermost)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(folder + "/") for folder in folders)
