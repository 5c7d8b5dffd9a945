"""A config to compare by, with stand-ins for the algorithms and the task that it names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from fabricated_runs import CONFIG

from colearn import registry
from colearn.advantage.bootstrap import Bootstrap
from colearn.advantage.group_mean import GroupMean
from colearn.config import Config, load_config
from colearn.contract import Advantage, Critic
from colearn.critic.centralized import Centralized
from colearn.errors import ConfigError


@dataclass(frozen=True)
class Critical:
    learns: ClassVar[bool] = True
    discount: float = 1.0
    critic_lag: int = 0
    advantage: Advantage = Bootstrap()
    critic: Critic | None = Centralized()

    def checked_parts(self) -> None: ...


@dataclass(frozen=True)
class Grouped:
    learns: ClassVar[bool] = True
    discount: float = 1.0
    samples: int = 2
    advantage: Advantage = GroupMean()
    critic: Critic | None = None

    def checked_parts(self) -> None: ...


class Task:
    agents = ("left", "right")

    def __init__(self, horizon: int = 1, words: tuple[str, ...] = ()) -> None: ...

    def items(self, split: str) -> list[int]:
        return [0]

    def legal_action(self, state: Any, agent: str, rng: Any) -> str:
        return ""


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the registry know nothing but these."""
    known = {"collm_cc": Critical, "magrpo": Grouped}

    def algorithm(name: str) -> Any:
        if name not in known:
            raise ConfigError(f"algorithm: unknown algorithm '{name}'")
        return known[name]

    monkeypatch.setattr(registry, "algorithm_class", algorithm)
    monkeypatch.setattr(registry, "task_class", lambda name: Task)


def comparison_config(
    *, seeds: tuple[int, ...] = (0, 1), workers: int = 2, **algorithms: Any
) -> Config:
    chosen = algorithms or {"collm_cc": {}, "magrpo": {}}
    section = {"algorithms": chosen, "seeds": list(seeds), "workers": workers}
    return load_config({**CONFIG, "compare": section})
