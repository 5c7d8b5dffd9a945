"""Resolves a config before any weight is loaded: derives and checks everything once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from colearn.contract import (
    Algorithm,
    Cast,
    DecPOMDP,
    GeneratorKind,
    Headline,
    HostKind,
    LearnerKind,
    NetworkKey,
    Parts,
)
from colearn.errors import ConfigError, nearest

from .build import build_algorithm, build_task
from .parts import build_part
from .seats import bind_agents
from .settings import EACH, Config, CriticSettings, ModelSettings


@dataclass(frozen=True, kw_only=True)
class ResolvedRun:
    """What a run consists of. Planning, the check before it, the dry run, the run itself and the
    export read the same one."""

    config: Config
    """With every agent and model spelled out. Where the algorithm learns nothing, no model is
    trained and there is no critic."""
    agents: tuple[str, ...]
    algorithm: Algorithm
    parts: Parts
    cast: Cast
    value_models: Mapping[str, str]
    """By reader, the name of its value model; by agent, its own physical model where the value
    heads sit on the actors; empty where there is no critic."""
    learner: LearnerKind
    generator: GeneratorKind
    host: HostKind
    given: DecPOMDP[Any, Any] | None = None
    """The task, if it was built before."""

    @cached_property
    def task(self) -> DecPOMDP[Any, Any]:
        return build_task(self.config) if self.given is None else self.given

    @property
    def learns(self) -> bool:
        return self.algorithm.learns

    @property
    def headline(self) -> Headline:
        """The config's, else the task's."""
        chosen = self.config.evaluation.headline
        if chosen is not None:
            return Headline(chosen.metric, chosen.better)
        exact = self.task.exact_headline if self.config.evaluation.exact else None
        return exact or self.task.headline

    @property
    def budget(self) -> int:
        """Environment steps; 0 where nothing is learned."""
        return self.config.train.environment_steps if self.learns else 0

    @property
    def heads(self) -> bool:
        """The value heads sit on the actors."""
        critic = self.config.critic
        return bool(self.value_models) and critic is not None and critic.path is None

    @cached_property
    def learners(self) -> dict[NetworkKey, ModelSettings | CriticSettings]:
        """The settings of every network that is trained."""
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
        """Every network, in the order of loading: actors, critics, references, past selves."""
        loss, models = self.parts.loss, self.config.models
        trained = [name for name, model in models.items() if model.trained]
        # an adapter's first policy is the base with the adapter off
        followed = [name for name in trained if self.moving or models[name].lora is None]
        return (
            *(NetworkKey("actor", name) for name in models),
            *(key for key in self.learners if key.kind == "critic"),
            *(NetworkKey("reference", name) for name in followed if loss.needs_reference),
            *(NetworkKey("past", m, n) for n in range(self.cast.pool) for m in trained),
        )

    @property
    def moving(self) -> bool:
        """The reference policies follow those that are trained."""
        return self.parts.loss.reference_update_every is not None

    @property
    def paced(self) -> list[str]:
        """Names of the trained models with epochs or minibatches of their own."""
        return [
            name
            for name, model in self.config.models.items()
            if model.trained and (model.epochs is not None or model.minibatch is not None)
        ]

    def settings(self, key: NetworkKey) -> ModelSettings | CriticSettings:
        """The section of the config that describes a network."""
        if key.kind != "critic":
            return self.config.models[key.model]
        assert self.config.critic is not None
        return self.config.critic

    def path(self, key: NetworkKey) -> str:
        """Where a network's base comes from."""
        path = self.settings(key).path
        assert path is not None, "a head on an actor is no network"
        return path

    def device(self, key: NetworkKey) -> tuple[str, str]:
        """A network's device, and the field of the config that says so."""
        own = self.settings(key).device
        run = self.config.run.device
        return (run, "run.device") if own is None else (own, f"{key.section}.device")

    def pace(self, key: NetworkKey) -> tuple[int, int | None]:
        """Epochs and minibatch of a network; a critic goes with the team."""
        train, own = self.config.train, self.settings(key)
        if not isinstance(own, ModelSettings):
            return train.epochs, train.minibatch
        return own.epochs or train.epochs, own.minibatch or train.minibatch


def resolve(
    config: Config,
    *,
    task: DecPOMDP[Any, Any] | None = None,
    agents: Sequence[str] | None = None,
) -> ResolvedRun:
    """Find and check what a run consists of.

    task: the config's, where it is built already. agents: of a run that was made, whose task need
    not be built again. Errors: ConfigError or TaskError, one line that names the key and the
    remedy.
    """
    if agents is None:
        task = build_task(config) if task is None else task
        agents = task.agents
    algorithm = build_algorithm(config)
    config = bind_agents(config, agents)
    cast = build_part(Cast, config.cast, "cast")
    learner = build_part(LearnerKind, config.run.learner, "run.learner")
    generator = build_part(GeneratorKind, config.run.generator, "run.generator")
    host = build_part(HostKind, config.run.host, "run.host")
    if task is not None:
        algorithm.check_task(task)
    parts = algorithm.checked_parts()
    if algorithm.learns:
        _check_learning(config, parts)
    else:
        config = _untrained(config)
    if config.evaluation.exact:
        _check_exact(config)
    return ResolvedRun(
        config=config,
        agents=tuple(agents),
        algorithm=algorithm,
        parts=parts,
        cast=cast,
        value_models=_value_models(config, parts, agents),
        learner=learner,
        generator=generator,
        host=host,
        given=task,
    )


def _untrained(config: Config) -> Config:
    """The config with every model as it is, and no critic."""
    models = {
        name: model.model_copy(update={"trained": False, "lora": None})
        for name, model in config.models.items()
    }
    return config.model_copy(update={"models": models, "critic": None})


def _check_learning(config: Config, parts: Parts) -> None:
    """Errors: ConfigError where no model is trained; where a model has epochs or minibatches of its
    own, and the algorithm gives new advantages from its critic in each joint minibatch (CoLLM's
    Alg. 1)."""
    trained = {name: model for name, model in config.models.items() if model.trained}
    if not trained:
        raise ConfigError("models: no model is trained; set trained: true on one of them")
    fixed = parts.value_loss.frozen_targets or not parts.advantage.reads
    for name, model in {} if fixed else trained.items():
        for key in ("epochs", "minibatch"):
            if getattr(model, key) is not None:
                raise ConfigError(
                    f"models.{name}.{key}: the critic gives new advantages in each joint "
                    "minibatch; set algorithm.value_loss.frozen_targets: true, or "
                    f"train.{key} for all"
                )


def _check_exact(config: Config) -> None:
    for agent, settings in config.agents.items():
        if not settings.speaks:
            raise ConfigError(
                f"evaluation.exact: agents.{agent} is no language model; set it to false"
            )


def _value_models(config: Config, parts: Parts, agents: Sequence[str]) -> dict[str, str]:
    """Errors: ConfigError for a critic that the settings do not give, or that does not fit them."""
    if parts.critic is None:
        return {}
    settings, readers = config.critic, parts.critic.readers(agents)
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
        return {reader: settings.value_model(reader) for reader in readers}
    if parts.critic.on_actor is None:
        raise ConfigError(
            "critic.share: this critic needs a value model of its own; set critic.path"
        )
    if any(tuple(valued) != (reader,) for reader, valued in readers.items()):
        raise ConfigError(
            "critic.share: a central critic reads every agent's text and cannot sit on one "
            "agent's model; give critic.path"
        )
    seated = {reader: config.agents[reader] for reader in readers}
    return {reader: agent.model for reader, agent in seated.items() if agent.speaks}
