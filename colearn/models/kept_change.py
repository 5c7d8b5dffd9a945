"""How much of what training changed in a model's weights a narrower number type keeps.

A bfloat16 number has 8 significant bits: a change of less than 1/512 of a weight that is itself a
bfloat16 number is rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from safetensors import safe_open
from torch import Tensor

from colearn.text.notes import note

from .hub_files import model_folder
from .load import DTYPES
from .network import Network

Dtype = Literal["float32", "bfloat16", "float16"]

_LEAST_KEPT = 0.9


def kept_type(
    network: Network, path: str, usual: Dtype, *, who: str, chosen: Dtype | None, option: str = ""
) -> Dtype:
    """Return the type of the saved weights of the model `who`, and tell the user how much of the
    trained change is left in it. Without a `chosen` type, it is the `usual` one, or float32 if less
    than 90% is left in that one. `path`: as for `kept_change`. `option`: the option that chooses a
    type, if there is one."""
    dtype = chosen or usual
    if dtype == "float32":
        return dtype
    share = kept_change(network, path, DTYPES[dtype])
    if share is None:
        return dtype
    told = f"{who}: {dtype} keeps {share:.0%} of what training changed"
    if share >= _LEAST_KEPT or chosen is not None:
        note(told)
        return dtype
    remedy = f"; {option} {dtype} writes {dtype} all the same" if option else ""
    note(f"{told}, so float32 is written{remedy}")
    return "float32"


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
