"""Optional interface: information for central critics alone."""

from __future__ import annotations

from typing import Any

from .option import TaskOption


class PrivilegedInfo(TaskOption):
    """A task that tells a central critic what no agent knows."""

    def privileged_info(self, state: Any) -> str:
        """Text that no agent sees, for centralised critics in training, such as the hidden state or
        the right answer. A decentralised critic reads it only if the config says so."""
        return ""
