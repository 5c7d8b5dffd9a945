"""Places a team on a described machine: each base model on a device, largest first, on the device
with the fewest bytes so far."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.config import ResolvedRun
from colearn.training.hosts.kinds import InProcess

from .machine import Machine
from .network_bytes import NetworkMemory


def place(
    run: ResolvedRun, networks: Sequence[NetworkMemory], machine: Machine, processes: int
) -> dict[str, str]:
    """Return the device of each model, as in the config section `placement`. Networks that share a
    base are placed on the same device.

    Return nothing to place if there is one device or one base model, if the config names devices,
    if each device has a process of its own, or if a cluster places the models.
    """
    chosen = run.config.placement or run.config.run.device not in ("auto", "cuda")
    if machine.count == 1 or processes > 1 or chosen or not isinstance(run.host, InProcess):
        return {}
    critics = [network.key for network in networks if network.key.kind == "critic"]
    units: dict[int, dict[str, int]] = {}
    bases: dict[str, int] = {}
    for network in networks:
        name = network.key.model  # also of a reference policy and of past selves
        if network.key.kind == "critic":
            name = "critic" if len(critics) == 1 else str(network.key)
        unit = units.setdefault(bases.setdefault(name, network.base), {})
        size = network.weights + network.gradients + network.adam
        unit[name] = unit.get(name, 0) + size
    if len(units) == 1:
        return {}
    used = [0] * machine.count
    placement: dict[str, str] = {}
    for unit in sorted(units.values(), key=lambda unit: -sum(unit.values())):
        device = used.index(min(used))
        used[device] += sum(unit.values())
        placement |= dict.fromkeys(unit, f"cuda:{device}")
    return placement
