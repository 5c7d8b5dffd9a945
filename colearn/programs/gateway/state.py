"""State of a gateway episode: the record of the program's requests in the episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from colearn.contract.types import Observation
from colearn.programs.workflow.record import Call, WorkflowState

from .contexts import Context, Reason

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayCall(Call):
    """A program's request to an agent."""

    prompt: Observation
    """The observation that the request adds to the agent's context."""
    request: str
    """Id of the completion that answers the request."""
    offered: tuple[str, ...] = ()
    """Names of the functions that the answer may call."""
    several: bool = True
    """True if the answer may contain more than one function call."""
    logprobs: bool = False
    """True if the answer includes its tokens' log-probabilities."""
    token_ids: bool = False
    """True if the answer includes the token ids of the prompt and of the answer."""
    reasoning: bool = False
    """True if the answer includes its reasoning."""
    temperature: float | None = None
    """Temperature in the request; None if the request has none."""
    context: Context
    """The agent's context, including this request."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState(WorkflowState[Item], Generic[Item]):
    """State of an episode: the item, the record of calls, and the name of the live episode that
    continues from this state."""

    episode: str = ""
    contexts: Mapping[str, Context] = field(default_factory=dict)
    """The last context of each agent."""
    sent: Mapping[str, str] | None = None
    """The answers, in the form of the agents' contexts, that the program already has at this state;
    None if it waits for them."""
    failure: str | None = None
    """The reason why the program failed; None if it did not fail."""
    truncated: bool = False
    """True if the episode stopped before the program had ended and no reward was set for this."""
