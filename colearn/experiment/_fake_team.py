"""The networks of a run, from their architectures alone."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from colearn.config import Config, CriticSettings, ModelSettings
from colearn.models.base import Base
from colearn.models.load import DTYPES, resolve_device
from colearn.models.network import Network
from colearn.models.team import TeamBuilder

from ._architecture import Architectures, NotHere


class FakeTeamBuilder(TeamBuilder):
    """Shares bases as `TeamBuilder` does; weights are on the meta device.

    `missing` holds, by field, what could not be counted; a single weight stands in for it.
    """

    def __init__(self, config: Config, architectures: Architectures) -> None:
        super().__init__(config)
        self.architectures = architectures
        self.missing: dict[str, str] = {}
        self._stand_ins: dict[Base, str] = {}

    def _network(
        self,
        field_name: str,
        adapter: str,
        path: str,
        settings: ModelSettings | CriticSettings,
        *,
        trained: bool,
        head: bool = True,
    ) -> Network:
        field = f"{field_name}.path"
        device = str(resolve_device(settings.device or self.config.run.device))
        if trained and settings.lora is None:
            return Network(self._base(path, field, settings.dtype, trained=True, head=head))
        key = (path, settings.dtype, device)
        if key not in self._frozen:
            self._frozen[key] = self._base(path, field, settings.dtype, trained=False, head=True)
        base = self._frozen[key]
        if base in self._stand_ins:
            self.missing[field] = self._stand_ins[base]
        if not trained or settings.lora is None:
            return Network(base)
        if field not in self.missing:
            with torch.device("meta"):
                base.add_adapter(adapter, settings.lora)
        return Network(base, adapter)

    def _base(self, path: str, field: str, compute: str, *, trained: bool, head: bool) -> Base:
        from transformers import AutoModelForCausalLM, LlamaConfig

        gone: str | None = None
        try:
            found = self.architectures.config(path, field)
        except NotHere as reason:
            gone = self.missing[field] = str(reason)
            found = LlamaConfig(
                vocab_size=1,
                hidden_size=2,
                intermediate_size=1,
                num_hidden_layers=1,
                num_attention_heads=1,
                num_key_value_heads=1,
                bos_token_id=None,
                eos_token_id=None,
            )
        dtype = DTYPES[compute]
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(
                found, dtype=torch.float32 if trained else dtype
            )
        if not head:
            model.set_output_embeddings(nn.Identity())
        model.requires_grad_(trained)
        base = Base(model, dtype)
        if gone is not None:
            self._stand_ins[base] = gone
        return base
