"""The objectives of learners, as picklable objects. That of an actor is the policy loss, plus the
value loss if the actor has a value head; that of a value model is the value loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from torch import Tensor

from colearn.contract import Advantage, Critic, PolicyBatch, PolicyLoss, ValueLoss
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.loss.value import value_loss
from colearn.types import Tree


def without_states(episode: Tree[Any]) -> Tree[None]:
    """Returns an episode without the task's objects. An update does not read these objects, which
    may not be picklable, so a learner in another process might be unable to receive them."""
    nodes = tuple(replace(node, state=None) for node in episode.nodes)
    return replace(episode, item=None, nodes=nodes)


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
        loss, metrics = self.loss(
            PolicyBatch(
                logprobs=outputs.logprobs,
                action_of=batch.action_of,
                advantages=batch.per_action("advantages"),
                old_logprobs=old if len(old) else detached,
                behaviour=behaviour,
                ref_logprobs=batch.per_action("ref_logprobs")
                if self.loss.needs_reference
                else None,
                entropy=outputs.entropy,
                total_samples=self.samples,
                total_tokens=self.tokens,
            )
        )
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


@dataclass(frozen=True, slots=True)
class CriticObjective:
    """The value loss of a single value model on a single minibatch.

    Rows have targets if the critic was read before the update. Otherwise the targets are computed
    from the detached values of this forward pass (Eq. 3, 5), so that one pass both reads and trains
    the model.
    """

    settings: ValueLoss
    total: int
    """Number of scored values in the minibatch."""
    critic: Critic
    advantage: Advantage
    episodes: Mapping[int, Tree[None]] | None = None
    """The minibatch's episodes by tree number; None if the rows already contain targets."""

    def __call__(self, outputs: Outputs, batch: RowBatch) -> tuple[Tensor, dict[str, float]]:
        old_values = batch.per_action("old_values")
        return value_loss(
            outputs.values,
            self._targets(outputs, batch),
            old_values if len(old_values) else None,
            self.settings,
            self.total,
        )

    def _targets(self, outputs: Outputs, batch: RowBatch) -> Tensor:
        if self.episodes is None:
            return batch.per_action("targets")
        by_row = outputs.values.detach().cpu().split([len(row.marks) for row in batch.rows])
        targets: list[float] = []
        for row, numbers in zip(batch.rows, by_row, strict=True):
            episode = self.episodes[row.tree]
            values = self.critic.values(episode, row.reader, row, numbers.tolist())
            (by_agent,) = self.advantage.targets([episode], [values])
            targets += self.critic.numbers(episode, row.reader, row, by_agent)
        return outputs.values.new_tensor(targets)
