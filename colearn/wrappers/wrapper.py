"""What every wrapper does alike: hand on what the task itself answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from colearn.contract import DecPOMDP

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


class Wrapper(DecPOMDP[Item, Outer], Generic[Item, State, Outer]):
    """Items, metrics, m_t are the task's; so are `render`, `picture`, `legal_action`, if any."""

    def __init__(self, inner: DecPOMDP[Item, State]) -> None:
        self.inner = inner
        self.agents = inner.agents
        self.horizon = inner.horizon
        self.reward_range = inner.reward_range
        self._hand_on("render", "picture", "legal_action")

    def items(self, split: str) -> Sequence[Item]:
        """The task's."""
        return self.inner.items(split)

    def metrics(self, state: Outer) -> Mapping[str, float]:
        """The task's."""
        return self.inner.metrics(state.inner)

    def global_info(self, state: Outer) -> str:
        """The task's."""
        return self.inner.global_info(state.inner)

    def _hand_on(self, *names: str) -> None:
        # on the object, so that a wrapper has only what its task has; partial, so that it pickles
        for name in names:
            method = getattr(self.inner, name, None)
            if method is not None:
                setattr(self, name, partial(_on_inner, method))


def _on_inner(method: Callable[..., Any], state: HasInner[Any], *rest: Any) -> Any:
    return method(state.inner, *rest)
