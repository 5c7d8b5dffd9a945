"""What the passes over a minibatch sum, and the errors of a micro-batch's loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from colearn.contract import Objective
from colearn.contract.rows import Outputs, Row
from colearn.errors import ConfigError

from .batch import Micro, contents


@dataclass(slots=True)
class MinibatchSums:
    """The minibatch of one learner, and the sums over its micro-batches so far."""

    rows: Sequence[Row]
    objective: Objective
    totals: dict[str, float] = field(default_factory=dict)
    values: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """Values of each row that has marks, by the row's index."""
    failure: tuple[int, str] | None = None
    """The micro-batch whose loss is not finite, and the error's text."""

    def add(self, micro: Micro, outputs: Outputs, metrics: Mapping[str, float]) -> None:
        """Add the metrics and the values of a micro-batch."""
        for key, value in metrics.items():
            self.totals[key] = self.totals.get(key, 0.0) + value
        if contents(micro)[1]:
            by_row = outputs.values.detach().cpu().split([len(row.marks) for _, row in micro])
            for (number, row), part in zip(micro, by_row, strict=True):
                if row.marks:
                    self.values[number] = tuple(part.tolist())


def check_gradient(where: str, micro: Micro, outputs: Outputs, loss: Tensor) -> None:
    """Errors: ConfigError if the loss of a trained network has no gradient, but its rows have
    actions, or marks whose values have none either."""
    actions, marks = contents(micro)
    reached = outputs.logprobs.requires_grad or outputs.values.requires_grad
    if loss.requires_grad or not (actions or (marks and not reached)):
        return
    reason = "the loss is computed from other tensors than the model's; detach none of these"
    if not torch.is_grad_enabled():
        reason = "code of this run called torch.set_grad_enabled(False); use torch.no_grad()"
    elif not reached:
        reason = "the model computes without gradient; let its code detach nothing"
    raise ConfigError(f"{where} has no gradient: {reason}")


def loss_error(where: str, micro: Micro, value: float) -> str:
    """The text of the error of a loss that is not finite."""
    return (
        f"{where} ({len(micro)} rows) is {value}; lower the learning rate or look at the rewards "
        "of this batch"
    )
