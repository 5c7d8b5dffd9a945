"""What a run will need, before any weight is loaded: memory per device, tokens per iteration.

Weights, gradients, optimiser state and caches are counted from the architecture; what passes
through a device in between is found by running the run's own code on tensors without content.
Every action is taken to be as long as it may be and no episode to end early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from colearn.agents import Voice
from colearn.config import Config, ResolvedRun, build_task, resolve
from colearn.contract import DecPOMDP, NetworkKey, Rollout
from colearn.errors import DataNotHere, MissingExtra
from colearn.rollout.shapes import Chain
from colearn.rollout.transition import items_of

from .architecture import Architectures
from .fake_team import FakeTeamBuilder
from .memory import NetworkMemory, count_networks
from .phases import PhasePlay, Phases
from .script import Script, check_lengths, read_script, rehearse
from .voices import read_voices, tokenizer_bytes
from .work import Updates, plan_updates

_DATA = ("data", "test_data", "corpus", "encoder")
"""Settings of a task that say where its data, and what reads them, are."""
_PROBES = 4
"""Items that are read for the lengths of observations."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Upper bounds for one iteration; None where a tokenizer is not on this machine."""

    episodes: int
    generations: int
    joint_actions: int
    new_tokens: int
    prompt_tokens: int | None
    """Observations prefilled, once for each history, as in the items that were read."""
    padded_tokens: Mapping[NetworkKey, int] | None
    """Through each learner, over all epochs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A run that has been resolved and not started."""

    run: ResolvedRun
    steps: Steps | None
    """None where nothing is learned."""
    networks: tuple[NetworkMemory, ...]
    phases: Mapping[str, Mapping[str, int]] | None
    """Peak bytes by device and phase, for one process; None where a model is not here."""
    caches: Mapping[str, int] | None
    """Of that, most bytes of keys and values, by device."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """By field, what could not be counted and the remedy."""

    def peak(self, device: str) -> int:
        """Bytes at the most of any phase. Errors: ValueError where a model was not counted."""
        if self.phases is None:
            raise ValueError("no peak: " + "; ".join(self.missing.values()))
        return max(self.phases[device].values())


def estimate(config: Config, *, processes: int = 1) -> Estimate:
    """Resolve a run and count what it will need, each of `processes` by itself.

    Nothing is written and no weight is read. Errors: ConfigError or TaskError, as the run's own.
    """
    task, train, held_out, gone = _read_task(config)
    run = resolve(config, task=task)
    config, parts = run.config, run.parts
    architectures = Architectures(task, config)
    builder = FakeTeamBuilder(run, architectures)
    networks = builder.build()

    scripts = _scripts(task, train)
    memory = count_networks(run, networks, builder.missing, processes)
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
    phases = None
    if voices is not None and not builder.missing:
        resident = tokenizer_bytes(run, architectures)
        found = Phases(run, networks, memory, voices, resident=resident)
        played = config.evaluation.repeats * (config.evaluation.episodes or len(held_out))
        found.add_play("evaluation", _play(_scripts(task, held_out), Chain(), played, processes))
        if updates is not None:
            episodes = config.train.episodes
            found.add_play("rollout", _play(scripts, parts.rollout, episodes, processes))
            found.add_updates(updates.works, entropy=parts.loss.needs_entropy)
        phases = found
    return Estimate(
        run=run,
        steps=_steps(run, scripts, voices, updates) if run.learns else None,
        networks=memory,
        phases=None if phases is None else phases.found,
        caches=None if phases is None else phases.caches,
        missing=gone | builder.missing,
    )


def _read_task(
    config: Config,
) -> tuple[DecPOMDP[Any, Any], Sequence[Any], Sequence[Any], dict[str, str]]:
    """The task, its items to train and to evaluate on, and what of it is not on this machine.

    The hub's data may not be here; the task's own default data then stand in for it.
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
        own = {key: value for key, value in config.task.settings.items() if key not in _DATA}
        chosen = type(config.task)(name=config.task.name, **own)
        task = build_task(config.model_copy(update={"task": chosen}))
        train = items_of(task, "train")
    return task, train, items_of(task, config.evaluation.split), gone


def _scripts(task: DecPOMDP[Any, Any], items: Sequence[Any]) -> list[Script]:
    return [read_script(task, item, number) for number, item in enumerate(items[:_PROBES])]


def _play(scripts: Sequence[Script], shape: Rollout, episodes: int, processes: int) -> PhasePlay:
    return PhasePlay(scripts=scripts, shape=shape, episodes=-(-episodes // processes))


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
