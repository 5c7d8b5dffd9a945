"""A resolved config with its parts, agents and models, built before weights are loaded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from colearn.contract import (
    Algorithm,
    Callback,
    Cast,
    DecPOMDP,
    GeneratorKind,
    Headline,
    HostKind,
    LearnerKind,
    NetworkKey,
    Parts,
)
from colearn.contract.part_errors import calling_part
from colearn.contract.player import past_self
from colearn.errors import ConfigError, nearest
from colearn.text.names import name_problem

from .build import build_callbacks, build_task
from .network_settings import CriticSettings, ModelSettings
from .settings import Config
from .strict_section import EACH

CRITIC = "critic"
"""The name of all value models in `placement`."""
TOKEN_BUDGET = 2048
"""Default of `train.token_budget`. Larger micro-batches are not faster on a CPU."""
CUDA_TOKEN_BUDGET = 8192
"""Default of `train.token_budget` on CUDA devices. The host launches about 9,500 kernels for a
micro-batch of a model with 28 layers, in 0.2 s on the measured machine; with 2,048 tokens, a model
below 3 billion weights computes for less time than that."""


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """Holds everything that can be derived from a config before weights are loaded. Planning,
    checks, dry runs, runs and exports all use this object."""

    config: Config
    """The config with every agent and model written out. If the algorithm does not learn, no model
    is trained and there is no critic."""
    agents: tuple[str, ...]
    algorithm: Algorithm
    parts: Parts
    cast: Cast
    learner: LearnerKind
    generator: GeneratorKind
    host: HostKind
    given: DecPOMDP[Any, Any] | None = None
    """The task, if already built."""
    auto: str = "cpu"
    """Type of the device that `auto` selects on the run's machine."""

    @cached_property
    def task(self) -> DecPOMDP[Any, Any]:
        return build_task(self.config) if self.given is None else self.given

    @cached_property
    def callbacks(self) -> tuple[Callback, ...]:
        """The callbacks of `run.callbacks`. Errors: ConfigError for an unknown name or setting."""
        return build_callbacks(self.config)

    @property
    def headline(self) -> Headline:
        """The headline metric of the config, or of the task if the config names none."""
        chosen = self.config.evaluation.headline
        if chosen is not None:
            return Headline(chosen.metric, chosen.better)
        exact = self.task.exact_headline if self.config.evaluation.exact else None
        return exact or self.task.headline

    @property
    def budget(self) -> int:
        """Training budget in environment steps; 0 if the algorithm does not learn."""
        return self.config.train.environment_steps if self.algorithm.learns else 0

    @property
    def heads(self) -> bool:
        """Whether the value heads are on the actors."""
        critic = self.config.critic
        return bool(self.value_models) and critic is not None and critic.path is None

    @cached_property
    def learners(self) -> dict[NetworkKey, ModelSettings | CriticSettings]:
        """The settings of every trained network."""
        trained: dict[NetworkKey, ModelSettings | CriticSettings] = {
            NetworkKey("actor", name): model
            for name, model in self.config.models.items()
            if model.trained
        }
        if not self.heads:
            names = dict.fromkeys(self.value_models.values())
            trained |= {key: self.settings(key) for key in (NetworkKey("critic", n) for n in names)}
        return trained

    @cached_property
    def networks(self) -> tuple[NetworkKey, ...]:
        """Every network in loading order: actors, critics, references, teachers, past selves."""
        loss, models = self.parts.loss, self.config.models
        trained = [name for name, model in models.items() if model.trained]
        # an adapter's first policy is the base with the adapter off
        followed = [name for name in trained if self.moving or models[name].lora is None]
        return (
            *(NetworkKey("actor", name) for name in models),
            *(key for key in self.learners if key.kind == "critic"),
            *(NetworkKey("reference", name) for name in followed if loss.needs_reference),
            *(
                NetworkKey("teacher", name)
                for name in trained
                if loss.needs_teacher and name not in self.served_teachers
            ),
            *(NetworkKey("past", m, n) for n in range(self.cast.pool) for m in trained),
        )

    @property
    def served_teachers(self) -> dict[str, str]:
        """URLs of the teachers that vLLM servers hold and the loss reads, by trained model."""
        if not self.parts.loss.needs_teacher:
            return {}
        teachers = {n: m.teacher or "" for n, m in self.config.models.items() if m.trained}
        return {n: url for n, url in teachers.items() if url.startswith(("http://", "https://"))}

    @property
    def moving(self) -> bool:
        """Whether the reference policies are updated during training."""
        return self.parts.loss.reference_update_every is not None

    def settings(self, key: NetworkKey) -> ModelSettings | CriticSettings:
        """The section of the config that describes a network."""
        if key.kind != "critic":
            return self.config.models[key.model]
        assert self.config.critic is not None
        return self.config.critic

    def path(self, key: NetworkKey) -> str:
        """The path of a network's base model."""
        settings = self.settings(key)
        if isinstance(settings, CriticSettings) and settings.from_ is not None:
            of_its_own = Path(settings.from_) / str(key)
            if of_its_own.is_dir():
                return str(of_its_own)
        if isinstance(settings, ModelSettings) and key.kind == "teacher":
            assert settings.teacher is not None, "checked when the run was resolved"
            return settings.teacher
        assert settings.path is not None, "a head on an actor is no network"
        return settings.path

    def field(self, key: NetworkKey) -> str:
        """The setting that names a network's base model."""
        return f"{key.section}.{'teacher' if key.kind == 'teacher' else 'path'}"

    def stored(self, key: NetworkKey) -> tuple[str, str, str | None]:
        """Path, compute type and quantization of a network's base model. On each device, frozen
        bases with equal path, compute type and quantization are shared."""
        settings = self.settings(key)
        return self.path(key), settings.dtype, settings.quantization

    def base_of(self, key: NetworkKey) -> Hashable:
        """Key of a network's base model; networks have equal keys if they share the weights of a
        base in memory."""
        if key in self.learners and self.settings(key).lora is None:
            return key
        return *self.stored(key), self.device(key)[0]

    @cached_property
    def speakers(self) -> dict[str, tuple[str, NetworkKey]]:
        """The players whose actions a language model generates, by name: the agent whose settings
        the player uses, and the player's network. The config's agents come first, then the agents'
        past selves."""
        speakers = {
            agent: (agent, NetworkKey("actor", settings.model))
            for agent, settings in self.config.language_agents.items()
        }
        for slot in range(self.cast.pool):
            for agent, settings in self.config.agents.items():
                past = NetworkKey("past", settings.model, slot)
                if settings.speaks and past in self.networks:
                    speakers[past_self(agent, slot)] = agent, past
        return speakers

    @property
    def players_by_base(self) -> list[list[str]]:
        """Names of the `speakers`, grouped by base model. The past self of an adapter shares the
        agent's base; the past self of a fully trained model has separate weights."""
        groups: dict[Hashable, list[str]] = {}
        for name, (_, key) in self.speakers.items():
            base: Hashable = key
            if key.kind == "actor" or self.settings(key).lora is not None:
                base = self.base_of(NetworkKey("actor", key.model))
            groups.setdefault(base, []).append(name)
        return list(groups.values())

    def device(self, key: NetworkKey) -> tuple[str, str]:
        """A network's device, and the config field that sets it."""
        placement = self.config.placement
        names = [key.model]
        if key.kind == "critic":
            names = [name for name in (str(key), CRITIC) if name not in self.config.models]
        for name in names:
            if name in placement:
                return placement[name], f"placement.{name}"
        return self.config.run.device, "run.device"

    @property
    def token_budget(self) -> int:
        """`train.token_budget`, or its default on the devices of the networks."""
        budget = self.config.train.token_budget
        if budget is not None:
            return budget
        return CUDA_TOKEN_BUDGET if self._on_cuda else TOKEN_BUDGET

    @property
    def joint_passes(self) -> bool:
        """`train.joint_passes`, or its default on the devices of the networks."""
        chosen = self.config.train.joint_passes
        return self._on_cuda if chosen is None else chosen

    def joins(self, key: NetworkKey) -> bool:
        """Whether a network is trained in joint passes with the other adapters on its base. The
        learner also requires that no adapter is on the LM head."""
        settings = self.settings(key)
        alone = settings.lora is None or settings.quantization is not None
        kinds = self.learner.joint_passes and self.host.joint_passes
        return self.joint_passes and kinds and not alone

    @property
    def _on_cuda(self) -> bool:
        """Whether all networks are on CUDA devices."""
        names = {self.device(key)[0] for key in self.networks}
        types = {(self.auto if name == "auto" else name).partition(":")[0] for name in names}
        return types == {"cuda"}

    def schedule_of(self, key: NetworkKey) -> tuple[int, int | None]:
        """Epochs and minibatch size of a network; `train.minibatch_unit` is the size's unit."""
        train, settings = self.config.train, self.settings(key)
        if not isinstance(settings, CriticSettings):
            return train.epochs, train.minibatch
        return settings.epochs or train.epochs, settings.minibatch or train.minibatch

    @cached_property
    def value_models(self) -> Mapping[str, str]:
        """The name of the value model for each of the critic's readers. With value heads on the
        actors: the physical model for each agent. Empty without a critic.

        Errors: ConfigError for a critic section that is missing or does not fit the algorithm.
        """
        if self.parts.critic is None:
            return {}
        settings, critic = self.config.critic, self.parts.critic
        with calling_part("algorithm.critic", critic):
            readers = critic.readers(self.agents)
        if settings is None:
            raise ConfigError(
                "critic: this algorithm trains a critic; add a critic section with path, or "
                "share: actor"
            )
        if settings.share is None:
            for name in settings.readers:
                if name != EACH and name not in readers:
                    raise ConfigError(
                        f"critic.readers.{name}: this critic has no such reader; "
                        f"{nearest(name, readers)}"
                    )
            chosen = {reader: settings.value_model(reader) for reader in readers}
            for problem in filter(None, map(name_problem, chosen.values())):
                raise ConfigError(f"critic.readers: {problem}")
            known = [str(NetworkKey("critic", name)) for name in dict.fromkeys(chosen.values())]
            for name in self.config.placement:
                if name not in (CRITIC, *known, *self.config.models):
                    raise ConfigError(
                        f"placement.{name}: no such value model; {nearest(name, known)}"
                    )
            return chosen
        if self.parts.critic.on_actor is None:
            raise ConfigError(
                "critic.share: this critic needs a value model of its own; set critic.path"
            )
        if any(tuple(valued) != (reader,) for reader, valued in readers.items()):
            raise ConfigError(
                "critic.share: a central critic reads every agent's text and cannot sit on one "
                "agent's model; give critic.path"
            )
        seated = {reader: self.config.agents[reader] for reader in readers}
        return {reader: agent.model for reader, agent in seated.items() if agent.speaks}
