"""From settings to networks: which weights exist, which are shared, and who reads which.

Models with the same path, compute type and device that carry LoRA (or are not trained) stand on one
frozen base; a critic with LoRA on that path stands there too. The rest has weights of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from colearn.config import EACH, Config, CriticSettings, LoRASettings, ModelSettings
from colearn.contract import Critic, NetworkKey
from colearn.errors import ConfigError, nearest
from colearn.seeding import derive_seed

from .base import Base
from .load import load_base, resolve_device
from .network import Network, ValueHead


@dataclass(slots=True)
class TeamNetworks:
    """Every network of a run, by name."""

    actors: dict[str, Network] = field(default_factory=dict)
    """By physical model."""
    critics: dict[str, Network] = field(default_factory=dict)
    """By value model; empty where the value head sits on the actors."""
    past: dict[int, dict[str, Network]] = field(default_factory=dict)
    """By slot of the cast's pool: every trained model once more, to be what it was a while ago."""
    references: dict[str, Network] = field(default_factory=dict)
    """Copies of models trained in full, and adapters beside those that their reference follows;
    an adapter's first policy is the base with the adapter off."""


class TeamBuilder:
    """Loads each set of base weights once."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._frozen: dict[tuple[str, str, str], Base] = {}

    def build(
        self,
        critic: Critic | None,
        agents: Sequence[str],
        *,
        reference: bool,
        moving: bool = False,
        pool: int = 0,
    ) -> TeamNetworks:
        """`moving`: the reference policies follow, so that adapters need one more each; `pool`:
        slots for past selves.

        Errors: ConfigError for a missing model, or a critic that the settings do not give.
        """
        team = TeamNetworks()
        for name, model in self.config.models.items():
            team.actors[name] = self._actor(name, model)
            if reference and model.trained and (moving or model.lora is None):
                frozen = model.model_copy(update={"trained": False})
                team.references[name] = (
                    self._copy(NetworkKey("reference", name))
                    if moving
                    else self._actor(name, frozen)
                )
        trained = [name for name, model in self.config.models.items() if model.trained]
        team.past = {
            n: {m: self._copy(NetworkKey("past", m, n)) for m in trained} for n in range(pool)
        }
        if critic is not None:
            self._add_critics(team, critic, agents)
        return team

    def _actor(self, name: str, model: ModelSettings) -> Network:
        key = NetworkKey("actor", name)
        return self._network(key, model.path, model, trained=model.trained)

    def _copy(self, key: NetworkKey) -> Network:
        """A model as it is at first, whose weights (or adapter) nobody else has."""
        model = self.config.models[key.model]
        return self._network(key, model.path, model, trained=True)

    def _add_critics(self, team: TeamNetworks, critic: Critic, agents: Sequence[str]) -> None:
        settings = self.config.critic
        readers = critic.readers(agents)
        if settings is None:
            raise ConfigError(
                "critic: this algorithm trains a critic; add a critic section with path, or "
                "share: actor"
            )
        if settings.share is None:
            assert settings.path is not None
            for name in settings.readers:
                if name != EACH and name not in readers:
                    raise ConfigError(
                        f"critic.readers.{name}: this critic has no such reader; "
                        f"{nearest(name, readers)}"
                    )
            for model in dict.fromkeys(map(settings.value_model, readers)):
                key = NetworkKey("critic", model)
                network = self._network(key, settings.path, settings, trained=True, head=False)
                network.head = _head(network.base)
                team.critics[model] = network
            return
        if critic.on_actor is None:
            raise ConfigError(
                "critic.share: this critic needs a value model of its own; set critic.path"
            )
        for reader, valued in readers.items():
            if tuple(valued) != (reader,):
                raise ConfigError(
                    "critic.share: a central critic reads every agent's text and cannot sit on one "
                    "agent's model; give critic.path"
                )
            network = team.actors[self.config.agents[reader].model]
            if network.head is None:
                network.head = _head(network.base)

    def _network(
        self,
        key: NetworkKey,
        path: str,
        settings: ModelSettings | CriticSettings,
        *,
        trained: bool,
        head: bool = True,
    ) -> Network:
        source = f"{key.section}.path"
        if trained and settings.lora is None:
            return Network(self._load(path, settings, source, trained=True, head=head))
        shared = (path, settings.dtype, str(self._device(settings)))
        if shared not in self._frozen:
            self._frozen[shared] = self._load(path, settings, source, trained=False)
        base = self._frozen[shared]
        if not trained or settings.lora is None:
            return Network(base)
        try:
            self._adapt(base, key.adapter, settings.lora)
        except ConfigError as error:
            raise ConfigError(f"{key.section}.{error}") from None
        return Network(base, key.adapter)

    def _device(self, settings: ModelSettings | CriticSettings) -> torch.device:
        """Errors: ConfigError where this machine has no such device."""
        if settings.device is None:
            return resolve_device(self.config.run.device)
        critic = isinstance(settings, CriticSettings)
        return resolve_device(settings.device, "critic.device" if critic else "models.*.device")

    def _load(
        self,
        path: str,
        settings: ModelSettings | CriticSettings,
        source: str,
        *,
        trained: bool,
        head: bool = True,
    ) -> Base:
        return load_base(
            path,
            compute=settings.dtype,
            trained=trained,
            device=self._device(settings),
            field=source,
            head=head,
        )

    def _adapt(self, base: Base, adapter: str, lora: LoRASettings) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.config.run.seed, "adapter", adapter))
            base.add_adapter(adapter, lora)


def _head(base: Base) -> ValueHead:
    return ValueHead(base.config.get_text_config().hidden_size).to(base.device)
