"""State of a gateway episode: the record of its program's requests."""

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
    """A program's request to an agent."""

    prompt: Prompt
    """The observation that the request adds to the agent's context."""
    request: str
    """Id of the completion that answers it."""
    offered: tuple[str, ...] = ()
    """Names of the functions that the answer may call."""
    several: bool = True
    """True if the answer may hold more than one call."""
    logprobs: bool = False
    """True if the answer tells its tokens' log-probabilities."""
    temperature: float | None = None
    """Temperature that the request names, if it names one."""
    context: Context
    """The agent's context, this request included."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState(WorkflowState[Item], Generic[Item]):
    """Item, record, and the name of the live episode that continues from this state."""

    episode: str = ""
    contexts: Mapping[str, Context] = field(default_factory=dict)
    """The last context of each agent."""
    failure: str | None = None
    """Why the program failed, if it did."""
