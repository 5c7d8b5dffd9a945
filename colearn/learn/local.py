"""The local learner: AdamW on accelerate, in one process or several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object, reduce
from torch import Tensor, nn

from colearn.config import OptimizerSettings
from colearn.contract import Objective
from colearn.contract.rows import Row, RowBatch
from colearn.models.network import Network

from . import files
from .batch import make_batch, micro_batches
from .finite import gradient_error, loss_error
from .network_learner import NetworkLearner
from .schedule import schedule


class LocalLearner(NetworkLearner):
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
    ) -> None:
        super().__init__(
            name, network, settings, token_budget=token_budget, pad=pad, entropy=entropy
        )
        # Unless told so, accelerate takes processes without an accelerator for single ones.
        self.processes = PartialState(cpu=self.device.type == "cpu")
        groups = _groups(self.parameters, settings)
        self.rates = [group["lr"] for group in groups]
        self.optimizer = torch.optim.AdamW(
            groups,
            lr=settings.learning_rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),  # one kernel, where a step is many
        )
        self._kept: tuple[Sequence[Sequence[Row]], list[tuple[int, int, RowBatch]]] = ((), [])

    def accumulate(self, groups: Sequence[Sequence[Row]], objective: Objective) -> dict[str, float]:
        """Errors: FloatingPointError, in every process, naming the loss that is not finite."""
        totals: dict[str, float] = {}
        failure: tuple[int, str] | None = None
        for number, count, batch in self._batches(groups):
            loss, metrics = objective(self.network(batch, entropy=self.entropy), batch)
            if not bool(torch.isfinite(loss)):
                text = loss_error(self.name, self.steps + 1, number + 1, count, loss.item())
                failure = (number, text)
                break
            # Rows with neither actions nor marks have nothing to train.
            if loss.requires_grad:
                loss.backward()
            for key, value in metrics.items():
                totals[key] = totals.get(key, 0.0) + value
        return self._summed(totals, failure)

    def _batches(self, groups: Sequence[Sequence[Row]]) -> Iterator[tuple[int, int, RowBatch]]:
        """This process's micro-batches, each with its number and how many rows it has. One that
        holds everything is kept: another epoch on the same groups finds it ready."""
        if groups is self._kept[0]:
            yield from self._kept[1]
            return
        self._kept = ((), [])
        micros = list(micro_batches(groups, self.token_budget))
        for number, micro in enumerate(micros):
            if number % self.processes.num_processes != self.processes.process_index:
                continue
            found = (
                number,
                len(micro),
                make_batch([row for _, _, row in micro], self.pad, self.device),
            )
            if len(micros) == 1:
                self._kept = (groups, [found])
            yield found

    def step(self, done: float) -> dict[str, float]:
        self._share_gradients()
        norm = torch.nn.utils.clip_grad_norm_(
            self.parameters.values(), self.settings.max_grad_norm
        ).item()
        if not math.isfinite(norm):
            raise FloatingPointError(gradient_error(self.name, self.steps + 1, norm))
        factor = schedule(self.settings, self.steps, done)
        rate = self.settings.learning_rate * factor
        for group, base in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = base * factor
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        return {"grad_norm": norm, "learning_rate": rate}

    def save(self, folder: Path) -> None:
        if self.processes.is_main_process:
            files.save_learner(
                folder, self.network.state(), self.optimizer.state_dict(), self.steps
            )
        self.processes.wait_for_everyone()

    def load(self, folder: Path) -> None:
        state, self.steps = files.load_learner(folder, self.network.state())
        self.optimizer.load_state_dict(state)

    def share(self, mine: dict[int, Any]) -> dict[int, Any]:
        if self.processes.num_processes == 1:
            return mine
        return {key: value for part in gather_object([mine]) for key, value in part.items()}

    def _share_gradients(self) -> None:
        """Add up over processes. What none of them reached keeps no gradient, as in one process:
        AdamW then leaves it alone, while a zero would decay it and move it by its momentum."""
        if self.processes.num_processes == 1:
            return
        parameters = list(self.parameters.values())
        reached = [float(parameter.grad is not None) for parameter in parameters]
        counts = self._sum(torch.tensor(reached, device=self.device)).tolist()
        for parameter, count in zip(parameters, counts, strict=True):
            if count:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                parameter.grad.copy_(self._sum(parameter.grad))

    def _sum(self, value: Tensor) -> Tensor:
        total: Tensor = reduce(value, reduction="sum")
        return total

    def _summed(
        self, totals: dict[str, float], failure: tuple[int, str] | None
    ) -> dict[str, float]:
        parts = [(totals, failure)]
        if self.processes.num_processes > 1:
            parts = gather_object(parts)
        failures = [found for _, found in parts if found is not None]
        if failures:
            raise FloatingPointError(min(failures)[1])
        merged: dict[str, float] = {}
        for part, _ in parts:
            for key, value in part.items():
                merged[key] = merged.get(key, 0.0) + value
        return merged


def _groups(
    parameters: Mapping[str, nn.Parameter], settings: OptimizerSettings
) -> list[dict[str, Any]]:
    """The parameters in their order, in one group for every run of equal learning rates."""
    head = settings.head_learning_rate or settings.learning_rate
    found: list[dict[str, Any]] = []
    for name, parameter in parameters.items():
        rate = head if name.startswith("head.") else settings.learning_rate
        if not found or found[-1]["lr"] != rate:
            found.append({"params": [], "lr": rate})
        found[-1]["params"].append(parameter)
    return found
