"""Loads the settings of a play session from a run, a config or a task's name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from colearn import registry
from colearn.config import EACH, AgentSettings, Config, load_config, shipped_configs
from colearn.errors import ConfigError, nearest
from colearn.runs.record import open_run
from colearn.runs.record.folder import COMPARISON, CONFIG
from colearn.text.masking import check_unmasked


def load_source(source: str, overrides: Sequence[str] = ()) -> Config:
    """Return the config that a run's folder, the name of a shipped config, a .yaml file or a task's
    name denotes.

    Errors: ConfigError with one line that names the key and the remedy.
    """
    if any((Path(source) / name).is_file() for name in (CONFIG, COMPARISON)):
        config = open_run(source).config(overrides)
        check_unmasked(config.model_dump(mode="json"))
        return config
    if source in shipped_configs() or source.endswith((".yaml", ".yml")):
        return load_config(source, overrides)
    tasks = registry.names("tasks")
    if source in tasks or ":" in source:
        return load_config({"task": {"name": source}, "models": {}}, overrides)
    known = [*tasks, *shipped_configs()]
    raise ConfigError(
        f"task: '{source}' is not a run's folder, a config or a task; "
        f"{nearest(source, known, listed='colearn tasks and colearn configs')}"
    )


def agent_settings(config: Config, agent: str) -> AgentSettings:
    """Return the settings of an agent, or default ones if the config does not name it."""
    return config.agents.get(agent) or config.agents.get(EACH) or AgentSettings()
