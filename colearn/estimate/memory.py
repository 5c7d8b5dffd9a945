"""Lasting bytes of each network: weights, gradients, optimiser state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.config import ResolvedRun
from colearn.contract import Kept, NetworkKey
from colearn.models.load import resolve_device
from colearn.models.network import Network


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
    run: ResolvedRun,
    networks: Mapping[NetworkKey, Network],
    missing: Mapping[str, str],
    processes: int,
) -> tuple[NetworkMemory, ...]:
    """Errors: ConfigError for a DeepSpeed JSON that the learner would refuse."""
    seen: set[int] = set()
    found = []
    for key, network in networks.items():
        settings = run.learners.get(key)
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
            else run.learner.kept(trained, held, settings, processes=processes)
        )
        gone = missing.get(f"{key.section}.path")
        found.append(
            NetworkMemory(
                key=key,
                device=str(resolve_device(*run.device(key))),
                trained=0 if gone else trained,
                weights=0 if gone else bytes_.weights,
                gradients=0 if gone else bytes_.gradients,
                adam=0 if gone else bytes_.adam + bytes_.master,
                missing=gone,
            )
        )
    return tuple(found)


def _is_adapter(name: str) -> bool:
    return ".lora_" in name
