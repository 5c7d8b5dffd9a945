"""A copy of a trained model that is not trained itself and becomes the model when it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from colearn.contract import Learner
from colearn.models.network import Network

from . import files


class Follower:
    """What a model said a while ago, with weights (or an adapter) of its own: the reference that a
    policy is held to, or a past self to play against.

    It says what the model said when the run began, until `follow` makes it what the model says now.
    """

    def __init__(self, learner: Learner, policy: Network, network: Network) -> None:
        self.learner, self.policy, self.network = learner, policy, network

    def follow(self) -> None:
        """Become the policy as it is now."""
        own = self._weights()
        with torch.no_grad():
            for name, weight in self.learner.weights().items():
                if not name.startswith("head."):
                    own[self._own(name)].copy_(weight)
        self.network.base.revision += 1

    def save(self, folder: Path) -> None:
        """Errors: OSError where the file cannot be written."""
        files.save_weights(folder, self._weights())

    def load(self, folder: Path) -> None:
        """Errors: CheckpointError for a file that is missing, cut short, or of another model."""
        files.load_weights(folder, self._weights())
        self.network.base.revision += 1

    def _weights(self) -> Mapping[str, Tensor]:
        return self.network.trained()

    def _own(self, name: str) -> str:
        """The name here of one of the policy's weights."""
        return name.replace(f".{self.policy.adapter}.", f".{self.network.adapter}.")
