"""Player and cast interfaces: a player is a model, program or server that acts for an agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from colearn.contract.bounds import check_bounds
from colearn.contract.types import Action, Observation, Tree
from colearn.text.reasoning import without_reasoning

from .engine import TokenAnswer
from .task import DecPOMDP


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """A request for actions of a seat (one agent's place in an episode), one action per seed."""

    player: Player
    seat: str
    task: DecPOMDP[Any, Any]
    state: Any
    observation: Observation
    history: Any
    """`TokenAnswer.history` of the seat's last action; None if a new context begins."""
    seeds: tuple[int, ...]
    greedy: bool = False


@dataclass(frozen=True, slots=True)
class SampledAction:
    """An action in the form in which a task with `reads_actions` receives it."""

    action: Action
    player: Player | None = None
    """The player that sampled the action; None in a process of `run.step_workers`."""
    context: Sequence[int] = ()
    """The token ids before the action; empty for a player without tokens."""

    @classmethod
    def of(cls, action: str | SampledAction) -> SampledAction:
        """Convert an action that `step` received; a string becomes an action without tokens."""
        return action if isinstance(action, SampledAction) else cls(Action(action))

    @property
    def text(self) -> str:
        """The text without its reasoning."""
        return without_reasoning(self.action.text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the player, whose model stays in this process."""
        return SampledAction, (self.action, None, self.context)


def text_of(action: str | SampledAction) -> str:
    """The text of an action, without its reasoning."""
    return action.text if isinstance(action, SampledAction) else action


class Player(ABC):
    """A language model, a program or a server; an episode's cast assigns players to seats.

    An update uses only the actions of language models whose weights are trained.
    """

    truncates: bool = True
    """Whether a history that does not fit the player's model ends only the episode. False: the run
    ends."""

    @abstractmethod
    async def act(self, request: ActionRequest) -> list[TokenAnswer]:
        """Returns one answer for each seed, in the order of the seeds; calls may run concurrently.
        The action drawn for a seed depends only on the seed and the history."""

    @property
    def positions(self) -> int | None:
        """Maximum length of the input of the player's model, in tokens; None: unknown."""
        return None

    @property
    def draws_candidates(self) -> bool:
        """Whether several of the player's actions at a node can be compared; the actions of a
        program cannot be compared."""
        return True

    @property
    def sampling_temperature(self) -> float | None:
        """The player's sampling temperature; None if the player does not sample, or samples on a
        server."""
        return None

    def read(self, observation: Observation, last: Action | None) -> Observation:
        """Returns the observation with the tokens that it adds to the history after the action
        `last`. If `last` is None, the observation begins a new context."""
        return observation

    def spell(self, action: Action) -> Sequence[bytes]:
        """The bytes that each token contributes to the text of an action; empty for players without
        tokens."""
        return ()

    def at(self, done: float) -> Player:
        """Returns the player with the sampling parameters that apply in training when the fraction
        `done` of the budget has been used."""
        return self

    def version(self) -> int:
        """Version of the player's weights; 0 if the weights never change."""
        return 0

    def close(self) -> None:  # noqa: B027 - most players hold nothing beyond Python's own memory
        """Release resources outside this process."""


def past_self(agent: str, slot: int) -> str:
    """The name of an agent's past self in a slot of a cast's pool."""
    return f"{agent}@{slot}"


class Cast(ABC):
    """A strategy that assigns players to seats (the agents' places in an episode), separately for
    each episode. A cast can swap players, or assign past selves or partners."""

    pool: int = 0
    """Number of slots for past selves; each slot holds a copy of every trained model."""

    def __post_init__(self) -> None:
        """Errors: ConfigError for a setting out of bounds."""
        check_bounds(self)

    @abstractmethod
    def seats(
        self,
        item: Any,
        episode: int,
        agents: Sequence[str],
        players: Sequence[str],
        rng: np.random.Generator,
    ) -> Mapping[str, str]:
        """Returns the name of a player for every agent of the task. The player that is configured
        for an agent has the agent's name; `past_self` gives the names of past selves."""

    def settle(self, episodes: Sequence[Tree[Any]]) -> int | None:
        """Receives an iteration's episodes after its update. Returns the pool slot into which the
        current models are copied; None leaves the pool unchanged."""
        return None

    def state(self) -> Mapping[str, float]:
        """State that persists between iterations; saved in checkpoints."""
        return {}

    def restore(self, state: Mapping[str, float]) -> None:
        """The inverse of `state`."""
        if state:
            raise TypeError(f"{type(self).__name__} remembers nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The input of a program. This input includes the whole state, because search algorithms need
    the whole state; the program's author decides which parts to use."""

    task: DecPOMDP[Any, Any]
    state: Any
    seat: str
    text: str
    """The seat's observation."""
    rng: np.random.Generator
    """The program's only source of randomness, so that episodes are reproducible."""


@runtime_checkable
class Acts(Protocol):
    """A program: any object with this method."""

    def act(self, view: View) -> str:
        """Returns the action's text, which depends only on the view."""
        ...
