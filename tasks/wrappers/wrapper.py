"""Base wrapper: forwards every call to the wrapped task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from colearn.contract import (
    DecPOMDP,
    Drawable,
    ItemHorizons,
    LegalActions,
    Listener,
    PrivilegedInfo,
    ProgramEpisodes,
    ReadsActions,
    RewardStructure,
    Services,
    horizon_of,
)
from colearn.contract.picture import Picture

Item = TypeVar("Item")
State = TypeVar("State")
Outer = TypeVar("Outer", bound="HasInner[Any]")
Inner_co = TypeVar("Inner_co", covariant=True)


class HasInner(Protocol[Inner_co]):
    """A wrapper's state."""

    @property
    def inner(self) -> Inner_co:
        """The task's state."""
        ...


class Wraps(ABC):
    """Interface of a wrapper that a config can name in `wrapper`."""

    @classmethod
    @abstractmethod
    def wrap(cls, task: DecPOMDP[Any, Any], **settings: Any) -> DecPOMDP[Any, Any]:
        """The wrapped task."""


class Wrapper(
    DecPOMDP[Item, Outer],
    Drawable,
    ItemHorizons,
    LegalActions,
    PrivilegedInfo,
    ProgramEpisodes,
    ReadsActions,
    RewardStructure,
    Services,
    Wraps,
    Generic[Item, State, Outer],
):
    """Forwards items, metrics, m_t and all other features of the task, except exact measures, which
    are only valid for the task's own observations, and `ProgramEpisodes.send`, which only wrappers
    that pass joint actions on unchanged forward. With any other wrapper, the task receives a joint
    action in `step` alone.

    The constructor's arguments after the task are the wrapper's settings in a config.
    """

    @classmethod
    def wrap(cls, task: DecPOMDP[Any, Any], **settings: Any) -> DecPOMDP[Any, Any]:
        """The wrapped task."""
        return cls(task, **settings)

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        rewards, program = RewardStructure.of(inner), ProgramEpisodes.of(inner)
        self.inner = inner
        self.agents = inner.agents
        self.horizon = inner.horizon
        self.headline = inner.headline
        self.pays, self.pays_later = rewards.pays, rewards.pays_later
        self.reward_range = rewards.reward_range
        self.program, self.steps_here = program.program, program.steps_here
        self.reads_actions = ReadsActions.of(inner).reads_actions
        self.steps_at_once = Services.of(inner).steps_at_once

    def items(self, split: str) -> Sequence[Item]:
        """Forwarded to the task."""
        return self.inner.items(split)

    def horizon_of(self, item: Item) -> int:
        """The task's number of turns for the item if the wrapper does not change the turns, else
        the wrapper's horizon."""
        own_turns = self.horizon == self.inner.horizon
        return horizon_of(self.inner, item) if own_turns else self.horizon

    def metrics(self, state: Outer) -> Mapping[str, float | None]:
        """Forwarded to the task."""
        return self.inner.metrics(state.inner)

    def global_info(self, state: Outer) -> str:
        """Forwarded to the task."""
        return self.inner.global_info(state.inner)

    def privileged_info(self, state: Outer) -> str:
        """Forwarded to the task."""
        return PrivilegedInfo.of(self.inner).privileged_info(state.inner)

    def legal_action(self, state: Outer, agent: str, rng: np.random.Generator) -> str | None:
        """Forwarded to the task."""
        return LegalActions.of(self.inner).legal_action(state.inner, agent, rng)

    def render(self, state: Outer) -> str | None:
        """Forwarded to the task."""
        return Drawable.of(self.inner).render(state.inner)

    def picture(self, state: Outer) -> Picture | None:
        """Forwarded to the task."""
        return Drawable.of(self.inner).picture(state.inner)

    def svg(self, state: Outer) -> str | None:
        """Forwarded to the task."""
        return Drawable.of(self.inner).svg(state.inner)

    def prepare(self, item: Item) -> Any:
        """Forwarded to the task. The wrapper's `reset` passes the returned object on to the task's
        `reset`."""
        return ProgramEpisodes.of(self.inner).prepare(item)

    def listener(self, state: Outer, agent: str) -> Listener | None:
        """Forwarded to the task."""
        return ProgramEpisodes.of(self.inner).listener(state.inner, agent)

    def abandon(self, state: Outer) -> None:
        """Forwarded to the task."""
        ProgramEpisodes.of(self.inner).abandon(state.inner)

    def costs(self) -> Mapping[str, float]:
        """Forwarded to the task."""
        return Services.of(self.inner).costs()

    def close(self) -> None:
        """Forwarded to the task."""
        Services.of(self.inner).close()
