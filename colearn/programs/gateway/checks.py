"""Checks the settings of the task `gateway`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from colearn.errors import ConfigError

from .payments import LARGEST, TEAM

_BOUNDS: Mapping[str, tuple[float, float]] = {
    "horizon": (1, 100_000),
    "timeout": (0.01, 86_400),
    "failure_reward": (-LARGEST, LARGEST),
    "workers": (0, 1024),
    "max_bytes": (1, 2**30),
    "port": (0, 65_535),
}
"""Lowest and highest value of each number."""


def check_numbers(**settings: float) -> None:
    """Errors: ConfigError for a number out of its bounds."""
    for name, value in settings.items():
        low, high = _BOUNDS[name]
        if not low <= value <= high:
            raise ConfigError(f"task.{name}: must lie in {low:,} to {high:,}, got {value}")


def check_agents(agents: Sequence[str]) -> None:
    """Errors: ConfigError if there are no agents, or for a name that does not fit in a URL, that
    means something else in a result, or that has the same environment variable as another name."""
    if not agents:
        raise ConfigError("task.agents: is empty; name the agents that the program asks")
    for agent in agents:
        if not agent.isidentifier() or agent in ("reward", "end"):
            raise ConfigError(f"task.agents: '{agent}' must be an identifier in a URL; rename it")
        if agent == TEAM:
            raise ConfigError(
                f"task.agents: '{TEAM}' names the reward of all agents in a result; rename it"
            )
    if len({agent.upper() for agent in agents}) < len(agents):
        raise ConfigError(
            "task.agents: two names are equal in capitals, as in COLEARN_URL_AGENT; rename one"
        )
