"""Lasting bytes of each network: weights, gradients, optimiser state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.config import Config, OptimizerSettings, build_part
from colearn.contract import Kept, LearnerKind, NetworkKey
from colearn.models.load import resolve_device
from colearn.models.network import Network
from colearn.models.team import TeamNetworks


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMemory:
    """One network's lasting bytes in one process."""

    key: NetworkKey
    device: str
    trained: int
    """Parameters that its learner steps."""
    weights: int
    """Of what it does not share with a network above it."""
    gradients: int
    adam: int
    """Both moments, and ZeRO's copy of the weights."""
    missing: str | None = None
    """Why nothing was counted, with the remedy."""


def count_networks(
    config: Config, team: TeamNetworks, missing: Mapping[str, str], processes: int
) -> tuple[NetworkMemory, ...]:
    """Errors: ConfigError for a DeepSpeed JSON that the learner would refuse."""
    kind_of_learner = build_part(LearnerKind, config.run.learner, "run.learner")
    seen: set[int] = set()
    found = []
    for key, network, settings in networks_of(config, team):
        weights = list(network.base.causal.named_parameters())
        trained = 0 if settings is None else sum(p.numel() for p in network.trained().values())
        others = {id(p): p for name, p in weights if not _is_adapter(name)}
        if id(network.base) in seen or (settings is not None and network.adapter is None):
            others = {}
        seen.add(id(network.base))
        held = sum(p.numel() * p.element_size() for p in others.values())
        if settings is None and network.adapter is not None:  # a follower has one of its own
            held += sum(p.numel() * p.element_size() for p in network.trained().values())
        bytes_ = (
            Kept(weights=held, gradients=0, adam=0)
            if settings is None
            else kind_of_learner.kept(trained, held, settings, processes=processes)
        )
        gone = missing.get(f"{key.section}.path")
        found.append(
            NetworkMemory(
                key=key,
                device=device_of(config, key),
                trained=0 if gone else trained,
                weights=0 if gone else bytes_.weights,
                gradients=0 if gone else bytes_.gradients,
                adam=0 if gone else bytes_.adam + bytes_.master,
                missing=gone,
            )
        )
    return tuple(found)


def networks_of(
    config: Config, team: TeamNetworks
) -> list[tuple[NetworkKey, Network, OptimizerSettings | None]]:
    """Key, network, and the learner's settings where it has one."""
    found: list[tuple[NetworkKey, Network, OptimizerSettings | None]] = []
    for name, network in team.actors.items():
        model = config.models[name]
        found.append((NetworkKey("actor", name), network, model if model.trained else None))
    found += [
        (NetworkKey("critic", name), network, config.critic)
        for name, network in team.critics.items()
    ]
    found += [
        (NetworkKey("reference", name), network, None) for name, network in team.references.items()
    ]
    found += [
        (NetworkKey("past", name, slot), network, None)
        for slot, models in team.past.items()
        for name, network in models.items()
    ]
    return found


def _is_adapter(name: str) -> bool:
    return ".lora_" in name


def device_of(config: Config, key: NetworkKey) -> str:
    if key.kind != "critic":
        chosen = config.models[key.model].device
    else:
        chosen = None if config.critic is None else config.critic.device
    return str(resolve_device(chosen or config.run.device))
