"""Builds a run's networks on the meta device from their architectures alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from colearn.config import LoRASettings, ResolvedRun
from colearn.contract import NetworkKey
from colearn.models.base import Base
from colearn.models.build_networks import NetworkBuilder
from colearn.models.flex import too_large
from colearn.models.load import DTYPES
from colearn.models.logits import for_memory
from colearn.models.quantized import describe
from colearn.models.tree_attention import Carrier
from colearn.models.tree_mask import TreeMask

from .architecture import Architectures
from .machine import Machine


class DescribedBase(Base):
    """A base whose passes are rehearsed on the CPU, because this machine lacks the base's device.
    Small packed trees use a dense attention mask, as on every accelerator. Large packed trees
    compute attention block by block. This computation needs the same memory as FlexAttention: the
    result, and one number for each query."""

    memory = 0
    """Memory of the device in bytes; 0 if this machine has the device."""

    @property
    def logits_at_once(self) -> int:
        return for_memory(self.memory) if self.memory else super().logits_at_once

    def _masks(self, mask: Any, position_ids: Any, cache: Any) -> Any:
        if isinstance(mask, TreeMask) and too_large(mask) and mask.rows is not None:
            kinds = set(getattr(self.config, "layer_types", None) or ())
            blocks = Carrier.of(mask.rows)
            return dict.fromkeys(kinds, blocks) if len(kinds) > 1 else blocks
        if isinstance(mask, TreeMask):
            shape = (len(mask.pieces), 1, mask.width, mask.width)
            mask = torch.ones(shape, dtype=torch.bool, device=self.device)
        return super()._masks(mask, position_ids, cache)


class FakeNetworkBuilder(NetworkBuilder):
    """Shares bases as `NetworkBuilder` does, with weights on the meta device."""

    def __init__(
        self, run: ResolvedRun, architectures: Architectures, machine: Machine | None
    ) -> None:
        super().__init__(run)
        self.architectures = architectures
        self._machine = machine

    def _device(self, key: NetworkKey) -> torch.device:
        if self._machine is None:
            return super()._device(key)
        return torch.device(self._machine.device(*self.run.device(key)))

    def _load(self, key: NetworkKey, *, trained: bool, head: bool = True) -> Base:
        from transformers import AutoModelForCausalLM

        architecture = self.architectures.config(self.run.path(key), self.run.field(key))
        dtype = DTYPES[self.run.settings(key).dtype]
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(
                architecture, dtype=torch.float32 if trained else dtype
            )
        if not head:
            model.set_output_embeddings(nn.Identity())
        if not trained and self.run.settings(key).quantization is not None:
            describe(model)
        model.requires_grad_(trained)
        kind = Base if self._device(key).type == "cpu" else DescribedBase
        base = kind(model, dtype)
        if isinstance(base, DescribedBase) and self._machine is not None:
            base.memory = self._machine.memory
        return base

    def _adapt(self, base: Base, adapter: str, lora: LoRASettings) -> None:
        with torch.device("meta"):
            base.add_adapter(adapter, lora)
