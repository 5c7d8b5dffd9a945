"""The local learner: AdamW on accelerate, in one process or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from colearn.config import OptimizerSettings
from colearn.contract import Learner, Objective
from colearn.models.network import Network

from . import files
from .batch import Outputs, make_batch, micro_batches
from .evaluate import evaluate
from .row import Row


class LocalLearner(Learner):
    """One network, one AdamW in float32, one schedule.

    Every process is given the same rows and takes each n-th micro-batch. Gradients of parts of a
    sum are added over processes, never averaged, so their number changes nothing.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        *,
        token_budget: int,
        pad: int = 0,
        entropy: bool = False,
        total_steps: int | None = None,
    ) -> None:
        self.name = name
        self.network = network
        self.settings = settings
        self.token_budget = token_budget
        self.pad = pad
        self.entropy = entropy
        self.total_steps = total_steps
        self.accelerator = Accelerator()
        self.parameters = network.trained()
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(),
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )
        self.steps = 0

    @property
    def device(self) -> torch.device:
        return self.network.base.device

    def evaluate(
        self, groups: Sequence[Sequence[Row]], *, reference: bool = False
    ) -> list[list[Outputs]]:
        return evaluate(
            self.network, groups, token_budget=self.token_budget, pad=self.pad, reference=reference
        )

    def accumulate(self, groups: Sequence[Sequence[Row]], objective: Objective) -> dict[str, float]:
        """Errors: FloatingPointError naming the learner when a loss is not finite."""
        totals: dict[str, float] = {}
        for number, micro in enumerate(micro_batches(groups, self.token_budget)):
            if number % self.accelerator.num_processes != self.accelerator.process_index:
                continue
            batch = make_batch([row for _, _, row in micro], self.pad, self.device)
            loss, metrics = objective(self.network(batch, entropy=self.entropy), batch)
            if not bool(torch.isfinite(loss)):
                raise FloatingPointError(
                    f"{self.name}: the loss of update {self.steps + 1}, micro-batch {number + 1} "
                    f"({len(micro)} rows) is {loss.item()}; lower the learning rate or look at "
                    "the rewards of this batch"
                )
            loss.backward()
            for key, value in metrics.items():
                totals[key] = totals.get(key, 0.0) + value
        return self._summed(totals)

    def step(self) -> dict[str, float]:
        self._share_gradients()
        norm = torch.nn.utils.clip_grad_norm_(
            self.parameters.values(), self.settings.max_grad_norm
        ).item()
        if not math.isfinite(norm):
            raise FloatingPointError(
                f"{self.name}: the gradient of update {self.steps + 1} is {norm}; lower the "
                "learning rate or the loss's scale"
            )
        rate = self.settings.learning_rate * schedule(self.settings, self.steps, self.total_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        return {"grad_norm": norm, "learning_rate": rate}

    def save(self, folder: Path) -> None:
        files.save_learner(folder, self.parameters, self.optimizer.state_dict(), self.steps)

    def load(self, folder: Path) -> None:
        state, self.steps = files.load_learner(folder, self.parameters)
        self.optimizer.load_state_dict(state)

    def weights(self) -> dict[str, Any]:
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    def share(self, mine: dict[int, Any]) -> dict[int, Any]:
        if self.accelerator.num_processes == 1:
            return mine
        from accelerate.utils import gather_object

        return {key: value for part in gather_object([mine]) for key, value in part.items()}

    def _share_gradients(self) -> None:
        if self.accelerator.num_processes == 1:
            return
        for parameter in self.parameters.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.copy_(self._sum(parameter.grad))

    def _sum(self, value: Tensor) -> Tensor:
        total: Tensor = self.accelerator.reduce(value, reduction="sum")
        return total

    def _summed(self, totals: dict[str, float]) -> dict[str, float]:
        if self.accelerator.num_processes == 1:
            return totals
        from accelerate.utils import gather_object

        merged: dict[str, float] = {}
        for part in gather_object([totals]):
            for key, value in part.items():
                merged[key] = merged.get(key, 0.0) + value
        return merged


def schedule(settings: OptimizerSettings, step: int, total: int | None) -> float:
    """Factor of the learning rate at optimiser step `step` (from 0)."""
    if step < settings.warmup_steps:
        return (step + 1) / settings.warmup_steps
    if settings.schedule == "constant" or not total or total <= settings.warmup_steps:
        return 1.0
    done = min((step - settings.warmup_steps) / (total - settings.warmup_steps), 1.0)
    return 1.0 - done if settings.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))
