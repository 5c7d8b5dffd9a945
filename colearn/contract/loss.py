"""The policy loss: a pure function of log-probabilities and advantages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from colearn.bounds import check_bounds

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBatch:
    """Action tokens of one micro-batch, flat: N tokens of S actions, no padding.

    Every action of a minibatch lies in exactly one micro-batch, so sums over micro-batches divided
    by `total_samples` or `total_tokens` do not depend on how the minibatch was cut.
    """

    logprobs: Tensor
    """[N] log pi_theta of each action token; carries the gradient."""
    action_of: Tensor
    """[N] long: which of the S actions a token belongs to."""
    advantages: Tensor
    """[S], or [N] where they are of tokens."""
    old_logprobs: Tensor
    """[N] the policy's before this update, teacher-forced, or the behaviour policy's."""
    behaviour: Tensor
    """[N] as the generator sampled them."""
    ref_logprobs: Tensor | None
    """[N] reference policy's; present when the loss asks for it."""
    entropy: Tensor | None
    """[N] entropy of the next-token distribution; present when the loss asks for it."""
    total_samples: int
    """Actions of this model in the whole minibatch, over all micro-batches and processes."""
    total_tokens: int


class PolicyLoss(ABC):
    """A stateless strategy; the learner adds what it returns over micro-batches and steps once."""

    needs_reference: bool = False
    needs_entropy: bool = False
    old_logprobs: Literal["recompute", "behaviour"] = "recompute"
    """Whether the trainer recomputes the old log-probabilities or uses the behaviour policy's."""
    by_token: bool = False
    """Whether the loss accepts per-token advantages."""
    reference_update_every: int | None = None
    """Iterations between updates of the reference to the current policy; None: it is fixed."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting outside of its bounds."""
        check_bounds(self)

    def at(self, done: float) -> PolicyLoss:
        """The loss when the share `done` of the training budget is used; most stay as they are."""
        return self

    @abstractmethod
    def __call__(self, batch: PolicyBatch) -> tuple[Tensor, dict[str, float]]:
        """This micro-batch's share of the minibatch's loss, and metrics that add up likewise."""
