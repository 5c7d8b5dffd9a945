"""Computes the peak number of bytes of one process on each device in each phase of an iteration,
and rehearses the passes on which its time depends."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from colearn.config import ResolvedRun
from colearn.contract import NetworkKey
from colearn.models.network import Network
from colearn.rollout.agents import AgentSpec

from .episodes import Rehearsed
from .learning import UpdatePass, Work, padded, rehearse_update
from .ledger import make_fake, rehearsal
from .machine import Machine
from .network_bytes import NetworkMemory
from .speaking import (
    CallPass,
    GeneratorCall,
    PlacedEngine,
    cache_bytes,
    place_engine,
    plan_calls,
    rehearse_call,
)

FIXED_BYTES = 420_000_000
"""Bytes resident in any run on a CPU: the interpreter, torch, transformers and peft. Measured after
a run's imports and one AdamW step."""


@dataclass(slots=True)
class Passes:
    """Rehearsed passes. The keys contain the settings that determine their memory."""

    calls: dict[Hashable, CallPass] = field(default_factory=dict)
    updates: dict[Hashable, UpdatePass] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Speaking:
    """The generator calls of an engine in a phase."""

    engine: PlacedEngine
    calls: Sequence[GeneratorCall]
    first: CallPass
    last: CallPass


class Phases:
    """Peak memory of one process on each device in each phase of a run."""

    def __init__(
        self,
        run: ResolvedRun,
        networks: Mapping[NetworkKey, Network],
        memory: Sequence[NetworkMemory],
        specs: Mapping[str, AgentSpec],
        *,
        resident: int,
        rehearsed: Passes,
        machine: Machine | None = None,
    ) -> None:
        """rehearsed: passes of an earlier estimate of the same models; new ones are added.
        machine: the machine on which the run will take place; None for this machine."""
        self.run, self.networks = run, networks
        self.memory = {network.key: network for network in memory}
        self.rehearsed = rehearsed
        self.engines = self._engines(specs, machine)
        self.speaking: dict[str, list[Speaking]] = {}
        """The generator calls of each engine. The key is the phase."""
        self.updates: dict[NetworkKey, tuple[UpdatePass, Work]] = {}
        """A rehearsed micro-batch of each learner."""
        self.static = {network.device: 0 for network in memory} | {"cpu": FIXED_BYTES + resident}
        self.peaks: dict[str, dict[str, int]] = {device: {} for device in self.static}
        self.caches: dict[str, int] = dict.fromkeys(self.static, 0)
        """Peak bytes of the KV caches on each device."""
        for network in memory:
            self.static[network.device] += network.always
            self.static["cpu"] += network.kept.offloaded
        for engine in self.engines:
            self.static[engine.device] += engine.held
            self.caches[engine.device] += 0 if engine.needs is None else engine.needs.cache

    @property
    def rehearses(self) -> bool:
        """Whether all answers are decoded by this library's own engine."""
        return all(engine.needs is None for engine in self.engines)

    def _note(self, device: str, phase: str, extra: int) -> None:
        phases = self.peaks[device]
        phases[phase] = max(phases.get(phase, 0), self.static[device] + extra)

    def add_play(self, phase: str, played: Sequence[Rehearsed], episodes: int) -> None:
        """Add the memory of a rollout or an evaluation of `episodes` concurrent episodes: the
        caches of two consecutive turns, and the peak of one generator call."""
        caches = dict.fromkeys(self.static, 0)
        calls_of = dict.fromkeys(self.static, 0)
        for engine in self.engines:
            device, calls = engine.device, plan_calls(engine.speakers, played, episodes)
            if not calls:  # these agents act in none of the items that were read
                continue
            self._note(device, phase, 0)
            if engine.needs is not None:  # its memory is held in every phase
                continue
            call_bytes = [0, *(cache_bytes(engine.base, call) for call in calls)]
            turns = [earlier + later for earlier, later in itertools.pairwise(call_bytes)]
            caches[device] += max(turns)
            # the widest call is the last one or, where the prompt is long, the first
            first, last = (self._call(engine, calls[number]) for number in (0, -1))
            for number, one in ((0, first), (len(calls) - 1, last)):
                needed = call_bytes[number] + one.peak
                calls_of[device] = max(calls_of[device], needed - turns[number])
            self.speaking.setdefault(phase, []).append(Speaking(engine, calls, first, last))
        for device, size in caches.items():
            self.caches[device] = max(self.caches[device], size)
            if phase in self.peaks[device]:
                self._note(device, phase, size + calls_of[device])

    def add_updates(self, works: Mapping[NetworkKey, Work], *, entropy: bool) -> None:
        """Add the memory of the update: the gradients and optimiser steps of the critics and of the
        actors."""
        needed = self._passes(works, entropy)
        for kind in ("critic", "actor"):
            for key in works:
                if key.kind == kind:
                    network = self.memory[key]
                    at, footprint = network.device, network.kept
                    divided = (
                        0 if footprint.updating is None else footprint.updating - footprint.weights
                    )
                    joint = self._joint_gradients(key, works)
                    self._note(at, f"{kind} update", needed[key] + divided + joint)
        for key in works:
            network = self.memory[key]
            footprint = network.kept
            gradients = 0 if footprint.gradients_stay else footprint.gradients
            gradients += self._joint_gradients(key, works)
            self._note(network.device, "optimizer step", gradients + footprint.step)
            # weights, then both moments are cloned before they are written
            self._note("cpu", "checkpoint", 8 * network.trained)

    def _joint_gradients(self, key: NetworkKey, works: Mapping[NetworkKey, Work]) -> int:
        """Bytes of the gradients of the other learners with joint passes, which have one `Work`."""
        return sum(self.memory[one].kept.gradients for one in _joint(key, works) if one != key)

    def _engines(
        self, specs: Mapping[str, AgentSpec], machine: Machine | None
    ) -> list[PlacedEngine]:
        """The engines of the agents: one per base, or one per agent."""
        groups: dict[object, dict[str, AgentSpec]] = {}
        keys: dict[object, NetworkKey] = {}
        for agent, spec in specs.items():
            key = NetworkKey("actor", self.run.config.language_agents[agent].model)
            network = self.networks[key]
            group = agent if self.run.generator.apart else id(network.base)
            keys.setdefault(group, key)
            groups.setdefault(group, {})[agent] = replace(spec, adapter=network.adapter)
        return [
            place_engine(
                self.run, key, self.networks[key].base, self.memory[key].device, speakers, machine
            )
            for key, speakers in zip(keys.values(), groups.values(), strict=True)
        ]

    def _call(self, engine: PlacedEngine, call: GeneratorCall) -> CallPass:
        device = _rehearsal_device(engine.device)
        settings = {
            agent: (spec.adapter, spec.sampling.top_p, spec.sampling.top_k)
            for agent, spec in engine.speakers.items()
        }
        rows = str([[settings[agent] for agent in agents] for agents in (call.requests, call.rows)])
        sizes = call.width, call.used, call.capacity, call.reserve
        key = (engine.device == "cpu", device, self._kind(engine.key), rows, *sizes)
        if key not in self.rehearsed.calls:
            with rehearsal() as ledger:
                make_fake(self.networks[engine.key], device)
                self.rehearsed.calls[key] = rehearse_call(ledger, engine, call)
        return self.rehearsed.calls[key]

    def _passes(self, works: Mapping[NetworkKey, Work], entropy: bool) -> dict[NetworkKey, int]:
        """Bytes of each learner's largest micro-batch. Networks with equal settings are rehearsed
        once, with the largest of their batches."""
        kinds: dict[tuple[str, torch.device], list[NetworkKey]] = {}
        for key in works:
            kind = self._kind(key), _rehearsal_device(self.memory[key].device)
            kinds.setdefault(kind, []).append(key)
        peaks: dict[NetworkKey, int] = {}
        for alike in kinds.values():
            largest = max(alike, key=lambda key: padded(works[key].largest))
            one = self._update(largest, works, entropy)
            self.updates |= dict.fromkeys(alike, (one, works[largest]))
            footprint = self.memory[largest].kept
            divided = not (self._keeps_gradients(largest) or footprint.gradients_stay)
            peaks |= dict.fromkeys(alike, one.peak + divided * footprint.gradients)
        return peaks

    def _keeps_gradients(self, key: NetworkKey) -> bool:
        memory = self.memory[key]
        return memory.kept.gradients == 4 * memory.trained

    def _update(
        self, key: NetworkKey, works: Mapping[NetworkKey, Work], entropy: bool
    ) -> UpdatePass:
        work, keep_gradients = works[key], self._keeps_gradients(key)
        # rows of a critic among those of actors need its value head
        joint = [self.networks[one] for one in (key, *_joint(key, works))]
        network = max(joint, key=lambda one: one.head is not None)
        device = _rehearsal_device(self.memory[key].device)
        entropy = entropy and key.kind == "actor"
        passes = (device, self._kind(key), entropy, keep_gradients, work.largest, work.several)
        if passes not in self.rehearsed.updates:
            with rehearsal() as ledger:
                make_fake(network, device)
                self.rehearsed.updates[passes] = rehearse_update(
                    ledger, network, work, keep_gradients=keep_gradients, entropy=entropy
                )
        return self.rehearsed.updates[passes]

    def _kind(self, key: NetworkKey) -> str:
        """Key of all settings, except the device, that determine a network's memory."""
        chosen = self.run.settings(key).model_dump(
            mode="json",
            include={"path", "dtype", "lora", "quantization", "trained", "checkpointing"},
        )
        return json.dumps([key.kind, chosen])


def _joint(key: NetworkKey, works: Mapping[NetworkKey, Work]) -> list[NetworkKey]:
    """The learner and those with which it has joint passes, which have one `Work`."""
    return [one for one, work in works.items() if work is works[key]]


def _rehearsal_device(name: str) -> torch.device:
    """Return the named device if this machine has such a kind of device, else the CPU."""
    device = torch.device(name)
    accelerator = (
        torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    )
    return (
        device
        if accelerator is not None and accelerator.type == device.type
        else torch.device("cpu")
    )
