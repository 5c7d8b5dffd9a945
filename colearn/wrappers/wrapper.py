"""Base wrapper: forwards every call to the wrapped task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from colearn.contract import DecPOMDP
from colearn.pictures import Picture

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
    """A wrapper as a config names it under `wrapper`."""

    @classmethod
    @abstractmethod
    def wrap(cls, task: DecPOMDP[Any, Any], **settings: Any) -> DecPOMDP[Any, Any]:
        """The task as it is played this way."""


class Wrapper(DecPOMDP[Item, Outer], Wraps, Generic[Item, State, Outer]):
    """Items, metrics, m_t and what no agent sees are the task's; so are `render`, `picture`, `svg`
    and `legal_action`.

    What a constructor takes beyond the task are its settings in a config.
    """

    @classmethod
    def wrap(cls, task: DecPOMDP[Any, Any], **settings: Any) -> DecPOMDP[Any, Any]:
        """The task as it is played this way."""
        return cls(task, **settings)

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        self.inner = inner
        self.agents = inner.agents
        self.horizon = inner.horizon
        self.pays = inner.pays
        self.pays_later = inner.pays_later
        self.program = inner.program
        self.reads_actions = inner.reads_actions
        self.steps_here = inner.steps_here
        self.reward_range = inner.reward_range
        self.headline = inner.headline

    def items(self, split: str) -> Sequence[Item]:
        """The task's."""
        return self.inner.items(split)

    def horizon_of(self, item: Item) -> int:
        """The task's, where a turn is a turn of the task; else the horizon."""
        return self.inner.horizon_of(item) if self.horizon == self.inner.horizon else self.horizon

    def metrics(self, state: Outer) -> Mapping[str, float | None]:
        """The task's."""
        return self.inner.metrics(state.inner)

    def global_info(self, state: Outer) -> str:
        """The task's."""
        return self.inner.global_info(state.inner)

    def privileged_info(self, state: Outer) -> str:
        """The task's."""
        return self.inner.privileged_info(state.inner)

    def legal_action(self, state: Outer, agent: str, rng: np.random.Generator) -> str | None:
        """The task's."""
        return self.inner.legal_action(state.inner, agent, rng)

    def render(self, state: Outer) -> str | None:
        """The task's."""
        return self.inner.render(state.inner)

    def picture(self, state: Outer) -> Picture | None:
        """The task's."""
        return self.inner.picture(state.inner)

    def svg(self, state: Outer) -> str | None:
        """The task's."""
        return self.inner.svg(state.inner)

    def costs(self) -> Mapping[str, float]:
        """The task's."""
        return self.inner.costs()

    def close(self) -> None:
        """The task's."""
        self.inner.close()
