"""Steps of a value model with a frozen trunk, whose head is solved in closed form."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor

from colearn.config import CriticSettings
from colearn.contract import Optimizer
from colearn.contract.rows import Outputs, RowBatch
from colearn.errors import ConfigError
from colearn.models.network import Network

_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Candidate ridge penalties, in units of the largest eigenvalue of the hidden states' scatter
matrix."""


@dataclass(frozen=True, slots=True)
class ScoredStates:
    """Hidden states at the marks of one update, [N, D], and their value targets, [N]."""

    states: Tensor
    targets: Tensor


class RidgeOptimizer(Optimizer):
    """Solves, in each step, one ridge regression of the value targets on the hidden states at the
    marks.

    The regression uses the experience of the last `critic.replay` updates. The experience of all
    but the newest update is off-policy, since earlier policies produced the returns. The penalty is
    the candidate with the smallest leave-one-out error. If a constant prediction has an even
    smaller error, the hidden states are not used.

    Wrong when the trunk's states do not contain what the return depends on, since only the head is
    learned.
    """

    follows_gradient = False

    def __init__(self, network: Network, settings: CriticSettings) -> None:
        assert network.head is not None, "a critic has a value head"
        self.network, self.head = network, network.head
        if PartialState(cpu=self.network.base.device.type == "cpu").num_processes > 1:
            raise ConfigError(
                "critic.head: ridge is solved in one process; start one, or leave it out"
            )
        self._seen: list[ScoredStates] = []
        self._kept: deque[ScoredStates] = deque(maxlen=settings.replay)

    @contextmanager
    def passes(self) -> Iterator[None]:
        self._seen.clear()
        with torch.no_grad():
            yield

    def forward(self, batch: RowBatch, *, entropy: bool = False) -> Outputs:
        states: list[Tensor] = []
        hook = self.head.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0]))
        try:
            outputs: Outputs = self.network(batch, entropy=entropy)
        finally:
            hook.remove()
        if states:
            marked = states[0] if batch.mark_places is None else states[0][batch.mark_places]
            targets = batch.per_action("targets")
            if batch.baselined:
                targets = targets - batch.per_action("baselines")
            scored = ~targets.isnan()
            self._seen.append(ScoredStates(marked[scored].float(), targets[scored]))
        return outputs

    @torch.no_grad()
    def step(self, number: int, done: float) -> dict[str, float]:
        newest = ScoredStates(
            torch.cat([batch.states for batch in self._seen]),
            torch.cat([batch.targets for batch in self._seen]),
        )
        if not len(newest.targets):
            return {}  # nothing of it is scored
        self._kept.append(newest)
        centre, deviation, _ = self.head.scale.double()
        states = torch.cat([batch.states for batch in self._kept]).double()
        targets = torch.cat([batch.targets for batch in self._kept]).double()
        weights, bias = ridge(states, (targets - centre) / deviation)
        self.head.linear.weight.copy_(weights[None])
        self.head.linear.bias.copy_(bias[None])
        return {}

    def state(self) -> dict[str, Any]:
        batches = {
            number: {"states": batch.states, "targets": batch.targets}
            for number, batch in enumerate(self._kept)
        }
        return {"state": batches, "param_groups": []}

    def restore(self, state: dict[str, Any]) -> None:
        device = self.network.base.device
        self._kept.clear()
        self._kept.extend(
            ScoredStates(batch["states"].to(device), batch["targets"].to(device))
            for _, batch in sorted(state["state"].items())
        )


def ridge(states: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights [D] and bias [] of the ridge regression of `targets` [N] on `states` [N, D].
    The penalty is the candidate with the smallest leave-one-out error.

    The leave-one-out error of row i is its residual divided by 1 - h_ii, where h is the
    regression's hat matrix.
    """
    mean, level = states.mean(0), targets.mean()
    left, sizes, right = torch.linalg.svd(states - mean, full_matrices=False)
    along = left.T @ (targets - level)
    best, weights = _left_out(targets - level, torch.full_like(targets, 1 / len(targets))), None
    for penalty in _PENALTIES:
        shrunk = sizes**2 / (sizes**2 + penalty * sizes[0] ** 2 + torch.finfo(sizes.dtype).tiny)
        residuals = targets - level - left @ (shrunk * along)
        error = _left_out(residuals, 1 / len(targets) + left**2 @ shrunk)
        if error < best:
            best, weights = error, right.T @ (_ratio(shrunk, sizes) * along)
    if weights is None:
        weights = torch.zeros_like(mean)
    return weights, level - mean @ weights


def _left_out(residuals: Tensor, leverage: Tensor) -> float:
    return float(torch.mean((residuals / (1 - leverage).clamp_min(1e-6)) ** 2))


def _ratio(shrunk: Tensor, sizes: Tensor) -> Tensor:
    """Return `shrunk` / `sizes`, and 0 wherever `sizes` is 0."""
    return torch.where(sizes > 0, shrunk / sizes, 0.0)
