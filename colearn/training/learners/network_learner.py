"""Base of single-network learners: micro-batches, and rounds over several processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from colearn.contract import Accumulated, Learner, Objective, WeightUpdate
from colearn.contract.rows import Outputs, Row, RowBatch
from colearn.contract.timeline import updates
from colearn.errors import ConfigError
from colearn.models.network import Network
from colearn.models.weight_update import weight_update

from . import checkpoint_files
from .batch import Micro, Round, contents, make_batch, micro_batches, rounds
from .score import evaluate
from .weight_copy import HeldWeights


class NetworkLearner(Learner):
    """A network, its forward passes and its checkpoints. The subclass owns the optimiser and the
    optimiser's settings.

    Every process receives the same rows. A round assigns one micro-batch to each process; the
    losses of all processes are parts of one sum.
    """

    lockstep: ClassVar[bool] = False
    """Whether processes communicate in every forward or backward pass. A process without a
    micro-batch in a round then runs another process's micro-batch with weight 0, and all
    micro-batches of a round are of the same kind."""
    processes: int = 1
    rank: int = 0

    def __init__(
        self,
        name: str,
        network: Network,
        *,
        token_budget: int,
        entropy: bool = False,
    ) -> None:
        self.name = name
        self.network = network
        self.token_budget = token_budget
        self.entropy = entropy
        self.parameters = network.trained()
        self.size = sum(parameter.numel() for parameter in self.parameters.values())
        self.steps = 0

    @property
    def device(self) -> torch.device:
        return self.network.base.device

    @updates
    def evaluate(self, rows: Sequence[Row], *, reference: bool = False) -> list[Outputs]:
        return evaluate(self.network, rows, token_budget=self.token_budget, reference=reference)

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Update the value head's scale. Errors: ValueError if the network has no value head."""
        if self.network.head is None:
            raise ValueError(f"{self.name} has no value head to scale")
        self.network.head.observe(returns, centre)

    def shift(self, by: float) -> None:
        """Add a constant to all values. Errors: ValueError if the network has no value head."""
        if self.network.head is None:
            raise ValueError(f"{self.name} has no value head to shift")
        self.network.head.shift(by)

    def copy(self) -> HeldWeights:
        return HeldWeights(self)

    def publish(self) -> WeightUpdate:
        return weight_update(self.network, self.steps)

    def weights(self) -> dict[str, Any]:
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    @updates
    def accumulate(self, rows: Sequence[Row], objective: Objective) -> Accumulated:
        totals: dict[str, float] = {}
        values: dict[int, tuple[float, ...]] = {}
        failure: tuple[int, str] | None = None
        numbered = enumerate(micro_batches(rows, self.token_budget))
        for turn in rounds(numbered, self.processes, alike=self.lockstep):
            spare = self.rank >= len(turn)
            if spare and not self.lockstep:
                continue
            number, micro = turn[0 if spare else self.rank]
            batch = make_batch([row for _, row in micro], self.device)
            outputs = self._forward(batch)
            loss = _nothing(outputs) if self.lockstep else None
            if not spare:
                part, metrics = objective(outputs, batch)
                self._check_gradient(number, micro, outputs, part)
                loss = part if loss is None else loss + part
                for key, value in metrics.items():
                    totals[key] = totals.get(key, 0.0) + value
                values |= _values(micro, outputs)
            assert loss is not None
            if self.lockstep:
                self._stop_together(turn, loss)
            elif not bool(torch.isfinite(loss)):
                failure = number, self._loss_error(number, micro, loss.item())
                break
            # rows without actions have no gradient if the objective reads no values
            if any(contents(micro)) if self.lockstep else loss.requires_grad:
                self._backward(loss)
        return self._merged(totals, values, failure)

    def _forward(self, batch: RowBatch) -> Outputs:
        outputs: Outputs = self.network(batch, entropy=self.entropy)
        return outputs

    def _backward(self, loss: Tensor) -> None:
        loss.backward()

    def save(self, folder: Path) -> None:
        """Save a checkpoint. All processes must call this method, but only the first process writes
        the checkpoint."""
        state = self.optimizer_state()
        if self.rank == 0:
            checkpoint_files.save_learner(folder, self.network.state(), state, self.steps)
        self._gathered(None)

    def load(self, folder: Path) -> None:
        state, self.steps = checkpoint_files.load_learner(folder, self.network.state())
        self.restore_optimizer(state)
        self.network.base.revision += 1

    def optimizer_state(self) -> dict[str, Any]:
        """The optimiser's whole state, in the form of `torch.optim.Optimizer.state_dict`; every
        process must call this method."""
        return {"state": {}, "param_groups": []}

    def restore_optimizer(self, state: dict[str, Any]) -> None:
        """The inverse of `optimizer_state`, called after the weights have been loaded."""

    def _gathered(self, value: Any) -> list[Any]:
        """Gather the values of all processes, in order of rank."""
        return [value]

    def _merged(
        self,
        totals: dict[str, float],
        values: dict[int, tuple[float, ...]],
        failure: tuple[int, str] | None,
    ) -> Accumulated:
        """Merge the results of all processes. If any process failed, all processes raise the first
        failure."""
        parts = self._gathered((totals, values, failure))
        failures = [failed for _, _, failed in parts if failed is not None]
        if failures:
            raise FloatingPointError(min(failures)[1])
        metrics: dict[str, float] = {}
        for part, _, _ in parts:
            for key, value in part.items():
                metrics[key] = metrics.get(key, 0.0) + value
        return Accumulated(
            metrics,
            {number: value for _, row_values, _ in parts for number, value in row_values.items()},
        )

    def _stop_together(self, turn: Round, loss: Tensor) -> None:
        """Stop all processes if any loss of the round is not finite. If only one process stopped,
        the other processes would wait forever."""
        losses = torch.zeros(self.processes, device=self.device)
        losses[self.rank] = loss.detach()
        if self.processes > 1:
            torch.distributed.all_reduce(losses)
        for (number, micro), value in zip(turn, losses.tolist(), strict=False):
            if not math.isfinite(value):
                raise FloatingPointError(self._loss_error(number, micro, value))

    def _check_gradient(self, number: int, micro: Micro, outputs: Outputs, loss: Tensor) -> None:
        """Errors: ConfigError if the loss of a trained network has no gradient, but its rows have
        actions, or marks whose values have none either."""
        actions, marks = contents(micro)
        reached = outputs.logprobs.requires_grad or outputs.values.requires_grad
        if loss.requires_grad or not self.parameters or not (actions or (marks and not reached)):
            return
        reason = "the loss is computed from other tensors than the model's; detach none of these"
        if not torch.is_grad_enabled():
            reason = "code of this run called torch.set_grad_enabled(False); use torch.no_grad()"
        elif not reached:
            reason = "the model computes without gradient; let its code detach nothing"
        raise ConfigError(
            f"{self.name}: the loss of update {self.steps + 1}, micro-batch {number + 1} has no "
            f"gradient: {reason}"
        )

    def _loss_error(self, number: int, micro: Micro, value: float) -> str:
        return (
            f"{self.name}: the loss of update {self.steps + 1}, micro-batch {number + 1} "
            f"({len(micro)} rows) is {value}; lower the learning rate or look at the rewards of "
            "this batch"
        )

    def _check_norm(self, norm: float) -> None:
        """Errors: FloatingPointError if the gradient norm is not finite."""
        if not math.isfinite(norm):
            raise FloatingPointError(
                f"{self.name}: the gradient of update {self.steps + 1} is {norm}; lower the "
                "learning rate or the loss's scale"
            )


def _values(micro: Micro, outputs: Outputs) -> dict[int, tuple[float, ...]]:
    """Values of each row that has marks, by the row's index."""
    if not contents(micro)[1]:
        return {}
    by_row = outputs.values.detach().cpu().split([len(row.marks) for _, row in micro])
    return {
        number: tuple(part.tolist())
        for (number, row), part in zip(micro, by_row, strict=True)
        if row.marks
    }


def _nothing(outputs: Outputs) -> Tensor:
    """Return a zero loss with zero gradients for all outputs, so that every weight receives a
    gradient. It is a sum over no output, so that no output can make it NaN."""
    return outputs.logprobs[:0].sum() + outputs.values[:0].sum()
