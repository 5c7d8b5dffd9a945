"""Estimates memory per device, tokens and time per iteration, before any weight is loaded.

Weights, gradients, optimiser state and caches are counted from the architecture. Activations are
measured by running the run's own code on fake tensors. The estimate assumes that every action has
maximum length and that no episode ends early.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

import torch

from colearn.config import Config, ResolvedRun, resolve
from colearn.contract import NetworkKey
from colearn.methods.values.given import with_given_critic
from colearn.models.load import resolve_device
from colearn.rollout.shapes import Chain
from colearn.text.budget import large_iteration
from colearn.training.evaluation.checked import check_evaluation

from .architecture import Architectures, read_specs
from .duration import Seconds, Speeds, learned, spoken
from .episodes import Rehearsed, rehearse
from .fake_team import FakeNetworkBuilder
from .lengths import check_lengths, overflows
from .machine import Machine
from .network_bytes import NetworkMemory, count_networks
from .phases import Passes, Phases
from .placement import place
from .script import probed_items, read_scripts
from .speed import device_name, known_speeds
from .work import Totals, Updates, plan_updates
from .workload import Workload, read_workload


@dataclass(frozen=True, slots=True)
class IterationBounds:
    """Upper bounds for the work of one iteration."""

    episodes: int
    generations: int
    joint_actions: int
    new_tokens: int
    prompt_tokens: int
    """Number of prefilled observation tokens, counted once per history. The bound is based on the
    items that were read."""
    updates: Mapping[NetworkKey, Totals]
    """Work of each learner."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory and work of a resolved run that has not started."""

    run: ResolvedRun
    machine: Machine | None
    """The machine on which the run will take place; None means this machine."""
    placement: Mapping[str, str]
    """Device of each model that the estimate placed on `machine`; empty if the config places them
    or one device holds them."""
    networks: tuple[NetworkMemory, ...]
    steps: IterationBounds | None
    """Bounds of one iteration; None if nothing is learned."""
    notes: Mapping[str, str]
    """Assumptions made because files are missing on this machine, and possible problems of the run.
    The keys are config fields."""
    phases: Mapping[str, Mapping[str, int]]
    """Peak bytes of one process on each device in each phase."""
    caches: Mapping[str, int]
    """Peak bytes of the KV caches in one process on each device."""
    seconds: Seconds | None
    """None if nothing is learned, the run is for another machine, a device was not measured, or a
    generator decodes elsewhere."""
    place: Phases = field(repr=False, compare=False)
    """The passes and phases of one process."""

    @property
    def iterations(self) -> int:
        """Number of iterations of the run if no episode ends early; 0 if nothing is learned."""
        if self.steps is None or not self.steps.joint_actions:
            return 0
        train = self.run.config.train
        iterations = -(-train.environment_steps // self.steps.joint_actions)
        return iterations if train.iterations is None else min(iterations, train.iterations)

    @property
    def hours(self) -> float | None:
        """Hours that the whole run takes, including evaluations; None if the time is not known."""
        if self.seconds is None:
            return None
        evaluations = 1 + -(-self.iterations // self.run.config.evaluation.every)
        seconds = self.iterations * (self.seconds.rollout + self.seconds.update)
        return (seconds + evaluations * self.seconds.evaluation) / 3600

    def peak(self, device: str) -> int:
        """Highest peak of any phase in bytes."""
        return max(self.phases[device].values())

    def capacity(self, device: str) -> int | None:
        """Bytes that tensors can use on a device of `machine`; None for a CPU."""
        return None if self.machine is None or device == "cpu" else self.machine.memory

    @property
    def too_small(self) -> tuple[str, ...]:
        """Devices of `machine` with less memory than the highest peak."""
        capacities = {device: self.capacity(device) for device in self.phases}
        return tuple(
            device
            for device, capacity in capacities.items()
            if capacity is not None and self.peak(device) > capacity
        )


def estimate(
    config: Config,
    *,
    processes: int = 1,
    machine: Machine | None = None,
    rehearsed: Passes | None = None,
) -> Estimate:
    """Resolve a run and estimate what each of its `processes` processes needs.

    machine: the machine on which the run will take place, by default this one.
    rehearsed: passes of earlier estimates of the same models, which are not rehearsed again; new
    ones are added.

    Nothing is written and no weight is read. Errors: ConfigError or TaskError, as in the run.
    """
    given = with_given_critic(config)
    work = read_workload(given)
    with closing(work.task):
        return _estimate(given, work, processes, machine, rehearsed or Passes())


def _estimate(
    given: Config,
    work: Workload,
    processes: int,
    machine: Machine | None,
    rehearsed: Passes,
    placement: Mapping[str, str] = {},
) -> Estimate:
    """placement: devices that are not the config's own, but follow from `machine`."""
    auto = resolve_device("auto").type if machine is None else "cuda"
    run = resolve(given, task=work.task, auto=auto)
    check_evaluation(run)
    config, learns = run.config, run.algorithm.learns
    architectures = Architectures(work.task, given)
    networks = FakeNetworkBuilder(run, architectures, machine).build()
    memory = count_networks(run, networks, processes, machine)
    if machine is not None and (found := place(run, memory, machine, processes)):
        placed = given.model_copy(update={"placement": found})
        return _estimate(placed, work, processes, machine, rehearsed, found)
    probes = probed_items(work.task, work.train)
    scripts = read_scripts(work.task, probes)
    specs = read_specs(run, architectures)
    check_lengths(work.task, probes, scripts, specs)
    shape = run.parts.rollout if learns else Chain()
    rolled = [rehearse(script, shape, specs) for script in scripts]
    updates = None
    if learns:
        played = (rolled[number % len(rolled)] for number in range(config.train.episodes))
        trees = [tree for episode in played for tree in episode.trees]
        updates = plan_updates(run, trees, architectures)
    held_out = read_scripts(work.task, probed_items(work.task, work.held_out))
    evaluated = [rehearse(script, Chain(), specs) for script in held_out]

    evaluations = config.evaluation.repeats * (config.evaluation.episodes or len(work.held_out))
    waves = {"evaluation": _waves(evaluations, processes, config.evaluation.at_once)}
    if updates is not None:
        waves["rollout"] = _waves(config.train.episodes, processes, config.train.at_once)

    phases = Phases(
        run,
        networks,
        memory,
        specs,
        resident=architectures.tokenizer_bytes(run),
        rehearsed=rehearsed,
        machine=machine,
    )
    phases.add_play("evaluation", evaluated, waves["evaluation"].episodes)
    if updates is not None:
        phases.add_play("rollout", rolled, waves["rollout"].episodes)
        phases.add_updates(updates.works, entropy=run.parts.loss.needs_entropy)
    speeds = None
    if machine is None and phases.rehearses:
        types = defaultdict[str, set[str]](set)
        for network in memory:
            types[network.device].add(networks[network.key].base.compute_name)
        speeds = _speeds(types)
    used = [device for device, peaks in phases.peaks.items() if peaks]
    steps = None if updates is None else _steps(config, rolled, updates)
    limits = {name: settings.overflow for name, settings in config.language_agents.items()}
    notes = {**work.notes, **architectures.assumed, **overflows(rolled, specs, limits)}
    if steps is not None:
        line = large_iteration(steps.joint_actions, config.train.environment_steps)
        notes |= {} if line is None else {"train.environment_steps": line}
    return Estimate(
        run=run,
        machine=machine,
        placement=placement,
        networks=memory,
        steps=steps,
        notes=notes,
        phases={device: phases.peaks[device] for device in used},
        caches={device: phases.caches[device] for device in used},
        seconds=None
        if updates is None or speeds is None
        else _seconds(phases, updates, waves, processes, speeds),
        place=phases,
    )


def _speeds(types: Mapping[str, Collection[str]]) -> Speeds | None:
    """The speed of each device; None if one of them was not measured in one of its `types`."""
    known = known_speeds()
    speeds = {device: known.devices.get(device_name(torch.device(device))) for device in types}
    found = {
        device: speed
        for device, speed in speeds.items()
        if speed is not None and speed.products.keys() >= set(types[device])
    }
    return found if len(found) == len(speeds) else None


class _Waves(NamedTuple):
    """Consecutive groups in which one process plays its episodes."""

    episodes: int
    """Number of episodes that are played together."""
    number: int


def _waves(episodes: int, processes: int, limit: int | None) -> _Waves:
    share = ceil(episodes / processes)
    together = share if limit is None else min(share, limit)
    return _Waves(together, ceil(share / together))


def _seconds(
    phases: Phases,
    updates: Updates,
    waves: Mapping[str, _Waves],
    processes: int,
    speeds: Speeds,
) -> Seconds:
    played = {phase: wave.number * spoken(phases, phase, speeds) for phase, wave in waves.items()}
    update = learned(phases, updates.totals, speeds, processes)
    return Seconds(rollout=played["rollout"], update=update, evaluation=played["evaluation"])


def _steps(config: Config, rolled: Sequence[Rehearsed], updates: Updates) -> IterationBounds:
    """Sums over an iteration's episodes, each of which is as long as the mean of those in
    `rolled`."""
    episodes = config.train.episodes

    def total(counts: Iterable[int]) -> int:
        return episodes * sum(counts) // len(rolled)

    return IterationBounds(
        episodes=episodes,
        generations=total(episode.counts.generations for episode in rolled),
        joint_actions=total(episode.counts.joint_actions for episode in rolled),
        new_tokens=total(episode.counts.tokens for episode in rolled),
        prompt_tokens=total(episode.observed_tokens() for episode in rolled),
        updates=updates.totals,
    )
