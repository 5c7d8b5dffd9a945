"""Local learner: AdamW on accelerate, in one or several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object, reduce
from torch import Tensor, nn

from colearn.config import OptimizerSettings
from colearn.contract import Accumulated, Objective
from colearn.contract.rows import Row
from colearn.contract.timeline import updates
from colearn.models.network import Network
from colearn.models.torch_settings import LARGE

from .grad_signal import grad_signal
from .network_learner import NetworkLearner
from .rate_schedule import rate_factor


class LocalLearner(NetworkLearner):
    """Trains one network with one AdamW in float32 and one learning-rate schedule.

    The losses of all processes are parts of one sum. Gradients are summed over processes, never
    averaged, so results do not depend on the number of processes.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        settings: OptimizerSettings,
        *,
        token_budget: int,
        entropy: bool = False,
    ) -> None:
        super().__init__(name, network, token_budget=token_budget, entropy=entropy)
        self.settings = settings
        # Without cpu=True accelerate treats CPU processes as single ones.
        state = PartialState(cpu=self.device.type == "cpu")
        self.processes, self.rank = state.num_processes, state.process_index
        rate = settings.learning_rate
        groups = _groups(self.parameters, rate, settings.head_learning_rate or rate)
        self.rates = [group["lr"] for group in groups]
        self.optimizer = torch.optim.AdamW(
            groups,
            lr=rate,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),  # one kernel per step
        )

    def accumulate(self, rows: Sequence[Row], objective: Objective) -> Accumulated:
        """As in the base class. An error or an interruption leaves no gradient, so that the update
        can be repeated."""
        try:
            return super().accumulate(rows, objective)
        except BaseException:
            self.optimizer.zero_grad(set_to_none=True)
            raise

    @updates
    def step(self, done: float) -> dict[str, float]:
        self._share_gradients()
        norm = torch.nn.utils.clip_grad_norm_(
            self.parameters.values(), self.settings.max_grad_norm
        ).item()
        self._check_norm(norm)
        factor = rate_factor(self.settings, self.steps, done)
        rate = self.settings.learning_rate * factor
        for group, base in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = base * factor
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        self.network.base.revision += 1
        signal = grad_signal(self.optimizer, self.settings.betas, self.steps)
        signals = {} if signal is None else {"grad_signal": signal}
        return {"grad_norm": norm, "learning_rate": rate, **signals}

    def _backward(self, loss: Tensor) -> None:
        """The first backward pass of a step allocates gradients among the activations that it
        frees. On the CPU, the gradients of a large network then move to one tensor, because the C
        library would not reuse the gaps between them for the activations of the next pass."""
        first = all(parameter.grad is None for parameter in self.parameters.values())
        super()._backward(loss)
        if first and self.device.type == "cpu":
            gradients = [
                parameter for parameter in self.parameters.values() if parameter.grad is not None
            ]
            sizes = [parameter.numel() for parameter in gradients]
            if sum(sizes) >= LARGE:
                parts = torch.empty(sum(sizes)).split(sizes)
                for parameter, part in zip(gradients, parts, strict=True):
                    parameter.grad = part.view_as(parameter).copy_(parameter.grad)

    def optimizer_state(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def restore_optimizer(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)

    def _gathered(self, value: Any) -> list[Any]:
        if self.processes == 1:
            return [value]
        values: list[Any] = gather_object([value])
        return values

    def _share_gradients(self) -> None:
        """Sum gradients over processes. If no process has a gradient for a parameter, the gradient
        stays `None`, as in a single process. With a zero gradient instead of `None`, weight decay
        and momentum would still apply."""
        if self.processes == 1:
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


def _groups(
    parameters: Mapping[str, nn.Parameter], body: float, head: float
) -> list[dict[str, Any]]:
    """Return parameter groups in order: one group for each run of consecutive parameters with equal
    learning rates."""
    groups: list[dict[str, Any]] = []
    for name, parameter in parameters.items():
        rate = head if name.startswith("head.") else body
        if not groups or groups[-1]["lr"] != rate:
            groups.append({"params": [], "lr": rate})
        groups[-1]["params"].append(parameter)
    return groups
