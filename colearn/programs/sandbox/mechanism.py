"""Checks that the isolation mechanism works on this machine."""

from __future__ import annotations

import functools
import shutil
import signal
import warnings
from typing import get_args

from colearn.errors import ConfigError, nearest

from .confine import Mechanism
from .limits import Limits
from .script import run_script

REFUSAL = (
    "sandbox: bubblewrap does not work here; install it (apt-get install bubblewrap), allow user "
    "namespaces, or set mechanism='unsafe' to run programs with limits only"
)


def check_mechanism(mechanism: Mechanism) -> None:
    """Errors: ConfigError if the mechanism does not work on this machine.

    Bubblewrap is probed once. `unsafe` always works and warns.
    """
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # for example by what started this one
        raise ConfigError(
            "sandbox: this process ignores SIGCHLD, so that no program has an exit status and each "
            "seems to exceed its time; start it with the default handler"
        )
    if mechanism == "unsafe":
        warnings.warn(
            "sandbox: 'unsafe' limits time and memory only; programs see your files and network",
            stacklevel=2,
        )
        return
    if mechanism != "bwrap":
        raise ConfigError(
            f"mechanism: unknown '{mechanism}'; {nearest(mechanism, get_args(Mechanism))}"
        )
    if not works():
        raise ConfigError(REFUSAL)


@functools.cache
def works() -> bool:
    """Whether a probe runs under bubblewrap, without root privileges, in an empty folder."""
    if shutil.which("bwrap") is None:
        return False
    probe = "import os\nprint(os.getuid() != 0, os.listdir('.'))"
    return run_script(probe, "", Limits(seconds=60), "bwrap").text == "True []\n"
