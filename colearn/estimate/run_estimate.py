"""Estimates memory per device, tokens and time per iteration, before any weight is loaded.

Weights, gradients, optimiser state and caches are counted from the architecture. Activations are
measured by running the run's own code on fake tensors. The estimate assumes that every action has
maximum length and that no episode ends early.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import ceil

from colearn.config import Config, ResolvedRun, resolve
from colearn.contract import HostWorker, NetworkKey
from colearn.methods.values.given import with_given_critic
from colearn.models.load import resolve_device
from colearn.rollout.agents import AgentSpec
from colearn.rollout.shapes import Chain
from colearn.text.budget import exceeds, large_iteration
from colearn.training.evaluation.checked import check_evaluation

from .architecture import read_specs
from .duration import Clock, Seconds
from .fake_team import FakeTeamBuilder
from .machine import Machine
from .network_bytes import NetworkMemory, count_networks
from .phases import PhasePlay, Phases, Rehearsed
from .script import Script, check_lengths, overflows, rehearse
from .work import Updates
from .workload import read_workload


@dataclass(frozen=True, slots=True)
class IterationBounds:
    """Upper bounds for the work of one iteration; None without the tokenizer on this machine."""

    episodes: int
    generations: int
    joint_actions: int
    new_tokens: int
    prompt_tokens: int | None
    """Number of prefilled observation tokens, counted once per history. The bound is based on the
    items that were read."""
    padded_tokens: Mapping[NetworkKey, int] | None
    """Number of padded tokens that each learner processes, over all epochs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory and work of a resolved run that has not started."""

    given: Config = field(repr=False)
    """The config before it was resolved."""
    run: ResolvedRun
    steps: IterationBounds | None
    """Bounds of one iteration; None if nothing is learned."""
    networks: tuple[NetworkMemory, ...]
    phases: Mapping[str, Mapping[str, int]] | None
    """Peak bytes of one process on each device in each phase; None if a model is missing."""
    caches: Mapping[str, int] | None
    """Peak bytes of the KV caches in one process on each device."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """The reason and the remedy for each config field that could not be estimated."""
    assumed: Mapping[str, str] = field(default_factory=dict)
    """Assumptions made because files are missing on this machine. The keys are config fields."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Possible problems of the run. The keys are config fields."""
    machine: Machine | None = None
    """The machine on which the run will take place; None means this machine."""
    processes: int = 1
    together: Mapping[str, int] = field(default_factory=dict)
    """Number of episodes that one process plays concurrently in each phase."""
    resident: Mapping[str, int] = field(default_factory=dict)
    """Number of bytes that are held in every phase on each device."""
    workers: Mapping[HostWorker, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Peak bytes of each worker of `run.host` by device and phase; empty without workers."""
    rehearsed: Rehearsed = field(default_factory=dict, repr=False, compare=False)
    updates: Updates | None = field(default=None, repr=False)
    """Planned updates of an iteration; None if nothing is learned or a tokenizer is missing."""
    seconds: Seconds | None = None
    """Seconds of each phase; None if nothing is learned or the devices' rates are not known."""

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
        seconds = self.iterations * self.seconds.iteration + evaluations * self.seconds.evaluation
        return seconds / 3600

    def peak(self, device: str) -> int:
        """Highest peak of any phase in bytes. Errors: ValueError if a model was not counted."""
        if self.phases is None:
            raise ValueError("no peak: " + "; ".join(self.missing.values()))
        return max(self.phases[device].values())

    def capacity(self, device: str) -> int | None:
        """Memory of a device of `machine` in bytes; None if the description of the machine does not
        state it."""
        return None if self.machine is None or device == "cpu" else self.machine.memory

    @property
    def too_small(self) -> tuple[str, ...]:
        """Devices of `machine` with less memory than the highest peak."""
        return tuple(
            device
            for device in self.phases or ()
            if (capacity := self.capacity(device)) is not None and self.peak(device) > capacity
        )


def estimate(
    config: Config,
    *,
    processes: int = 1,
    machine: Machine | None = None,
    rehearsed: Rehearsed | None = None,
) -> Estimate:
    """Resolve a run and estimate what each of its `processes` processes needs.

    machine: the machine on which the run will take place, by default this one.
    rehearsed: `Estimate.rehearsed` of an earlier estimate of the same models; the passes that it
    contains are not rehearsed again.

    Nothing is written and no weight is read. Errors: ConfigError or TaskError, as in the run.
    """
    config = with_given_critic(config)
    original, work = config, read_workload(config)
    with closing(work.task):
        auto = resolve_device("auto").type if machine is None else "cuda"
        run = resolve(config, task=work.task, auto=auto)
        check_evaluation(run)
        config, parts = run.config, run.parts
        architectures = work.architectures
        builder = FakeTeamBuilder(run, architectures, machine)
        networks = builder.build()

        scripts = work.scripts
        placed = run.host.workers(run)
        sharing = placed[0].processes if placed else processes
        memory = count_networks(run, networks, builder.missing, sharing, machine)
        specs, warnings = read_specs(run, architectures), {}
        if specs is not None:
            check_lengths(work.task, work.train, scripts, specs)
            warnings = overflows(
                scripts,
                specs,
                {name: settings.overflow for name, settings in config.language_agents.items()},
            )
        updates = None
        if specs is not None and run.algorithm.learns:
            work.grow(run, specs)
            updates = work.updates(run)
        rehearsed = {} if rehearsed is None else rehearsed
        played = config.evaluation.repeats * (config.evaluation.episodes or len(work.held_out))
        together = {"evaluation": _at_once(played, processes, config.evaluation.at_once)}
        plays = {"evaluation": PhasePlay(work.held_out_scripts, Chain(), together["evaluation"])}
        waves = {"evaluation": _waves(played, processes, together["evaluation"])}
        if updates is not None:
            rolled = _at_once(config.train.episodes, processes, config.train.at_once)
            together["rollout"] = rolled
            waves["rollout"] = _waves(config.train.episodes, processes, rolled)
            plays["rollout"] = PhasePlay(scripts, parts.rollout, rolled)
        phases, workers, seconds = None, {}, None
        if specs is not None and not builder.missing:
            resident = architectures.tokenizer_bytes(run)

            def counted(keys: Collection[NetworkKey]) -> Phases:
                own_networks = {key: network for key, network in networks.items() if key in keys}
                own_memory = [network for network in memory if network.key in keys]
                result = Phases(
                    run,
                    own_networks,
                    own_memory,
                    specs,
                    resident=resident,
                    rehearsed=rehearsed,
                    machine=machine,
                )
                for phase, play in plays.items():
                    result.add_play(phase, play)
                if updates is not None:
                    works = {key: planned for key, planned in updates.works.items() if key in keys}
                    result.add_updates(works, entropy=parts.loss.needs_entropy)
                return result

            phases = counted(networks)
            workers = {worker: counted(worker.keys).peaks for worker in placed}
            if updates is not None and machine is not None and machine.card is not None:
                clock = Clock(run, networks, phases.memory, machine.card, processes)
                seconds = clock.seconds(updates.totals, phases.speaking, waves)
        steps = _steps(run, scripts, specs, updates) if run.algorithm.learns else None
        budget = run.config.train.environment_steps
        if steps is not None and exceeds(steps.joint_actions, budget):
            size = f"up to {steps.joint_actions:,}"
            warnings["train.environment_steps"] = large_iteration(size, budget)
        return Estimate(
            given=original,
            run=run,
            steps=steps,
            networks=memory,
            phases=None if phases is None else phases.peaks,
            caches=None if phases is None else phases.caches,
            missing={**work.missing, **builder.missing},
            assumed=architectures.assumed,
            warnings=warnings,
            machine=machine,
            processes=processes,
            together=together,
            resident={} if phases is None else phases.static,
            workers=workers,
            rehearsed=rehearsed,
            updates=updates,
            seconds=seconds,
        )


def _waves(episodes: int, processes: int, together: int) -> int:
    """Number of consecutive waves in which one process plays its episodes, with `together` episodes
    in each wave."""
    return ceil(ceil(episodes / processes) / together)


def _at_once(episodes: int, processes: int, limit: int | None) -> int:
    """Maximum number of episodes that one process plays together."""
    share = -(-episodes // processes)
    return share if limit is None else min(share, limit)


def _steps(
    run: ResolvedRun,
    scripts: Sequence[Script],
    specs: Mapping[str, AgentSpec] | None,
    updates: Updates | None,
) -> IterationBounds:
    episodes, shape = run.config.train.episodes, run.parts.rollout
    all_specs = specs or {
        agent: AgentSpec(**settings.spec_fields) for agent, settings in run.config.agents.items()
    }
    played = [rehearse(number, script, shape, all_specs) for number, script in enumerate(scripts)]
    counts = [rehearsed.counts for rehearsed in played]
    prompts = None
    if specs is not None:
        trees = [tree for rehearsed in played for tree in rehearsed.trees]
        observations = [
            o for tree in trees for node in tree.nodes for o in node.observations.values()
        ]
        prompts = (
            episodes * sum(len(observation.tokens) for observation in observations) // len(played)
        )
    return IterationBounds(
        episodes=episodes,
        generations=episodes * sum(count.generations for count in counts) // len(counts),
        joint_actions=episodes * sum(count.joint_actions for count in counts) // len(counts),
        new_tokens=episodes * sum(count.tokens for count in counts) // len(counts),
        prompt_tokens=prompts,
        padded_tokens=None if updates is None else updates.padded_tokens,
    )
