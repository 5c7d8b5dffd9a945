"""Possible placements of a run's networks and engines on a described machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import floor
from typing import Any

from colearn.config import LearnerChoice, ModelSettings, ResolvedRun
from colearn.contract import NetworkKey
from colearn.errors import ConfigError
from colearn.generate.kinds import Transformers

from .proposal import Proposal
from .run_estimate import Estimate

_STAGES = {"zero2": "ZeRO 2", "zero3": "ZeRO 3", "zero3_offload": "ZeRO 3 with offload"}
_Base = tuple[str | None, ...]
"""Identity of a frozen base that adapters share: its path, type and quantization."""
_LEAST_CACHE = 1
"""Initial size in GiB of a vLLM engine's cache, before the cache receives the remaining memory."""
_FILLED = 0.9
"""Fraction of a device that engines may fill, since fragmentation is not counted."""


def layouts(estimated: Estimate) -> Iterator[Proposal]:
    """Yield the possible layouts of a run: first the layouts with a full optimiser state in every
    process, then the layouts that partition the optimiser state, in increasing degree of
    partitioning. If the config names devices or a learner, all layouts keep them."""
    run, machine, processes = estimated.run, estimated.machine, estimated.processes
    assert machine is not None
    start = Proposal({}, estimated)
    named = any(run.settings(key).device is not None for key in run.networks) or (
        run.config.critic is not None and bool(run.config.critic.devices)
    )
    if named or machine.count == 1 or processes > 1:
        yield start
    else:
        placed = start.changed({"placement": _spread(estimated)})
        yield replace(placed, layout="one process, a device for each base")
    if named or not run.algorithm.learns or run.config.run.learner != LearnerChoice():
        return
    process_count = max(processes, machine.count)
    if process_count > 1 and processes == 1 and estimated.seconds is not None:
        equal = start.changed({}, processes=process_count)
        yield replace(equal, layout=f"{process_count} equal processes")
    for stage, name in _STAGES.items():
        if process_count > 1 or stage == "zero3_offload":
            learner = {"name": "deepspeed", "config": stage}
            divided = start.changed({"run.learner": learner}, processes=process_count)
            yield replace(divided, layout=f"{process_count} processes, {name}")


def with_engines(layout: Proposal, share: float) -> Proposal | None:
    """Return the layout with vLLM engines. The caches of the engines take the fraction `share` of a
    device, but at least 1 GiB each.

    None if the layout already has vLLM engines, the time is not known, or the run cannot use vLLM
    engines.
    """
    estimate, machine = layout.estimate, layout.estimate.machine
    decodes = estimate.run.generator
    if estimate.seconds is None or machine is None or not isinstance(decodes, Transformers):
        return None
    if decodes.copies:
        return None
    try:
        proposal = _cached(layout, _LEAST_CACHE)
    except ConfigError:  # such as a base in 4 bits
        return None
    engines = max(proposal.estimate.engines.values(), default=1)
    gib = min(_useful(proposal), floor(share * machine.memory / engines / 2**30))
    return proposal if gib <= _LEAST_CACHE else _cached(proposal, gib)


def larger_caches(proposal: Proposal) -> Proposal:
    """Return the proposal with larger vLLM caches: each cache fills the memory that other phases
    leave free on the device."""
    estimate, changed = proposal.estimate, proposal.changes.get("run.generator")
    if changed is None or not proposal.fits or not estimate.engines:
        return proposal
    spare_gib = min(
        (_FILLED * (estimate.capacity(device) or 0) - estimate.peak(device)) / count / 2**30
        for device, count in estimate.engines.items()
    )
    gib = min(_useful(proposal), changed["cache_gib"] + floor(spare_gib))
    return proposal if gib <= changed["cache_gib"] else _cached(proposal, gib)


def _cached(layout: Proposal, gib: int) -> Proposal:
    generator: dict[str, Any] = {"name": "vllm", "cache_gib": gib}
    return layout.changed({"run.generator": generator})


def _useful(proposal: Proposal) -> int:
    """Size in GiB of a KV cache that is large enough for all rows of any turn."""
    return -(-proposal.estimate.wanted // 2**30)


def _spread(estimated: Estimate) -> dict[str, str]:
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
