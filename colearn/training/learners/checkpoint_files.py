"""Learner checkpoints: weights and optimiser tensors as safetensors, scalars as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import CheckpointError, reason_of
from colearn.models.build_networks import NetworkBuilder
from colearn.models.network import Network, is_of_head

WEIGHTS, OPTIMIZER, NUMBERS = "weights.safetensors", "optimizer.safetensors", "learner.json"
_EARLIER = "remove this checkpoint and resume from an earlier one"


def save_learner(
    folder: Path,
    parameters: Mapping[str, Tensor],
    optimizer: Mapping[str, Any],
    steps: int,
) -> None:
    """Write weights, optimiser state and step count without loss of precision.

    Errors: OSError if a file cannot be written.
    """
    save_weights(folder, parameters)
    tensors: dict[str, Tensor] = {}
    for number, state in optimizer["state"].items():
        for key, value in state.items():
            tensors[f"{number}.{key}"] = torch.as_tensor(value).detach().cpu().clone()
    _write(tensors, folder / OPTIMIZER)
    numbers = {"steps": steps, "param_groups": optimizer["param_groups"]}
    (folder / NUMBERS).write_text(json.dumps(numbers, indent=1))


def load_learner(folder: Path, parameters: Mapping[str, Tensor]) -> tuple[dict[str, Any], int]:
    """Copy the weights into `parameters`; return the optimiser state and the step count.

    Errors: CheckpointError for a file that is missing, truncated, or from another model.
    """
    load_weights(folder, parameters)
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _read(folder / OPTIMIZER).items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = tensor
    try:
        numbers = json.loads((folder / NUMBERS).read_text())
        groups, steps = numbers["param_groups"], numbers["steps"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _broken(folder / NUMBERS, error) from None
    return {"state": state, "param_groups": groups}, steps


def save_weights(folder: Path, parameters: Mapping[str, Tensor]) -> None:
    """Write parameters as safetensors. Errors: OSError if the file cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(
        {name: parameter.detach().cpu().clone() for name, parameter in parameters.items()},
        folder / WEIGHTS,
    )


def load_weights(
    folder: Path,
    parameters: Mapping[str, Tensor],
    *,
    head: bool = True,
    other: str = "resume with the config that wrote it",
    damaged: str = _EARLIER,
) -> None:
    """Copy the weights into `parameters`. Without `head`, the weights of a value head are left out.

    Errors: CheckpointError for a file from another model, with the remedy `other`, and for a file
    that is missing or truncated, with the remedy `damaged`.
    """
    path = folder / WEIGHTS
    weights = _read(path, damaged)
    if not head:
        weights = {name: weight for name, weight in weights.items() if not is_of_head(name)}
    if set(weights) != set(parameters):
        difference = sorted(set(weights) ^ set(parameters))[0]
        raise CheckpointError(
            f"{path}: holds another model's weights (first difference: {difference}); {other}"
        )
    for name, parameter in parameters.items():
        if weights[name].shape != parameter.shape:
            raise CheckpointError(
                f"{path}: {name} has shape {tuple(weights[name].shape)}, the model "
                f"{tuple(parameter.shape)}; {other}"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def checkpoint_network(run: ResolvedRun, key: NetworkKey, checkpoint: Path) -> Network:
    """Build the network `key` with a checkpoint's weights, without a learner. If the network was
    not trained, it keeps the weights of its base model.

    Errors: ConfigError for a missing base model; CheckpointError for a damaged checkpoint, or one
    from another model.
    """
    network = NetworkBuilder(run).network(key)
    if key in run.learners:
        load_weights(
            checkpoint / str(key),
            network.state(),
            head=network.head is not None,  # a head on an actor is a critic
            other="give the run the base that it was trained on",
            damaged="take another --step",
        )
    return network


def _write(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # raised for a full disk, too
        raise OSError(f"{path.name}: {error}") from None


def _read(path: Path, remedy: str = _EARLIER) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise _broken(path, error, remedy) from None


def _broken(path: Path, error: Exception, remedy: str = _EARLIER) -> CheckpointError:
    return CheckpointError(f"{path}: cannot be read ({reason_of(error)}); {remedy}")
