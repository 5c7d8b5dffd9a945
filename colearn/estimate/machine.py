"""Descriptions of machines that are not here, such as `2xH100-80GB`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from colearn.errors import ConfigError

_DEVICES = re.compile(r"(?:([1-9]\d{0,3})x)?(?:([A-Za-z][\w.-]*)-)?(\d{1,5}(?:\.\d+)?)GB", re.I)


@dataclass(frozen=True, slots=True)
class Machine:
    """CUDA devices of one kind, and a CPU whose memory is not stated."""

    count: int
    memory: int
    """Bytes of each device."""
    name: str = ""

    def device(self, name: str, field: str) -> str:
        """The device that a setting means on this machine; `auto` is the first one.

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
    """Parse `2xH100-80GB`, `H100-80GB` or `4x24GB`: CUDA devices and their memory in 10^9 bytes.

    Errors: ConfigError for another form.
    """
    match = _DEVICES.fullmatch(text.strip())
    memory = 0 if match is None else int(float(match[3]) * 1e9)
    if match is None or not memory:
        raise ConfigError(
            f"--devices {text[:60]}: write COUNTxNAME-MEMORY, such as 2xH100-80GB or 4x24GB"
        )
    return Machine(count=int(match[1] or 1), memory=memory, name=match[2] or "")
