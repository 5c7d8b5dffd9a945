"""Resolves a config once, before weights are loaded, and checks it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colearn.contract import Cast, DecPOMDP, GeneratorKind, HostKind, LearnerKind
from colearn.contract.optional import refuse_unread_members

from .build import build_algorithm, build_task
from .checks import check_run
from .parts import build_part
from .placement import place
from .resolved_run import ResolvedRun
from .seats import bind_agents
from .settings import Config


def resolve(
    config: Config,
    *,
    task: DecPOMDP[Any, Any] | None = None,
    agents: Sequence[str] | None = None,
) -> ResolvedRun:
    """Resolve and check a config.

    task: the config's task, if already built. agents: those of a recorded run, whose task then need
    not be built. Errors: ConfigError or TaskError, one line that names the key and the remedy.
    """
    if agents is None:
        task = build_task(config) if task is None else task
        refuse_unread_members(task)
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
    )
    check_run(run)
    return run


def _untrained(config: Config) -> Config:
    """The config with every model untrained and no critic."""
    models = {
        name: model.model_copy(update={"trained": False, "lora": None})
        for name, model in config.models.items()
    }
    return config.model_copy(update={"models": models, "critic": None})


def _with_critic(config: Config) -> Config:
    """The config with a given critic as the path of the value models: of the first of several, one
    folder each."""
    critic = config.critic
    if critic is None or critic.from_ is None:
        return config
    several = sorted(Path(critic.from_).glob("critic-*"))
    path = str(several[0]) if several else critic.from_
    return config.model_copy(update={"critic": critic.model_copy(update={"path": path})})
