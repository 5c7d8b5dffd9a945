"""The default generator on its own copy of the weights, so that it decodes while models update."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch

from colearn.agents import Voice
from colearn.contract import WeightUpdate
from colearn.contract.weight_sync import LoadedWeights
from colearn.models.base import Base
from colearn.models.weight_update import plain_weights

from .transformers import TransformersGenerator


class CopiedGenerator(LoadedWeights, TransformersGenerator):
    """A `TransformersGenerator` over a copy of `base`, on `device` or where the base is.

    `sync` copies what the followed models publish.
    """

    def __init__(
        self,
        base: Base,
        voices: Mapping[str, Voice],
        *,
        max_rows: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        LoadedWeights.__init__(self)
        with torch.random.fork_rng():
            copied = _copied(base)
        copied.model.requires_grad_(False)
        if device is not None:
            copied.to(device)
        TransformersGenerator.__init__(self, copied, voices, max_rows=max_rows)

    def adapter(self, agent: str) -> str | None:
        return self.voices[agent].adapter

    @torch.no_grad()
    def load(self, updates: Sequence[WeightUpdate]) -> None:
        from peft import set_peft_model_state_dict

        own = plain_weights(self.base)
        for update in updates:
            for name, tensor in (update.full or {}).items():
                own[name].copy_(tensor)
            for adapter, tensors in update.adapters.items():
                set_peft_model_state_dict(self.base.model, dict(tensors), adapter_name=adapter)
        self.loaded(updates)


def _copied(base: Base) -> Base:
    """Another base with the same weights and adapters, without state of the trained one."""
    copied = Base(type(base.causal)(copy.deepcopy(base.causal.config)), base.compute)
    for name in base.adapters:
        copied._inject(name, copy.deepcopy(base.model.peft_config[name]))
        copied.adapters.append(name)
    with torch.no_grad():
        tensors = base.causal.state_dict()
        for name, tensor in copied.causal.state_dict().items():
            tensor.copy_(tensors[name])
    copied.model.eval()
    return copied.to(base.device)
