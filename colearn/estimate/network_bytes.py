"""Counts the persistent bytes of each network: weights, gradients and optimiser state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from colearn.config import CriticSettings, ResolvedRun
from colearn.contract import MemoryFootprint, NetworkKey
from colearn.models.load import resolve_device
from colearn.models.network import Network

from .machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMemory:
    """Persistent bytes of one network in one process."""

    key: NetworkKey
    device: str
    base: int
    """Index of the network's base model; networks that share a base stay on one device."""
    trained: int
    """Number of trained parameters."""
    kept: MemoryFootprint
    """The network's memory, excluding weights that the network shares with an earlier one."""

    @property
    def weights(self) -> int:
        return self.kept.weights

    @property
    def gradients(self) -> int:
        return self.kept.gradients

    @property
    def adam(self) -> int:
        """Bytes of Adam's two moments and of ZeRO's copy of the weights."""
        return self.kept.adam + self.kept.master

    @property
    def always(self) -> int:
        """Bytes that the network holds on its device in every phase."""
        return self.weights + self.adam + (self.gradients if self.kept.gradients_stay else 0)


_NOTHING = MemoryFootprint(weights=0, gradients=0, adam=0)


def count_networks(
    run: ResolvedRun,
    networks: Mapping[NetworkKey, Network],
    processes: int,
    machine: Machine | None,
) -> tuple[NetworkMemory, ...]:
    """Errors: ConfigError for a DeepSpeed JSON that the learner rejects."""
    resolve = resolve_device if machine is None else machine.device
    bases: dict[int, int] = {}
    counted = []
    for key, network in networks.items():
        settings = run.learners.get(key)
        weights = list(network.base.causal.named_parameters())
        trained = 0 if settings is None else sum(p.numel() for p in network.trained().values())
        base_weights = {id(p): p for name, p in weights if ".lora_" not in name}
        if id(network.base) in bases or (settings is not None and network.adapter is None):
            base_weights = {}
        base = bases.setdefault(id(network.base), len(bases))
        base_bytes = sum(p.numel() * p.element_size() for p in base_weights.values())
        if settings is None and network.adapter is not None:  # a frozen copy has its own adapter
            base_bytes += sum(p.numel() * p.element_size() for p in network.trained().values())
        footprint = (
            replace(_NOTHING, weights=base_bytes)
            if settings is None
            else replace(_NOTHING, weights=base_bytes + 4 * trained)  # nothing but a head is solved
            if isinstance(settings, CriticSettings) and settings.head == "ridge"
            else run.learner.kept(trained, base_bytes, settings, processes=processes)
        )
        counted.append(
            NetworkMemory(
                key=key,
                device=str(resolve(*run.device(key))),
                base=base,
                trained=trained,
                kept=footprint,
            )
        )
    return tuple(counted)
