"""Builds a team's players: language models of the run, programs, and agents at endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from colearn.config import AgentSettings, ResolvedRun, build_program
from colearn.contract import Learner, NetworkKey, Player, TokenEngine
from colearn.errors import MissingExtra
from colearn.models.load import Tokenizers
from colearn.rollout.agents import AgentSpec, ChatFormat, Language, Program


def agent_spec(
    run: ResolvedRun,
    agent: str,
    tokenizers: Tokenizers,
    *,
    adapter: str | None,
    positions: int | None,
) -> AgentSpec:
    """Returns an agent's settings, with its chat format. Errors: ConfigError for a model without a
    tokenizer."""
    settings = run.config.language_agents[agent]
    key = NetworkKey("actor", settings.model)
    path, field = run.path(key), f"{key.section}.path"
    tokenizer = tokenizers.load(path, field=field)
    ends = tokenizers.end_ids(path, field=field)
    return AgentSpec(
        **settings.spec_fields,
        chat=ChatFormat(tokenizer, model_end_ids=ends, **settings.chat_format),
        adapter=adapter,
        positions=positions,
    )


def language_player(
    run: ResolvedRun,
    name: str,
    engine: TokenEngine,
    spec: AgentSpec,
    learners: Mapping[NetworkKey, Learner],
) -> Language:
    """Returns one of the run's `speakers`, whose actions the engine generates."""
    agent, key = run.speakers[name]
    return Language(
        engine=engine,
        agent=name,
        spec=spec,
        learner=learners.get(key),
        truncates=run.config.language_agents[agent].overflow == "truncate",
    )


def with_other_players(run: ResolvedRun, speakers: Mapping[str, Player]) -> dict[str, Player]:
    """Returns all players by name: the speakers, programs, and agents at endpoints. The config's
    players come first, in the config's order.

    Errors: ConfigError for a program's settings; MissingExtra for an endpoint.
    """
    players, all_settings = dict(speakers), {**run.config.agents, **run.config.players}
    for name, settings in all_settings.items():
        if settings.program is not None:
            players[name] = Program(build_program(settings.program, f"{name}.program"))
        if settings.endpoint is not None:
            players[name] = _remote(settings)
    past = [name for name in players if name not in all_settings]
    return {name: players[name] for name in (*all_settings, *past)}


def _remote(settings: AgentSettings) -> Player:
    try:
        from colearn.deploy.client.agent import RemoteAgent
        from colearn.deploy.client.player import Remote
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "serve") from None
    assert settings.endpoint is not None
    agent = RemoteAgent(settings.endpoint, system=settings.system, sampling=settings.request_fields)
    return Remote(agent)
