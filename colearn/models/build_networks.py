"""Builds a run's networks from the run's settings and shares base weights among the networks.

Models that use LoRA or are not trained share one frozen base if their path, compute type,
quantization and device are the same. A critic with LoRA on the same path also shares this base. All
other models have separate weights.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import torch

from colearn.config import CriticSettings, LoRASettings, ModelSettings, ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import ConfigError

from .base import Base
from .load import load_base, resolve_device
from .network import Network, ValueHead
from .recomputation import checkpointed_layers


class NetworkBuilder:
    """Builds networks; loads each set of base weights once."""

    def __init__(self, run: ResolvedRun) -> None:
        self.run = run
        self._frozen: dict[tuple[str | None, ...], Base] = {}

    def build(self, keys: Collection[NetworkKey] | None = None) -> dict[NetworkKey, Network]:
        """Build the networks in `keys` (None: all networks of the run), in loading order.

        Errors: ConfigError for a missing model or device.
        """
        ordered = [key for key in self.run.networks if keys is None or key in keys]
        networks = {key: self.network(key) for key in ordered}
        if self.run.heads:
            for model in self.run.value_models.values():
                if NetworkKey("actor", model) in networks:
                    _add_head(networks[NetworkKey("actor", model)])
        return networks

    def network(self, key: NetworkKey) -> Network:
        """Build one network, on a shared frozen base if possible. Errors: as `build`."""
        settings = self.run.settings(key)
        if key.kind == "critic":
            network = self._network(key, settings, trained=True, head=False)
            _add_head(network)
            if isinstance(settings, CriticSettings) and settings.from_ is not None:
                assert network.head is not None, "just added"
                network.head.load(Path(self.run.path(key)), "critic.from")
            return network
        if key.kind == "actor":
            return self._network(key, settings, trained=key in self.run.learners)
        # a frozen copy has its own weights or adapter
        moves = key.kind == "past" or (key.kind == "reference" and self.run.moving)
        return self._network(key, settings, trained=moves)

    def _network(
        self,
        key: NetworkKey,
        settings: ModelSettings | CriticSettings,
        *,
        trained: bool,
        head: bool = True,
    ) -> Network:
        if trained and settings.lora is None:
            base = self._load(key, trained=True, head=head)
            return Network(base, checkpointing=self._checkpointing(key, base))
        shared = (*self.run.stored(key), str(self._device(key)))
        if shared not in self._frozen:
            self._frozen[shared] = self._load(key, trained=False)
        base = self._frozen[shared]
        if not trained or settings.lora is None:
            return Network(base)
        try:
            self._adapt(base, key.adapter, settings.lora)
            if not head:
                base.check_headless(key.adapter, "a critic")
        except ConfigError as error:
            raise ConfigError(f"{key.section}.{error}") from None
        return Network(base, key.adapter, checkpointing=self._checkpointing(key, base))

    def _checkpointing(self, key: NetworkKey, base: Base) -> bool:
        """Whether to use activation checkpointing. Errors: ConfigError if the setting is true and
        the architecture does not support activation checkpointing."""
        checkpointing = self.run.settings(key).checkpointing
        if checkpointing and not checkpointed_layers(base.causal):
            raise ConfigError(
                f"{key.section}.checkpointing: {type(base.causal).__name__} has no layers that "
                "transformers can checkpoint; leave it out"
            )
        return checkpointing

    def _device(self, key: NetworkKey) -> torch.device:
        """The network's device. Errors: ConfigError if the machine has no such device."""
        return resolve_device(*self.run.device(key))

    def _load(self, key: NetworkKey, *, trained: bool, head: bool = True) -> Base:
        return load_base(
            self.run.path(key),
            compute=self.run.settings(key).dtype,
            trained=trained,
            device=self._device(key),
            field=self.run.field(key),
            head=head,
            quantized=not trained and self.run.settings(key).quantization is not None,
        )

    def _adapt(self, base: Base, adapter: str, lora: LoRASettings) -> None:
        base.add_seeded_adapter(adapter, lora, self.run.config.run.seed)


def _add_head(network: Network) -> None:
    if network.head is None:
        width = network.base.config.hidden_size
        network.head = ValueHead(width).to(network.base.device)
