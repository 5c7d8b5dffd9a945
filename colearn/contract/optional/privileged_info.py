"""Optional interface: information for centralised critics only."""

from __future__ import annotations

from typing import Any

from .option import TaskOption


class PrivilegedInfo(TaskOption):
    """A task that gives centralised critics information that no agent has."""

    def privileged_info(self, state: Any) -> str:
        """Text that no agent sees, for centralised critics in training, such as the hidden state or
        the right answer. A decentralised critic reads this text only if the config enables it."""
        return ""
