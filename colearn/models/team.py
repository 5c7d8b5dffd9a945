"""From settings to networks: which weights exist, which are shared, and who reads which.

Models with the same path, compute type and device that carry LoRA (or are not trained) stand on one
frozen base; a critic with LoRA on that path stands there too. The rest has weights of its own.
"""

from __future__ import annotations

import torch

from colearn.config import CriticSettings, LoRASettings, ModelSettings, ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.seeding import derive_seed

from .base import Base
from .load import load_base, resolve_device
from .network import Network
from .value_head import ValueHead


class TeamBuilder:
    """Loads each set of base weights once."""

    def __init__(self, run: ResolvedRun) -> None:
        self.run = run
        self._frozen: dict[tuple[str, str, str], Base] = {}

    def build(self) -> dict[NetworkKey, Network]:
        """Every network of the run.

        Errors: ConfigError for a missing model or device.
        """
        networks = {key: self.network(key) for key in self.run.networks}
        if self.run.heads:
            for model in self.run.value_models.values():
                _add_head(networks[NetworkKey("actor", model)])
        return networks

    def network(self, key: NetworkKey) -> Network:
        """One network; those on one frozen base share it. Errors: as `build`."""
        settings = self.run.settings(key)
        if key.kind == "critic":
            network = self._network(key, settings, trained=True, head=False)
            _add_head(network)
            return network
        if key.kind == "actor":
            return self._network(key, settings, trained=key in self.run.learners)
        # what follows a model has weights (or an adapter) that nobody else has
        return self._network(key, settings, trained=key.kind == "past" or self.run.moving)

    def _network(
        self,
        key: NetworkKey,
        settings: ModelSettings | CriticSettings,
        *,
        trained: bool,
        head: bool = True,
    ) -> Network:
        if trained and settings.lora is None:
            return Network(self._load(key, trained=True, head=head))
        shared = (self.run.path(key), settings.dtype, str(self._device(key)))
        if shared not in self._frozen:
            self._frozen[shared] = self._load(key, trained=False)
        base = self._frozen[shared]
        if not trained or settings.lora is None:
            return Network(base)
        try:
            self._adapt(base, key.adapter, settings.lora)
        except ConfigError as error:
            raise ConfigError(f"{key.section}.{error}") from None
        return Network(base, key.adapter)

    def _device(self, key: NetworkKey) -> torch.device:
        """Errors: ConfigError where this machine has no such device."""
        return resolve_device(*self.run.device(key))

    def _load(self, key: NetworkKey, *, trained: bool, head: bool = True) -> Base:
        base = load_base(
            self.run.path(key),
            compute=self.run.settings(key).dtype,
            trained=trained,
            device=self._device(key),
            field=f"{key.section}.path",
            head=head,
        )
        self.run.learner.shard(base)
        return base

    def _adapt(self, base: Base, adapter: str, lora: LoRASettings) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.run.config.run.seed, "adapter", adapter))
            base.add_adapter(adapter, lora)


def _add_head(network: Network) -> None:
    if network.head is None:
        width = network.base.config.get_text_config().hidden_size
        network.head = ValueHead(width).to(network.base.device)
