"""Policy loss interface: the loss is a pure function of log-probabilities and advantages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from colearn.contract.bounds import check_bounds

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBatch:
    """The action tokens of one micro-batch, as flat tensors without padding; N is the number of
    tokens and S the number of actions.

    Every action of a minibatch is in exactly one micro-batch. A sum over micro-batches, divided by
    `total_samples` or `total_tokens`, is therefore independent of the division into micro-batches.
    """

    logprobs: Tensor
    """[N] log pi_theta of each action token; carries the gradient."""
    action_of: Tensor
    """[N] long: index (0 to S - 1) of the action to which each token belongs."""
    advantages: Tensor
    """Advantages, with shape [S] (one per action) or [N] (one per token)."""
    old_logprobs: Tensor
    """[N] log-probabilities under the policy before this update (teacher-forced), or under the
    behaviour policy."""
    behaviour: Tensor
    """[N] log-probabilities that the generator recorded."""
    ref_logprobs: Tensor | None
    """[N] log-probabilities under the reference policy; present if the loss needs them."""
    teacher_logprobs: Tensor | None = None
    """[N] log-probabilities under the model's teacher; present if the loss needs them."""
    entropy: Tensor | None
    """[N] entropy of the next-token distribution; present if the loss needs it."""
    total_samples: int
    """Number of actions of this model in the whole minibatch, over all micro-batches and
    processes."""
    total_tokens: int


class PolicyLoss(ABC):
    """A stateless policy loss. The learner sums the results over micro-batches and takes one
    optimiser step."""

    needs_reference: bool = False
    needs_teacher: bool = False
    needs_entropy: bool = False
    old_logprobs: Literal["recompute", "behaviour"] = "recompute"
    """Source of the old log-probabilities: `recompute` uses a forward pass of the trainer;
    `behaviour` uses the log-probabilities that the generator recorded."""
    by_token: bool = False
    """Whether the loss accepts per-token advantages."""
    reference_update_every: int | None = None
    """Number of iterations between updates of the reference to the current policy; None: the
    reference is fixed."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting out of bounds."""
        check_bounds(self)

    @property
    def corrects_staleness(self) -> bool:
        """Whether the loss corrects for the difference between the current weights and the older
        weights that sampled the actions."""
        return self.old_logprobs == "behaviour"

    def at(self, done: float) -> PolicyLoss:
        """Returns the loss that applies when the fraction `done` of the training budget has been
        used; by default, `self`."""
        return self

    @abstractmethod
    def __call__(self, batch: PolicyBatch) -> tuple[Tensor, dict[str, float]]:
        """This micro-batch's share of the minibatch's loss, and metrics to sum in the same way."""
