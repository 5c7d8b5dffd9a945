"""Spreads a run's networks over the devices of a described machine."""

from __future__ import annotations

from collections.abc import Mapping

from colearn.config import ModelSettings, ResolvedRun
from colearn.contract import NetworkKey

from .run_estimate import Estimate

_Base = tuple[str | None, ...]
"""Identity of a frozen base that adapters share: its path, type and quantization."""


def spread(estimated: Estimate) -> dict[str, str]:
    """Compute a placement: starting with the largest network, place each network on the device with
    the fewest bytes so far. Networks that share a base are placed on the same device."""
    machine = estimated.machine
    assert machine is not None
    names = _names(estimated.run)
    units: dict[_Base | str, dict[str, int]] = {}
    for network in estimated.networks:
        name = names[network.key]
        unit = units.setdefault(_unit(estimated.run, network.key, name), {})
        size = network.weights + network.gradients + network.adam
        unit[name] = unit.get(name, 0) + size
    used = [0] * machine.count
    placement: dict[str, str] = {}
    for unit in sorted(units.values(), key=lambda unit: -sum(unit.values())):
        device = used.index(min(used))
        used[device] += sum(unit.values())
        placement |= dict.fromkeys(unit, f"cuda:{device}")
    return placement


def _names(run: ResolvedRun) -> Mapping[NetworkKey, str]:
    """Name of each network in a placement; reference policies and past selves have the name of
    their model."""
    critics = [key for key in run.networks if key.kind == "critic"]
    names = {key: key.model for key in run.networks}
    return names | {key: "critic" if len(critics) == 1 else str(key) for key in critics}


def _unit(run: ResolvedRun, key: NetworkKey, name: str) -> _Base | str:
    settings = run.settings(key)
    frozen = isinstance(settings, ModelSettings) and not settings.trained
    if settings.lora is None and not frozen:
        return name
    return run.stored(key)
