"""Exports a network's weights as a `WeightUpdate`."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from colearn.contract import WeightUpdate

from .base import Base
from .network import Network


def weight_update(network: Network, version: int) -> WeightUpdate:
    """Return the weights that generation needs, without the value head."""
    base, adapter = network.base, network.adapter
    if adapter is None:
        weights = {name: tensor.detach() for name, tensor in plain_weights(base).items()}
        return WeightUpdate(version=version, full=weights)
    return WeightUpdate(version=version, adapters={adapter: adapter_weights(base, adapter)})


def plain_weights(base: Base) -> dict[str, Tensor]:
    """Return the base's weights by checkpoint name; a tied weight appears under each of its
    names."""
    return {
        name.replace(".base_layer.", "."): tensor
        for name, tensor in base.causal.state_dict(keep_vars=True).items()
        if ".lora_" not in name
    }


def each_once(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights as stored in a checkpoint: a tied tensor appears only under its first
    name."""
    first: dict[tuple[int, tuple[int, ...]], str] = {}
    for name, tensor in weights.items():
        first.setdefault((tensor.data_ptr(), tuple(tensor.shape)), name)
    return {name: weights[name] for name in first.values()}


def adapter_weights(base: Base, name: str) -> dict[str, Tensor]:
    """Return one adapter's weights, keyed by the names that peft's files use."""
    from peft import get_peft_model_state_dict

    weights: dict[str, Tensor] = get_peft_model_state_dict(
        base.model, adapter_name=name, save_embedding_layers=False
    )
    return {key: tensor.detach() for key, tensor in weights.items()}
