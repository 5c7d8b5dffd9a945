"""Proposes a placement on a described machine: each base model gets a device of its own, largest
first; a team that fits on one device gets a copy on every device instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colearn.config import load_config

from .run_estimate import Estimate, estimate


@dataclass(frozen=True, slots=True)
class Proposal:
    """A placement, and the estimate of the run with it."""

    estimate: Estimate
    placement: Mapping[str, str] = field(default_factory=dict)
    """Device of each model; empty if every process holds the whole team."""


def propose(estimated: Estimate) -> Proposal | None:
    """Propose a placement on several devices.

    Return None if no machine with several devices is described, the config names devices or
    processes, or a cluster places the models. Errors: as for `estimate`.
    """
    run, machine = estimated.run, estimated.machine
    if machine is None or estimated.workers or run.config.placement:
        return None
    if machine.count == 1 or estimated.processes > 1 or not run.algorithm.learns:
        return None
    config = estimated.given.model_dump(mode="json", exclude_unset=True)
    if not estimated.too_small:
        copies = estimate(
            load_config(config),
            processes=machine.count,
            machine=machine,
            rehearsed=estimated.rehearsed,
        )
        return Proposal(copies)
    placement = _spread(estimated, machine.count)
    changes: dict[str, Any] = {"placement": placement}
    placed = estimate(load_config(config, changes), machine=machine, rehearsed=estimated.rehearsed)
    return Proposal(placed, placement)


def _spread(estimated: Estimate, devices: int) -> dict[str, str]:
    """Place each network, largest first, on the device with the fewest bytes so far. Networks that
    share a base are placed on the same device."""
    critics = [network.key for network in estimated.networks if network.key.kind == "critic"]
    units: dict[int, dict[str, int]] = {}
    bases: dict[str, int] = {}
    for network in estimated.networks:
        name = network.key.model  # also of a reference policy and of past selves
        if network.key.kind == "critic":
            name = "critic" if len(critics) == 1 else str(network.key)
        unit = units.setdefault(bases.setdefault(name, network.base), {})
        size = network.weights + network.gradients + network.adam
        unit[name] = unit.get(name, 0) + size
    used = [0] * devices
    placement: dict[str, str] = {}
    for unit in sorted(units.values(), key=lambda unit: -sum(unit.values())):
        device = used.index(min(used))
        used[device] += sum(unit.values())
        placement |= dict.fromkeys(unit, f"cuda:{device}")
    return placement
