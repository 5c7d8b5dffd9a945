"""A config to compare by, with stand-ins for the algorithms and the task that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fabricated_runs import CONFIG

from colearn import registry
from colearn.config import Config, load_config
from colearn.contract import Advantage, Algorithm, Critic, DecPOMDP, Parts
from colearn.contract.types import Outcome
from colearn.errors import ConfigError
from colearn.methods.advantage.gae import GAE
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.rollout.shapes import KaryTree


@dataclass(frozen=True)
class _Shared(Algorithm):
    discount: float = 1.0
    advantage: Advantage = GAE()
    critic: Critic | None = None

    def parts(self) -> Parts:
        return Parts(
            rollout=KaryTree(),
            credit=SharedReward(),
            advantage=self.advantage,
            loss=PolicyGradient(),
            critic=self.critic,
            discount=self.discount,
        )


@dataclass(frozen=True)
class Critical(_Shared):
    critic_lag: int = 0
    advantage: Advantage = GAE()
    critic: Critic | None = Centralized()


@dataclass(frozen=True)
class Grouped(_Shared):
    samples: int = 2
    advantage: Advantage = GroupMean()
    critic: Critic | None = None


class Task(DecPOMDP[int, int]):
    """One turn in which any text will do."""

    agents = ("left", "right")

    def __init__(self, horizon: int = 1, words: tuple[str, ...] = ()) -> None:
        self.horizon = horizon

    def items(self, split: str) -> list[int]:
        return [0]

    def reset(self, item: int, rng: np.random.Generator) -> int:
        return 0

    def observe(self, state: int, agent: str) -> str:
        return "speak"

    def step(
        self, state: int, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[int]:
        return Outcome(state=state, reward=0.0)

    def metrics(self, state: int) -> Mapping[str, float]:
        return {}

    def legal_action(self, state: int, agent: str, rng: np.random.Generator) -> str:
        return ""


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the registry know nothing but these."""
    known = {"collm_cc": Critical, "magrpo": Grouped}

    def algorithm(name: str, where: str = "algorithm") -> Any:
        if name not in known:
            raise ConfigError(f"{where}: unknown algorithm '{name}'")
        return known[name]

    monkeypatch.setattr(registry, "algorithm_class", algorithm)
    monkeypatch.setattr(registry, "task_class", lambda name, where: Task)


def comparison_config(
    *, seeds: tuple[int, ...] = (0, 1), workers: int = 2, **algorithms: Any
) -> Config:
    chosen = algorithms or {"collm_cc": {}, "magrpo": {}}
    section = {"algorithms": chosen, "seeds": list(seeds), "workers": workers}
    return load_config({**CONFIG, "compare": section})
