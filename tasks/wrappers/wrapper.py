"""Base wrapper: forwards every call to the wrapped task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from colearn.contract import (
    DecPOMDP,
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


class Wrapper(DecPOMDP[Item, Outer], Wraps, Generic[Item, State, Outer]):
    """Forwards items, metrics, m_t and all options of the task, except for three kinds. Exact
    measures, `action_words` and `optimum` are valid only for the task's own observations and turns.
    Only wrappers that pass joint actions on unchanged forward `send`; with any other wrapper, the
    task receives a joint action in `step` alone. `alone` is for `wrapper: single`, which is given
    the task itself.

    The constructor's arguments after the task are the wrapper's settings in a config.
    """

    @classmethod
    def wrap(cls, task: DecPOMDP[Any, Any], **settings: Any) -> DecPOMDP[Any, Any]:
        """The wrapped task."""
        return cls(task, **settings)

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        self.inner = inner
        self.agents = inner.agents
        self.horizon = inner.horizon
        self.headline = inner.headline
        self.pays, self.pays_later = inner.pays, inner.pays_later
        self.reward_range = inner.reward_range
        self.program, self.steps_here = inner.program, inner.steps_here
        self.reads_actions = inner.reads_actions
        self.steps_at_once = inner.steps_at_once

    def items(self, split: str) -> Sequence[Item]:
        """Forwarded to the task."""
        return self.inner.items(split)

    def horizon_of(self, item: Item) -> int:
        """The task's number of turns for the item if the wrapper does not change the turns, else
        the wrapper's horizon."""
        own_turns = self.horizon == self.inner.horizon
        return self.inner.horizon_of(item) if own_turns else self.horizon

    def metrics(self, state: Outer) -> Mapping[str, float | None]:
        """Forwarded to the task."""
        return self.inner.metrics(state.inner)

    def global_info(self, state: Outer) -> str:
        """Forwarded to the task."""
        return self.inner.global_info(state.inner)

    def privileged_info(self, state: Outer) -> str:
        """Forwarded to the task."""
        return self.inner.privileged_info(state.inner)

    def legal_action(self, state: Outer, agent: str, rng: np.random.Generator) -> str | None:
        """Forwarded to the task."""
        return self.inner.legal_action(state.inner, agent, rng)

    def render(self, state: Outer) -> str | None:
        """Forwarded to the task."""
        return self.inner.render(state.inner)

    def picture(self, state: Outer) -> Picture | None:
        """Forwarded to the task."""
        return self.inner.picture(state.inner)

    def prepare(self, item: Item) -> Any:
        """Forwarded to the task. The wrapper's `reset` passes the returned object on to the task's
        `reset`."""
        return self.inner.prepare(item)

    def abandon(self, state: Outer) -> None:
        """Forwarded to the task."""
        self.inner.abandon(state.inner)

    def costs(self) -> Mapping[str, float]:
        """Forwarded to the task."""
        return self.inner.costs()

    def close(self) -> None:
        """Forwarded to the task."""
        self.inner.close()
