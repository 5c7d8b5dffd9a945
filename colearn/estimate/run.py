"""Estimates memory per device and tokens per iteration, before any weight is loaded.

Weights, gradients, optimiser state and caches are counted from the architecture. Activations are
measured by running the run's own code on fake tensors. Every action is assumed to have maximum
length, and no episode to end early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from colearn.agents import Voice
from colearn.config import Config, ResolvedRun, build_task, resolve
from colearn.contract import DecPOMDP, NetworkKey
from colearn.errors import DataNotHere, MissingExtra, TaskError
from colearn.experiment.evaluation.checked import check_evaluation
from colearn.rollout.shapes import Chain
from colearn.rollout.transition import items_of

from .architecture import Architectures
from .fake_team import FakeTeamBuilder
from .machine import Machine
from .memory import NetworkMemory, count_networks
from .phases import PhasePlay, Phases, Rehearsed
from .script import Script, check_lengths, read_script, rehearse
from .voices import read_voices, tokenizer_bytes
from .work import Updates, plan_updates

_DATA = ("data", "test_data", "corpus", "encoder")
"""Task settings that name data and the models that read them."""
_PROBES = 4
"""Number of items read for the lengths of observations."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Upper bounds for one iteration; None if a tokenizer is not on this machine."""

    episodes: int
    generations: int
    joint_actions: int
    new_tokens: int
    prompt_tokens: int | None
    """Prefilled observation tokens, once per history, as in the items that were read."""
    padded_tokens: Mapping[NetworkKey, int] | None
    """Padded tokens through each learner, over all epochs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory and work of a resolved run that has not started."""

    run: ResolvedRun
    steps: Steps | None
    """None if nothing is learned."""
    networks: tuple[NetworkMemory, ...]
    phases: Mapping[str, Mapping[str, int]] | None
    """Peak bytes by device and phase, for one process; None if a model is missing."""
    caches: Mapping[str, int] | None
    """Peak bytes of the KV caches in it, by device."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """By field: what could not be counted, and the remedy."""
    assumed: Mapping[str, str] = field(default_factory=dict)
    """By field: what replaces files that are not on this machine."""
    machine: Machine | None = None
    """Where the run will take place; None for this machine."""
    rehearsed: Rehearsed = field(default_factory=dict, repr=False, compare=False)

    def peak(self, device: str) -> int:
        """Highest peak of any phase in bytes. Errors: ValueError if a model was not counted."""
        if self.phases is None:
            raise ValueError("no peak: " + "; ".join(self.missing.values()))
        return max(self.phases[device].values())

    def capacity(self, device: str) -> int | None:
        """Bytes of a device of `machine`; None if they are not stated."""
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
    """Resolve a run and estimate what each of its `processes` needs.

    machine: where the run will take place, by default this machine.
    rehearsed: that of an estimate of the same models, whose passes are not rehearsed again.
    Nothing is written and no weight is read. Errors: ConfigError or TaskError, as in the run.
    """
    task, train, held_out, gone = _read_task(config)
    with closing(task):
        run = resolve(config, task=task)
        check_evaluation(run)
        config, parts = run.config, run.parts
        architectures = Architectures(task, config)
        builder = FakeTeamBuilder(run, architectures, machine)
        networks = builder.build()

        scripts = _scripts(task, train)
        memory = count_networks(run, networks, builder.missing, processes, machine)
        voices = read_voices(run, architectures)
        if voices is not None:
            check_lengths(task, train, scripts, voices)
        updates = None
        if voices is not None and run.learns:
            trees = [
                tree
                for number in range(config.train.episodes)
                for tree in rehearse(
                    number, scripts[number % len(scripts)], parts.rollout, voices
                ).trees
            ]
            updates = plan_updates(run, trees, architectures)
        rehearsed = {} if rehearsed is None else rehearsed
        phases = None
        if voices is not None and not builder.missing:
            resident = tokenizer_bytes(run, architectures)
            phases = Phases(run, networks, memory, voices, resident=resident, rehearsed=rehearsed)
            played = config.evaluation.repeats * (config.evaluation.episodes or len(held_out))
            evaluated = _at_once(played, processes, config.evaluation.at_once)
            phases.add_play("evaluation", PhasePlay(_scripts(task, held_out), Chain(), evaluated))
            if updates is not None:
                rolled = _at_once(config.train.episodes, processes, config.train.at_once)
                phases.add_play("rollout", PhasePlay(scripts, parts.rollout, rolled))
                phases.add_updates(updates.works, entropy=parts.loss.needs_entropy)
        return Estimate(
            run=run,
            steps=_steps(run, scripts, voices, updates) if run.learns else None,
            networks=memory,
            phases=None if phases is None else phases.peaks,
            caches=None if phases is None else phases.caches,
            missing=gone | builder.missing,
            assumed=architectures.assumed,
            machine=machine,
            rehearsed=rehearsed,
        )


def _read_task(
    config: Config,
) -> tuple[DecPOMDP[Any, Any], Sequence[Any], Sequence[Any], dict[str, str]]:
    """The task, its training and evaluation items, and what is missing on this machine.

    If a hub's data are missing, the task's default data replace them.
    """
    gone: dict[str, str] = {}
    try:
        task = build_task(config)
        train = items_of(task, "train")
    except (DataNotHere, MissingExtra) as error:
        if "data" not in config.task.settings:
            raise
        reason = str(error).removeprefix("task.data: ")
        gone["task.data"] = f"not on this machine; lengths are those of the default data ({reason})"
        settings = {key: value for key, value in config.task.settings.items() if key not in _DATA}
        chosen = type(config.task)(name=config.task.name, **settings)
        task = build_task(config.model_copy(update={"task": chosen}))
        train = items_of(task, "train")
    return task, train, items_of(task, config.evaluation.split), gone


def _scripts(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> list[Script]:
    """Errors: TaskError if no agent acts in any of them."""
    read = [read_script(task, item, number) for number, item in enumerate(items[:_PROBES])]
    if not any(read):
        raise TaskError(
            f"task.observe: no agent acts in the first {len(read)} items, so there is nothing to "
            "learn; return an observation at turn 0"
        )
    return read


def _at_once(episodes: int, processes: int, limit: int | None) -> int:
    """Most episodes that one process plays together."""
    share = -(-episodes // processes)
    return share if limit is None else min(share, limit)


def _steps(
    run: ResolvedRun,
    scripts: Sequence[Script],
    voices: Mapping[str, Voice] | None,
    updates: Updates | None,
) -> Steps:
    episodes, shape = run.config.train.episodes, run.parts.rollout
    everyone = voices or {
        agent: Voice(**settings.voice) for agent, settings in run.config.agents.items()
    }
    played = [rehearse(number, one, shape, everyone) for number, one in enumerate(scripts)]
    counts = played[0].counts
    prompts = None
    if voices is not None:
        trees = [tree for one in played for tree in one.trees]
        shown = [o for tree in trees for node in tree.nodes for o in node.observations.values()]
        prompts = episodes * sum(len(observation.tokens) for observation in shown) // len(played)
    return Steps(
        episodes=episodes,
        generations=episodes * counts.generations,
        joint_actions=episodes * counts.joint_actions,
        new_tokens=episodes * counts.tokens,
        prompt_tokens=prompts,
        padded_tokens=None if updates is None else updates.padded_tokens,
    )
