"""The record of a program's requests, as a task's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from colearn.types import Prompt
from colearn.workflow.record import Call, WorkflowState

from .contexts import Context, Reason

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCall(Call):
    """A request of the program to an agent."""

    prompt: Prompt
    """What the agent is newly shown."""
    request: str
    """Its id, as the program is told it."""
    offered: tuple[str, ...] = ()
    """Functions that the answer may call."""
    several: bool = True
    """The answer may hold more than one call."""
    context: Context
    """What the agent has seen with this request."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState(WorkflowState[Item], Generic[Item]):
    """Item, record, and the name of the episode whose program goes on from here."""

    episode: str = ""
    contexts: Mapping[str, Context] = field(default_factory=dict)
    """By agent, what it has seen and said in its last context."""
    failure: str | None = None
    """Why the program did not come to its end."""
