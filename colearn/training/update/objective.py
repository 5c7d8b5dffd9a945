"""The objective of an actor, as a picklable object: the policy loss, plus the value loss of a value
head on the actor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from torch import Tensor

from colearn.contract import PolicyBatch, PolicyLoss, ValueLoss
from colearn.contract.part_errors import calling_part
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.methods.loss.value import value_loss


@dataclass(frozen=True, slots=True)
class ActorObjective:
    """The objective of a single actor on a single minibatch.

    Adds three metrics to the metrics of the loss: `approx_kl`, which is KL(policy at rollout ||
    current policy) per token (k3 estimator); `logprob_mismatch`, which is the mean per token of
    |old log-probability - behaviour log-probability|; and `nll`, which is the mean of -log pi per
    sampled token.
    """

    loss: PolicyLoss
    value: ValueLoss
    samples: int
    """Number of actions in the minibatch."""
    tokens: int
    """Number of action tokens in the minibatch."""
    marks: int
    """Number of scored values in the minibatch, for a value head on the actor."""

    @classmethod
    def of(cls, loss: PolicyLoss, value: ValueLoss, rows: Sequence[Row]) -> ActorObjective:
        """The objective of a minibatch; `rows` are all rows of the minibatch for this actor."""
        return cls(
            loss,
            value,
            # 1 if no action of the minibatch has an advantage: its values are still trained
            samples=max(sum(len(row.spans) for row in rows), 1),
            tokens=max(sum(row.action_tokens for row in rows), 1),
            marks=sum(not isnan(target) for row in rows for target in row.targets),
        )

    def __call__(self, outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
        behaviour = batch.per_action("behaviour")
        old = (
            behaviour if self.loss.old_logprobs == "behaviour" else batch.per_action("old_logprobs")
        )
        detached = outputs.logprobs.detach()
        inputs = PolicyBatch(
            logprobs=outputs.logprobs,
            action_of=batch.action_of,
            advantages=batch.per_action("advantages"),
            old_logprobs=old if len(old) else detached,
            behaviour=behaviour,
            ref_logprobs=batch.per_action("ref_logprobs") if self.loss.needs_reference else None,
            teacher_logprobs=(
                batch.per_action("teacher_logprobs") if self.loss.needs_teacher else None
            ),
            entropy=outputs.entropy,
            total_samples=self.samples,
            total_tokens=self.tokens,
        )
        with calling_part("algorithm.loss", self.loss):
            loss, metrics = self.loss(inputs)
        gap = ((old if len(old) else detached) - behaviour).abs().sum()
        metrics["logprob_mismatch"] = gap.item() / self.tokens
        if len(old):
            step = detached - old
            metrics["approx_kl"] = (step.exp() - step - 1.0).sum().item() / self.tokens
        metrics["nll"] = -detached.sum().item() / self.tokens
        if self.marks:
            olds = batch.per_action("old_values")
            extra, value_metrics = value_loss(
                outputs.values,
                batch.per_action("targets"),
                olds if len(olds) else None,
                self.value,
                self.marks,
            )
            loss = loss + extra
            metrics |= value_metrics
        return loss, metrics
