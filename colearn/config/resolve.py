"""Resolves and checks a config once, before weights are loaded: expands `*` in agents and models,
checks `placement`, and builds parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colearn.contract import Cast, DecPOMDP, GeneratorKind, HostKind, LearnerKind
from colearn.contract.checked_task import check_frame
from colearn.errors import ConfigError, nearest
from colearn.text.names import name_problem

from .agent_settings import AgentSettings
from .build import build_algorithm, build_task
from .critic_baseline import with_critic_baseline
from .cross_checks import check_run
from .network_settings import ModelSettings
from .parts import build_part
from .resolved_run import CRITIC, ResolvedRun
from .settings import Config, HostChoice
from .strict_section import EACH


def resolve(
    config: Config,
    *,
    task: DecPOMDP[Any, Any] | None = None,
    agents: Sequence[str] | None = None,
    auto: str = "cpu",
) -> ResolvedRun:
    """Resolve and check a config.

    task: the config's task, if already built. agents: the agents of a recorded run; if they are
    given, the task is not built. auto: the type of the device that `auto` selects. Errors:
    ConfigError or TaskError, one line that names the key and the remedy.
    """
    if agents is None:
        task = build_task(config) if task is None else task
        check_frame(task)
        agents = task.agents
    algorithm = build_algorithm(config)
    config = place(_with_critic(bind_agents(config, agents)))
    cast = build_part(Cast, config.cast, "cast")
    learner = build_part(LearnerKind, config.run.learner, "run.learner")
    generator = build_part(GeneratorKind, config.run.generator, "run.generator")
    host = build_part(HostKind, config.run.host, "run.host")
    if task is not None:
        algorithm.check_task(task)
    parts = algorithm.checked_parts()
    config = with_critic_baseline(config, parts)
    run = ResolvedRun(
        config=config if algorithm.learns else _untrained(config),
        agents=tuple(agents),
        algorithm=algorithm,
        parts=parts,
        cast=cast,
        learner=learner,
        generator=generator,
        host=host,
        given=task,
        auto=auto,
    )
    check_run(run)
    return run


def _untrained(config: Config) -> Config:
    """Returns the config without critic and adapters, and with `trained: false` for all models."""
    models = {
        name: model.model_copy(update={"trained": False, "lora": None})
        for name, model in config.models.items()
    }
    placement = {name: config.placement[name] for name in models if name in config.placement}
    return config.model_copy(update={"models": models, "critic": None, "placement": placement})


def _with_critic(config: Config) -> Config:
    """Returns the config in which the value models have the path of the critic given by `from`. If
    `from` has one folder per value model, the first folder is the path."""
    critic = config.critic
    if critic is None or critic.from_ is None:
        return config
    folders = sorted(Path(critic.from_).glob("critic-*"))
    path = str(folders[0]) if folders else critic.from_
    return config.model_copy(update={"critic": critic.model_copy(update={"path": path})})


def bind_agents(config: Config, agents: Sequence[str]) -> Config:
    """Expand `*` to every agent of the task, with its settings, and to every model that an agent
    uses.

    Errors: ConfigError for an agent without a model, a model without an agent, an unknown agent, a
    name that is not valid as a key, as a folder name and as part of a metric's name, or a model
    with the name of the critics' metrics.
    """
    for section, names in (
        ("task.agents", agents),
        ("players", config.players),
        ("models", [name for name in config.models if name != EACH]),
    ):
        for problem in filter(None, map(name_problem, names)):
            raise ConfigError(f"{section}: {problem}")
    for name in config.agents:
        if name != EACH and name not in agents:
            raise ConfigError(f"agents.{name}: the task has no such agent; {nearest(name, agents)}")
    for name in config.players:
        if name in agents or name == EACH:
            raise ConfigError(f"players.{name}: is a seat of the task; give it another name")
    models: dict[str, ModelSettings] = {}
    bound = {agent: _bound(config, "agents", agent, models) for agent in agents}
    players = {name: _bound(config, "players", name, models) for name in config.players}
    for name in config.models:
        if name != EACH and name not in models:
            raise ConfigError(
                f"models.{name}: no agent plays this model; name it in agents.<agent>.model or "
                "remove it"
            )
    if CRITIC in models:
        speakers = [agent for agent, own in bound.items() if own.speaks and own.model == CRITIC]
        raise ConfigError(
            f"models.{CRITIC}: the metrics of this name are those of critics; set "
            f"agents.{(speakers or [EACH])[0]}.model to another name"
        )
    return config.model_copy(update={"agents": bound, "players": players, "models": models})


def _bound(
    config: Config, section: str, name: str, models: dict[str, ModelSettings]
) -> AgentSettings:
    """Returns the settings of one agent or player, including the name of its model; adds this model
    to `models`."""
    entries = config.agents if section == "agents" else config.players
    settings = entries.get(name) or entries.get(EACH)
    if settings is None:
        raise ConfigError(
            f"agents.{name}: this agent of the task has no entry; add it or a '*' entry"
        )
    if not settings.speaks:
        return settings
    chosen = name if settings.model == EACH else settings.model
    model = config.models.get(chosen)
    if model is None and settings.model == EACH:
        model = config.models.get(EACH)
    if model is None:
        raise ConfigError(
            f"{section}.{name}.model: no model '{chosen}' in models; "
            f"{nearest(chosen, config.models)}"
        )
    models[chosen] = model
    return settings.model_copy(update={"model": chosen})


def place(config: Config) -> Config:
    """Check the names in `placement`. If it names several devices, the local host updates models in
    threads, unless `run.host` is configured.

    Errors: ConfigError for an unknown name.
    """
    for name in config.placement:
        if name in config.models:
            continue
        if name != CRITIC and not name.startswith(f"{CRITIC}-"):
            raise ConfigError(
                f"placement.{name}: no such model; {nearest(name, [*config.models, CRITIC])}"
            )
        if config.critic is None or config.critic.path is None:
            raise ConfigError(
                f"placement.{name}: there is no critic model; leave it out, or set critic.path"
            )
    run, host = config.run, config.run.host
    if len(set(config.placement.values())) > 1 and host == HostChoice():
        run = run.model_copy(
            update={"host": HostChoice.model_validate({"name": host.name, "threads": True})}
        )
    return config.model_copy(update={"run": run})
