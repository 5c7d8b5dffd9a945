"""The objective of a value model's learner, as a picklable object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from colearn.contract import Advantage, Critic, ValueLoss
from colearn.contract.rows import Outputs, RowBatch
from colearn.loss.value import value_loss
from colearn.types import Credited


@dataclass(frozen=True, slots=True)
class CriticObjective:
    """The value loss of a single value model on a single minibatch.

    Rows have targets if the critic was read before the update. Otherwise the targets are computed
    from the detached values of this forward pass (Eq. 3, 5), so that one pass both reads and trains
    the model.
    """

    settings: ValueLoss
    total: int
    """Number of scored values in the minibatch; at least 1."""
    critic: Critic
    advantage: Advantage
    episodes: Mapping[int, Credited[None]] | None = None
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
            values = self.critic.values(episode.tree, row.reader, row, numbers.tolist())
            (by_agent,) = self.advantage.targets([episode], [values])
            targets += self.critic.numbers(episode.tree, row.reader, row, by_agent)
        return outputs.values.new_tensor(targets)
