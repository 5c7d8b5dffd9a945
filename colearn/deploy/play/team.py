"""Builds the team of a play session: a remote agent or a person for each of the task's agents."""

from __future__ import annotations

import os
from collections.abc import Sequence

from colearn.config import Config
from colearn.deploy.client.async_agent import AsyncRemoteAgent
from colearn.errors import ConfigError, nearest

from .person import PERSON, Person
from .source import agent_settings


def make_team(
    config: Config,
    agents: Sequence[str],
    addresses: Sequence[str],
    *,
    tokens: Sequence[str] = (),
    models: Sequence[str] = (),
    timeout: float = 60.0,
    retries: int = 2,
) -> dict[str, AsyncRemoteAgent | Person]:
    """Returns one remote agent, which is not yet open, for each of the task's `agents`.

    `addresses` have the form NAME=URL, or NAME=person for a person at the page; `tokens` the form
    NAME=VARIABLE, with an environment variable; `models` the form NAME=MODEL.

    Errors: ConfigError for an agent without an address, an unknown name or an unset variable.
    """
    urls = _pairs(addresses, "--agent", "URL", agents)
    variables = _pairs(tokens, "--token-env", "VARIABLE", agents)
    chosen = _pairs(models, "--model", "MODEL", agents)
    for agent in agents:
        if agent not in urls:
            raise ConfigError(f"--agent: none plays '{agent}'; add --agent {agent}=URL")
    team: dict[str, AsyncRemoteAgent | Person] = {}
    for agent in agents:
        if urls[agent] == PERSON:
            team[agent] = Person()
            continue
        settings = agent_settings(config, agent)
        team[agent] = AsyncRemoteAgent(
            urls[agent],
            name=agent,
            api_key=_key(agent, variables.get(agent)),
            model=chosen.get(agent),
            system=settings.system,
            sampling=settings.request_fields,
            timeout=timeout,
            retries=retries,
        )
    return team


def _pairs(texts: Sequence[str], option: str, kind: str, agents: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in texts:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise ConfigError(
                f"{option}: write NAME={kind}, where NAME is one of the task's agents"
            )
        if name not in agents:
            raise ConfigError(f"{option}: the task has no agent '{name}'; {nearest(name, agents)}")
        if name in values:
            raise ConfigError(f"{option}: agent '{name}' is given twice; leave one out")
        values[name] = value
    return values


def _key(agent: str, variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise ConfigError(
            f"--token-env {agent}={variable}: the environment has no such variable; export it"
        )
    return os.environ[variable]
