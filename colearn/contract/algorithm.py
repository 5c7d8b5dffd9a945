"""An algorithm: a name, a docstring and a choice of parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from colearn.errors import ConfigError

from .advantage import Advantage
from .critic import Critic
from .loss import PolicyLoss
from .rollout import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLoss:
    """Squared error of the critic, Eq. 3 and 5 of CoLLM, with PPO's optional value clip."""

    coefficient: float = 1.0
    clip: float | None = None
    """Keep V within +-clip of its value at rollout (pessimistic maximum of both errors)."""
    frozen_targets: bool = False
    """Take the bootstrap from the critic as it was at rollout, not from the current one."""
    expectile: float = 0.5
    """tau of the expectile that V estimates; 1/2 is the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Rollout x advantage (with or without critic) x policy loss."""

    rollout: Rollout
    advantage: Advantage
    loss: PolicyLoss
    critic: Critic | None = None
    value_loss: ValueLoss | None = None


class Algorithm(ABC):
    """A frozen dataclass of hyper-parameters that chooses parts; it knows no device, no model."""

    learns: ClassVar[bool] = True
    """False: a run is one evaluation; no model is trained, no critic loaded, no budget used."""

    @abstractmethod
    def parts(self) -> Parts:
        """The parts this algorithm is made of."""

    def check_team(self, agents: Sequence[str]) -> None:  # noqa: B027 - most fit any team
        """Errors: ConfigError where the algorithm cannot train a team of these agents."""

    def checked_parts(self) -> Parts:
        """`parts`, after checking that they fit each other.

        Errors: ConfigError for a group baseline without a group, or values without a critic.
        """
        parts = self.parts()
        name = type(self).__name__
        if parts.rollout.group_size < parts.advantage.minimum_group:
            raise ConfigError(
                f"algorithm.samples: {name} compares {parts.advantage.minimum_group} or more joint "
                f"actions per history, got K={parts.rollout.group_size}; set samples to 2 or more"
            )
        if parts.advantage.uses_values != (parts.critic is not None):
            raise ConfigError(
                f"algorithm: {name} must choose a critic exactly where its advantage uses values"
            )
        return parts
