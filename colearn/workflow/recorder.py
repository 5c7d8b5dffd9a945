"""Protocol through which a workflow's run makes calls and records rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from colearn.types import Sources

from .record import CallResult, Payment
from .tool import ToolError


class Recorder(Protocol):
    """Receives a team's calls; returns each call's result from the record, or waits for the
    result."""

    measured: dict[str, float]

    async def call(
        self,
        name: str,
        text: str,
        after: Sequence[int] | None,
        *,
        tool: bool = False,
        fresh: bool = True,
        system: str | None = None,
    ) -> CallResult:
        """Returns the result of a call of a role or a tool."""

    async def use(self, tool: str, arguments: Mapping[str, Any] | ToolError) -> Any:
        """Returns a copy of a tool's result."""

    def actions_of(self, role: str) -> Sources:
        """Returns the actions of a role so far."""

    def pay(self, payment: Payment) -> None:
        """Records a reward."""
