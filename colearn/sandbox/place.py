"""What there is to see inside a sandbox: this interpreter, its libraries, an empty folder."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "/box"
"""Where the program is, the only place where it can write."""
ENVIRONMENT = {
    "HOME": FOLDER,
    "TMPDIR": FOLDER,
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "PYTHONHASHSEED": "0",  # sets keep their order from run to run
}
_SYSTEM = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/etc/ld.so.cache")
_LIBRARIES = ("stdlib", "platstdlib")
_PACKAGES = ("purelib", "platlib")
_BASE = dict.fromkeys(("base", "platbase", "installed_base", "installed_platbase"), sys.base_prefix)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    interpreter: str
    """The file behind sys.executable."""
    read_only: tuple[str, ...]
    """Paths seen under their own names; none lies in another."""
    hidden: tuple[str, ...]
    """Folders in them that are seen empty: installed packages."""
    links: tuple[tuple[str, str], ...]
    """Symbolic links among the system's paths, each with its target."""
    devices: tuple[str, ...]

    @property
    def parents(self) -> tuple[str, ...]:
        """The folders above all these, outer ones first."""
        shown = (*self.read_only, *self.devices, *(path for path, _ in self.links))
        above = {str(parent) for path in shown for parent in Path(path).parents}
        return tuple(sorted(above - {"/"}))


@functools.cache
def find_place() -> Place:
    """The interpreter that runs now, without its site-packages."""
    interpreter = os.path.realpath(sys.executable)
    # the base's: a virtual environment's `platstdlib` is where its packages are installed
    wanted = [interpreter, *(sysconfig.get_path(kind, vars=_BASE) for kind in _LIBRARIES)]
    prefix = Path(sys.base_prefix)
    wanted += [str(path) for path in (prefix / "lib", prefix / "lib64") if path.is_dir()]
    links = []
    for path in _SYSTEM:
        if os.path.islink(path):
            links.append((path, os.readlink(path)))
        elif os.path.exists(path):
            wanted.append(path)
    shown = _outermost(wanted)
    return Place(
        interpreter=interpreter,
        read_only=shown,
        hidden=_outermost([path for path in _packages() if _within(path, shown)]),
        links=tuple(links),
        devices=tuple(path for path in _DEVICES if os.path.exists(path)),
    )


def _packages() -> tuple[str, ...]:
    """Whatever could hold an installed package, of this interpreter or of another one, and us."""
    found = {sysconfig.get_path(kind, vars=base) for kind in _PACKAGES for base in (None, _BASE)}
    found |= {sysconfig.get_path(kind, "posix_prefix", _BASE) for kind in _PACKAGES}
    prefix = Path(sys.base_prefix)
    for library in {prefix / "lib", prefix / "lib64", Path("/usr/lib"), Path("/usr/lib64")}:
        for kind in ("site-packages", "dist-packages"):
            found |= {str(path) for path in library.glob(f"python*/{kind}")}
    found.add(str(Path(__file__).parents[2]))
    if sys.prefix != sys.base_prefix:
        found.add(sys.prefix)
    return tuple(sorted(path for path in found if os.path.isdir(path)))


def _outermost(paths: list[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not _within(path, kept):
            kept.append(path)
    return tuple(kept)


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(folder + "/") for folder in folders)
