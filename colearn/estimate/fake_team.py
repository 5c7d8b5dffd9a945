"""Builds a run's networks on the meta device from their architectures alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from colearn.config import CriticSettings, LoRASettings, ModelSettings, ResolvedRun
from colearn.contract import NetworkKey
from colearn.models.base import Base
from colearn.models.load import DTYPES
from colearn.models.network import Network
from colearn.models.team import TeamBuilder

from .architecture import Architectures, NotHere
from .machine import Machine


class FakeTeamBuilder(TeamBuilder):
    """Shares bases as `TeamBuilder` does, with weights on the meta device.

    `missing` maps fields to models that were not found; a minimal model replaces each of them.
    """

    def __init__(
        self, run: ResolvedRun, architectures: Architectures, machine: Machine | None
    ) -> None:
        super().__init__(run)
        self.architectures = architectures
        self._machine = machine
        self.missing: dict[str, str] = {}
        self._stand_ins: set[Base] = set()

    def _network(
        self,
        key: NetworkKey,
        settings: ModelSettings | CriticSettings,
        *,
        trained: bool,
        head: bool = True,
    ) -> Network:
        network = super()._network(key, settings, trained=trained, head=head)
        if network.base in self._stand_ins:
            field = f"{key.section}.path"  # several fields may share a base
            self.missing[field] = str(NotHere(self.run.path(key), field))
        return network

    def _device(self, key: NetworkKey) -> torch.device:
        if self._machine is None:
            return super()._device(key)
        return torch.device(self._machine.device(*self.run.device(key)))

    def _load(self, key: NetworkKey, *, trained: bool, head: bool = True) -> Base:
        from transformers import AutoModelForCausalLM, LlamaConfig

        available = True
        try:
            architecture = self.architectures.config(self.run.path(key), f"{key.section}.path")
        except NotHere:
            available = False
            architecture = LlamaConfig(
                vocab_size=1,
                hidden_size=2,
                intermediate_size=1,
                num_hidden_layers=1,
                num_attention_heads=1,
                num_key_value_heads=1,
                bos_token_id=None,
                eos_token_id=None,
            )
        dtype = DTYPES[self.run.settings(key).dtype]
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(
                architecture, dtype=torch.float32 if trained else dtype
            )
        if not head:
            model.set_output_embeddings(nn.Identity())
        model.requires_grad_(trained)
        base = Base(model, dtype)
        if not available:
            self._stand_ins.add(base)
        return base

    def _adapt(self, base: Base, adapter: str, lora: LoRASettings) -> None:
        if base not in self._stand_ins:
            with torch.device("meta"):
                base.add_adapter(adapter, lora)
