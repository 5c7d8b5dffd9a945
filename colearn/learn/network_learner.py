"""What learners of one network share, wherever the optimiser lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from colearn.config import OptimizerSettings
from colearn.contract import Learner
from colearn.contract.rows import Outputs, Row
from colearn.models.network import Network

from .evaluate import evaluate


class NetworkLearner(Learner):
    """A network, its settings and its micro-batches; subclasses own the optimiser."""

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
        self.name = name
        self.network = network
        self.settings = settings
        self.token_budget = token_budget
        self.pad = pad
        self.entropy = entropy
        self.parameters = network.trained()
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

    def observe(self, returns: Sequence[float], centre: float) -> None:
        """Errors: ValueError where the network has no value head."""
        if self.network.head is None:
            raise ValueError(f"{self.name} has no value head to scale")
        self.network.head.observe(returns, centre)

    def weights(self) -> dict[str, Any]:
        return {name: parameter.detach() for name, parameter in self.parameters.items()}
