"""Snapshot of a learner's trained weights, in this process."""

from __future__ import annotations

from pathlib import Path

import torch

from colearn.contract import Learner, WeightCopy

from . import checkpoint_files


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
