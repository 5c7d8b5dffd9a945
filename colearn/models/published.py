"""A network's weights as a `WeightUpdate`."""

from __future__ import annotations

from torch import Tensor

from colearn.contract import WeightUpdate

from .base import Base
from .network import Network


def published(network: Network, version: int) -> WeightUpdate:
    """What a network says with; its value head stays behind."""
    base, adapter = network.base, network.adapter
    if adapter is None:
        weights = {name: tensor.detach() for name, tensor in plain_weights(base).items()}
        return WeightUpdate(version=version, full=weights)
    return WeightUpdate(version=version, adapters={adapter: adapter_weights(base, adapter)})


def plain_weights(base: Base) -> dict[str, Tensor]:
    """The base's own weights by their checkpoint names; tied ones under every name they have."""
    return {
        name.replace(".base_layer.", "."): tensor
        for name, tensor in base.causal.state_dict(keep_vars=True).items()
        if ".lora_" not in name
    }


def adapter_weights(base: Base, name: str) -> dict[str, Tensor]:
    """One adapter's weights by the names that peft writes to a file."""
    from peft import get_peft_model_state_dict

    found: dict[str, Tensor] = get_peft_model_state_dict(
        base.model, adapter_name=name, save_embedding_layers=False
    )
    return {key: tensor.detach() for key, tensor in found.items()}
