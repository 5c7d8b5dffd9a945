"""How much of what training changed in a model's weights a narrower number type keeps.

A bfloat16 number has 8 significant bits: a change of less than 1/512 of a weight that is itself a
bfloat16 number is rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from safetensors import safe_open
from torch import Tensor

from .hub_files import model_folder
from .network import Network


@torch.no_grad()
def kept_change(network: Network, path: str, dtype: torch.dtype) -> float | None:
    """Return the share of the change that is left after rounding all weights to `dtype`, before the
    adapter is merged: <rounded change, change> / <change, change>. None if nothing was changed.

    `path`: the folder or hub name of the weights that a network without adapter was trained from.
    """
    kept = total = 0.0
    for before, change in _changes(network, path):
        rounded = (before + change).to(dtype).float() - before.to(dtype).float()
        kept += float((rounded.double() * change.double()).sum())
        total += float(change.double().square().sum())
    return kept / total if total > 0 else None


def _changes(network: Network, path: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Return each changed weight before training and its change, both in float32."""
    if network.adapter is not None:
        yield from _by_adapter(network, network.adapter)
        return
    weights = dict(network.base.causal.named_parameters())
    folder = model_folder(path)
    for file in [] if folder is None else sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - no mapping
                if name in weights:
                    before = tensors.get_tensor(name).float()
                    yield before, weights[name].detach().cpu().float() - before


def _by_adapter(network: Network, adapter: str) -> Iterator[tuple[Tensor, Tensor]]:
    from peft.tuners.lora.layer import LoraLayer, ParamWrapper

    for layer in network.base.model.modules():
        if isinstance(layer, LoraLayer) and adapter in layer.scaling:
            wrapped = isinstance(layer, ParamWrapper)
            weight = layer.get_param() if wrapped else layer.get_base_layer().weight
            yield weight.detach().float(), layer.get_delta_weight(adapter).float()
