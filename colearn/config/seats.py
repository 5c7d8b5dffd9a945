"""The map from agents to models, with every `*` expanded."""

from __future__ import annotations

from collections.abc import Sequence

from colearn.errors import ConfigError, nearest

from .settings import EACH, AgentSettings, Config, ModelSettings


def bind_agents(config: Config, agents: Sequence[str]) -> Config:
    """Expand `*`: every agent of the task with its settings, every model that an agent uses.

    Errors: ConfigError for an agent without a model, a model without an agent, an unknown agent.
    """
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
        if "." in name:
            raise ConfigError(
                f"models.{name}: a dot separates keys; name it '{name.replace('.', '_')}'"
            )
        if name != EACH and name not in models:
            raise ConfigError(
                f"models.{name}: no agent plays this model; name it in agents.<agent>.model or "
                "remove it"
            )
    return config.model_copy(update={"agents": bound, "players": players, "models": models})


def _bound(
    config: Config, section: str, name: str, models: dict[str, ModelSettings]
) -> AgentSettings:
    """The settings of one seat or player with its model's name; adds the model to `models`."""
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
