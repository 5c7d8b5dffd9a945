"""Descriptions of other machines, such as `2xH100-80GB`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from colearn.errors import ConfigError

CONTEXT = 1_000_000_000
"""Number of bytes on each device that are not available to tensors, because the CUDA context,
libraries and collectives use them."""
_DEVICES = re.compile(r"(?:([1-9]\d{0,3})x)?(?:[A-Za-z][\w.-]*-)?(\d{1,5}(?:\.\d+)?)GB", re.I)


@dataclass(frozen=True, slots=True)
class Machine:
    """Description of a machine: CUDA devices of one kind, and a CPU whose memory is not stated."""

    count: int
    memory: int
    """Number of bytes that tensors can use on each device: the device's memory minus `CONTEXT`."""

    def device(self, name: str, field: str) -> str:
        """Return the device that a setting names on the described machine; `auto` selects the first
        device.

        Errors: ConfigError naming `field` for a device that the machine does not have.
        """
        if name == "cpu":
            return name
        kind, _, index = name.partition(":")
        number = int(index or 0)
        if kind not in ("auto", "cuda") or number >= self.count:
            raise ConfigError(
                f"{field}: no device {name} among --devices, which are cuda:0 to "
                f"cuda:{self.count - 1}; use auto or one of these"
            )
        return f"cuda:{number}"


def read_machine(text: str) -> Machine:
    """Parse `2xH100-80GB`, `H100-80GB` or `4x24GB`: CUDA devices and their memory.

    1 GB counts as 10^9 bytes, which is less than most cards report. The name is not used.
    Errors: ConfigError for another form, or a device that is too small for the CUDA context.
    """
    match = _DEVICES.fullmatch(text.strip())
    size = 0.0 if match is None else float(match[2])
    if match is None or not size:
        raise ConfigError(
            f"--devices {text[:60]}: write COUNTxNAME-MEMORY, such as 2xH100-80GB or 4x24GB"
        )
    memory = int(size * 1e9) - CONTEXT
    if memory <= 0:
        raise ConfigError(
            f"--devices {text[:60]}: the CUDA context takes {CONTEXT / 1e9:g} GB of each device; "
            "describe a larger one"
        )
    return Machine(count=int(match[1] or 1), memory=memory)
