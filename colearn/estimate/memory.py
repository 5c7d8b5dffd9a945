"""Persistent bytes of each network: weights, gradients, optimiser state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from colearn.config import ResolvedRun
from colearn.contract import Kept, NetworkKey
from colearn.models.load import resolve_device
from colearn.models.network import Network

from .machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMemory:
    """Persistent bytes of one network in one process."""

    key: NetworkKey
    device: str
    trained: int
    """Number of trained parameters."""
    weights: int
    """Weights that it does not share with an earlier network."""
    gradients: int
    adam: int
    """Both moments, and ZeRO's copy of the weights."""
    missing: str | None = None
    """Why the network was not counted, with the remedy; None if it was."""


def count_networks(
    run: ResolvedRun,
    networks: Mapping[NetworkKey, Network],
    missing: Mapping[str, str],
    processes: int,
    machine: Machine | None,
) -> tuple[NetworkMemory, ...]:
    """Errors: ConfigError for a DeepSpeed JSON that the learner rejects."""
    resolve = resolve_device if machine is None else machine.device
    seen: set[int] = set()
    counted = []
    for key, network in networks.items():
        settings = run.learners.get(key)
        weights = list(network.base.causal.named_parameters())
        trained = 0 if settings is None else sum(p.numel() for p in network.trained().values())
        others = {id(p): p for name, p in weights if not _is_adapter(name)}
        if id(network.base) in seen or (settings is not None and network.adapter is None):
            others = {}
        seen.add(id(network.base))
        held = sum(p.numel() * p.element_size() for p in others.values())
        if settings is None and network.adapter is not None:  # a follower has its own adapter
            held += sum(p.numel() * p.element_size() for p in network.trained().values())
        bytes_ = (
            Kept(weights=held, gradients=0, adam=0)
            if settings is None
            else run.learner.kept(trained, held, settings, processes=processes)
        )
        gone = missing.get(f"{key.section}.path")
        counted.append(
            NetworkMemory(
                key=key,
                device=str(resolve(*run.device(key))),
                trained=0 if gone else trained,
                weights=0 if gone else bytes_.weights,
                gradients=0 if gone else bytes_.gradients,
                adam=0 if gone else bytes_.adam + bytes_.master,
                missing=gone,
            )
        )
    return tuple(counted)


def _is_adapter(name: str) -> bool:
    return ".lora_" in name
