"""The host: learners, followers and generators of one placement behind one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .generator import Generator
from .learner import Learner
from .network_key import NetworkKey

if TYPE_CHECKING:
    from .rows import Outputs, Row

Given = TypeVar("Given")


class Together(Protocol):
    """What calls on models give, by model; side by side where their host can."""

    def __call__(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        """Each call is on its own model alone; the first failure in their order is raised."""


def one_by_one(calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
    """In their order."""
    return {key: call() for key, call in calls.items()}


class Follower(ABC):
    """What a trained model said a while ago: the reference that a policy is held to, or a past self
    to play against. It is as the model was when the run began, until `follow`."""

    @abstractmethod
    def follow(self) -> None:
        """Become the model as it is now."""

    @abstractmethod
    def evaluate(self, groups: Sequence[Sequence[Row]]) -> list[list[Outputs]]:
        """Teacher-forced outputs without gradient, as `Learner.evaluate` gives them."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Errors: OSError where the file cannot be written."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Errors: CheckpointError for a file that is missing, cut short, or of another model."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A player whom a model of the host speaks for."""

    agent: str
    """Whose settings it has: its own, or those of the agent whose past self it is."""
    generator: Generator
    chat: Any
    """The chat format in which it reads and answers."""
    positions: int | None
    """Tokens that its model has places for."""


class ModelHost(ABC):
    """The models of one placement, wherever they live: in this process, in others, elsewhere.

    What it holds may stand for models in other processes: rows and objectives that reach a learner
    are values, and so is what it gives back.
    """

    learners: Mapping[NetworkKey, Learner]
    """Of every trained network, actors and critics."""
    followers: Mapping[NetworkKey, Follower]
    """References and past selves."""
    players: Mapping[str, Hosted]
    """By the name of the player, past selves included."""
    networks: Mapping[NetworkKey, Any]
    """The actors and critics that live in this process; exact evaluation reads their weights."""

    @property
    def generators(self) -> list[Generator]:
        """Each of them once."""
        return list({id(v.generator): v.generator for v in self.players.values()}.values())

    def together(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        """As `Together` says; one after the other here."""
        return one_by_one(calls)

    def publish(self) -> None:
        """Bring every generator up to the learners' weights."""
        for generator in self.generators:
            generator.sync()

    def close(self) -> None:
        """Free what lives outside this process's garbage collector."""
        for generator in self.generators:
            generator.close()


class HostKind(ABC):
    """Settings of a kind of host, as a frozen dataclass. Loading it loads no torch."""

    @abstractmethod
    def build(self, run: Any, tokenizers: Any) -> ModelHost:
        """Load the models of a resolved run, by its own kinds of learners and generators.

        Errors: ConfigError for a missing model or device, or what this kind cannot place.
        """
