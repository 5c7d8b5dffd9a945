"""Isolation mechanisms: selects one that works on this machine."""

from __future__ import annotations

import functools
import shutil
import warnings
from typing import Literal, get_args

from colearn.errors import ConfigError, nearest

from .confine import Mechanism
from .limits import Limits
from .script import run_script

_SAFE: tuple[Mechanism, ...] = ("bwrap", "namespaces")

REFUSAL = (
    "sandbox: neither bubblewrap nor the kernel's namespaces work here; install bubblewrap "
    "(apt-get install bubblewrap), allow user namespaces, or set mechanism='unsafe' to run "
    "programs with limits only"
)


def choose_mechanism(choice: Mechanism | Literal["auto"] = "auto") -> Mechanism:
    """Select a mechanism. `auto`: bubblewrap if it works, else namespaces; each is probed once.

    `unsafe` always works, warns, and is never selected by `auto`.

    Errors: ConfigError if the requested mechanism does not work on this machine.
    """
    if choice == "unsafe":
        warnings.warn(
            "sandbox: 'unsafe' limits time and memory only; programs see your files and network",
            stacklevel=2,
        )
        return choice
    if choice not in ("auto", *_SAFE):
        known = ("auto", *get_args(Mechanism))
        raise ConfigError(f"mechanism: unknown '{choice}'; {nearest(choice, known)}")
    for mechanism in _SAFE if choice == "auto" else (choice,):
        if works(mechanism):
            return mechanism
    raise ConfigError(REFUSAL)


@functools.cache
def works(mechanism: Mechanism) -> bool:
    """Whether a probe runs under `mechanism`, without root privileges, in an empty folder."""
    if mechanism == "bwrap" and shutil.which("bwrap") is None:
        return False
    probe = "import os\nprint(os.getuid() != 0, os.listdir('.'))"
    return run_script(probe, "", Limits(seconds=60), mechanism).text == "True []\n"
