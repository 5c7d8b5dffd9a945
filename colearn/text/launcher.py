"""Reads the environment variables in which launchers such as torchrun store the rank and number of
a run's processes."""

from __future__ import annotations

import os
import re

from colearn.errors import ConfigError

_NUMBERS = {
    "RANK": 0,
    "LOCAL_RANK": 0,
    "WORLD_SIZE": 1,
    "LOCAL_WORLD_SIZE": 1,
    "MASTER_PORT": 1,
    "TORCHELASTIC_RESTART_COUNT": 0,
}
"""Variables that torch or accelerate read as integers, with the minimum of each."""
_REMEDY = "start with torchrun or accelerate launch, which set it, or unset it"
_LARGEST_PORT = 65535


def world_size() -> int:
    """Number of processes of the run; 1 without a launcher.

    Errors: ConfigError if the variable is not a number.
    """
    return _read("WORLD_SIZE", 1)


def on_one_machine() -> bool:
    """Whether all processes of the run are on this machine.

    Errors: as `world_size`.
    """
    return _read("LOCAL_WORLD_SIZE", world_size()) == world_size()


def relaunches() -> int:
    """Number of times that torchrun has restarted the processes.

    Errors: ConfigError if the variable is not a number.
    """
    return _read("TORCHELASTIC_RESTART_COUNT", 0)


def check_launcher() -> None:
    """Errors: ConfigError naming the variable if a variable is not a number, contradicts another
    variable, or is missing although the processes need it to find each other."""
    values = {name: _read(name, least) for name, least in _NUMBERS.items()}
    if values["RANK"] >= values["WORLD_SIZE"]:
        raise ConfigError(
            f"RANK: is {values['RANK']} among WORLD_SIZE={values['WORLD_SIZE']} processes, which "
            f"count from 0; {_REMEDY}"
        )
    if values["MASTER_PORT"] > _LARGEST_PORT:
        raise ConfigError(f"MASTER_PORT: {values['MASTER_PORT']} is no port; {_REMEDY}")
    if values["WORLD_SIZE"] > 1 and not os.environ.get("MASTER_ADDR"):
        raise ConfigError(
            f"MASTER_ADDR: missing, although WORLD_SIZE is {values['WORLD_SIZE']}: processes find "
            "each other there; start with torchrun, or unset WORLD_SIZE and RANK"
        )


def _read(name: str, unset: int) -> int:
    """Return the number in a variable; `unset` if the variable is missing or -1. Some launchers use
    -1 for an unset number."""
    text = os.environ.get(name, "-1")
    if text == "-1":
        return unset
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < _NUMBERS[name]:
        raise ConfigError(
            f"{name}: must be a whole number from {_NUMBERS[name]}, got {text[:40]!r}; {_REMEDY}"
        )
    return int(text)
