"""Builds the players of a run from the settings of agents and players."""

from __future__ import annotations

from collections.abc import Callable

from colearn.agents import Language, Program
from colearn.agents.language import no_version
from colearn.config import AgentSettings, ResolvedRun, build_program
from colearn.contract import Learner, ModelHost, NetworkKey, Player
from colearn.errors import MissingExtra


def build_players(run: ResolvedRun, host: ModelHost) -> dict[str, Player]:
    """Build all players; returns them by name."""
    config, players = run.config, dict[str, Player]()
    for name, hosted in host.players.items():
        settings_of_seat = config.language_agents.get(name)
        learner = (
            None
            if settings_of_seat is None
            else host.learners.get(NetworkKey("actor", settings_of_seat.model))
        )
        players[name] = Language(
            engine=hosted.engine,
            agent=name,
            spec=hosted.spec,
            weights_version=_steps_of(learner),
            truncates=config.language_agents[hosted.agent].overflow == "truncate",
        )
    everyone = {**config.agents, **config.players}
    for name, settings in everyone.items():
        if settings.program is not None:
            players[name] = Program(build_program(settings.program, f"{name}.program"))
        if settings.endpoint is not None:
            players[name] = _remote(name, settings)
    past = [name for name in players if name not in everyone]
    return {name: players[name] for name in (*everyone, *past)}


def _remote(name: str, settings: AgentSettings) -> Player:
    try:
        from colearn.client.agent import RemoteAgent
        from colearn.client.player import Remote
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "serve") from None
    assert settings.endpoint is not None
    agent = RemoteAgent(settings.endpoint, system=settings.system, sampling=settings.request_fields)
    return Remote(agent)


def _steps_of(learner: Learner | None) -> Callable[[], int]:
    return no_version if learner is None else lambda: learner.steps
