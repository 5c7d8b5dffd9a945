"""Copies of a trained model: a frozen network, for reference policies and past selves, and a
snapshot of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from colearn.contract import FrozenCopy, Learner, WeightCopy
from colearn.contract.rows import Outputs, Row
from colearn.models.network import Network, is_of_head

from . import checkpoint_files
from .batch import evaluate


class NetworkCopy(FrozenCopy):
    """A copy of a network in this process, with separate weights or with a separate adapter."""

    def __init__(
        self, learner: Learner, policy: Network, network: Network, *, token_budget: int
    ) -> None:
        self.learner, self.policy, self.network = learner, policy, network
        self.token_budget = token_budget

    def evaluate(self, rows: Sequence[Row]) -> list[Outputs]:
        return evaluate(self.network, rows, token_budget=self.token_budget)

    def copy_weights(self) -> None:
        weights = self._weights()
        with torch.no_grad():
            for name, weight in self.learner.weights().items():
                if not is_of_head(name):
                    weights[self._renamed(name)].copy_(weight)
        self.network.base.revision += 1

    def save(self, folder: Path) -> None:
        checkpoint_files.save_weights(folder, self._weights())

    def load(self, folder: Path) -> None:
        checkpoint_files.load_weights(folder, self._weights())
        self.network.base.revision += 1

    def _weights(self) -> Mapping[str, Tensor]:
        return self.network.trained()

    def _renamed(self, name: str) -> str:
        """Return the name that a weight of the policy has in the copy."""
        copy_adapter, policy_adapter = self.network.adapter, self.policy.adapter
        return ".".join(
            str(copy_adapter) if part == policy_adapter else part for part in name.split(".")
        )


class HeldWeights(WeightCopy):
    """A copy of a learner's trained weights in CPU memory."""

    def __init__(self, learner: Learner) -> None:
        self._learner, self.steps = learner, learner.steps
        weights = learner.weights().items()
        self._weights = {name: tensor.detach().cpu().clone() for name, tensor in weights}

    @torch.no_grad()
    def put(self) -> None:
        self._learner.steps = self.steps
        for name, tensor in self._learner.weights().items():
            tensor.copy_(self._weights[name])

    def save(self, folder: Path) -> None:
        checkpoint_files.save_weights(folder, self._weights)

    def load(self, folder: Path, steps: int) -> None:
        checkpoint_files.load_weights(folder, self._weights)
        self.steps = steps
