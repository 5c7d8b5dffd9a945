"""Builds a network of a run with the weights of a checkpoint, without a learner."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import CheckpointError, reason_of
from colearn.models.build_networks import TeamBuilder
from colearn.models.network import Network

from .checkpoint_files import WEIGHTS


def checkpoint_network(run: ResolvedRun, key: NetworkKey, checkpoint: Path) -> Network:
    """Build the network `key` with a checkpoint's weights. If the network was not trained, it keeps
    the weights of its base model.

    Errors: ConfigError for a missing base model; CheckpointError for a damaged checkpoint, or one
    from another model.
    """
    network = TeamBuilder(run).network(key)
    if key in run.learners:
        _copy_weights(network, checkpoint / str(key) / WEIGHTS)
    return network


def _copy_weights(network: Network, path: Path) -> None:
    weights, parameters = _read(path), network.state()
    if network.head is None:  # a head on an actor is a critic
        weights = {name: weight for name, weight in weights.items() if not name.startswith("head.")}
    differences = sorted(set(weights) ^ set(parameters))
    differences += [
        n for n, p in parameters.items() if not differences and weights[n].shape != p.shape
    ]
    if differences:
        raise CheckpointError(
            f"{path}: does not fit the base in the run's config (first difference: "
            f"{differences[0]}); give the run the base that it was trained on"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def _read(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path}: cannot be read ({reason_of(error)}); take another --step"
        ) from None
