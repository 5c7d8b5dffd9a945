"""Host interface: learners, frozen copies and engines of one placement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .engine import TokenEngine
from .learner import Learner
from .network_key import NetworkKey

if TYPE_CHECKING:
    from .rows import Outputs, Row

Given = TypeVar("Given")


class Together(Protocol):
    """Runs one call per model and returns the results by model; in parallel if the host can."""

    def __call__(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        """Every call uses its own model only; the first failure in their order is raised."""


def one_by_one(calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
    """Runs the calls sequentially, in their order."""
    return {key: call() for key, call in calls.items()}


def in_threads(
    pool: Executor,
    calls: Mapping[NetworkKey, Callable[[], Given]],
    group: Callable[[NetworkKey], Hashable],
) -> dict[NetworkKey, Given]:
    """Runs the calls of one group sequentially, and groups at the same time."""
    groups: dict[Hashable, dict[NetworkKey, Callable[[], Given]]] = {}
    for key, call in calls.items():
        groups.setdefault(group(key), {})[key] = call
    futures: dict[NetworkKey, Future[dict[NetworkKey, Given]]] = {}
    for together in groups.values():
        futures |= dict.fromkeys(together, pool.submit(one_by_one, together))
    return {key: futures[key].result()[key] for key in calls}


class FrozenCopy(ABC):
    """A copy of a trained model: a reference policy, or a past self as an opponent. It holds the
    weights of the run's start until `copy_weights`."""

    @abstractmethod
    def copy_weights(self) -> None:
        """Copy the model's current weights."""

    @abstractmethod
    def evaluate(self, groups: Sequence[Sequence[Row]]) -> list[list[Outputs]]:
        """Teacher-forced outputs without gradient, as `Learner.evaluate` returns them."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the copy. Errors: OSError if the file cannot be written."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Read the copy. Errors: CheckpointError for a missing, truncated or foreign file."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A player that a model of the host plays."""

    agent: str
    """The agent whose settings it uses. A past self uses the settings of its agent."""
    engine: TokenEngine
    spec: Any
    """Its `AgentSpec`: sampling, window, adapter, chat format, positions."""


class ModelHost(ABC):
    """The models of one placement, in this process or elsewhere.

    Its objects may be proxies of models in other processes: rows and objectives passed to a learner
    are plain values, and so are the results.
    """

    learners: Mapping[NetworkKey, Learner]
    """Learners of every trained network, actors and critics."""
    copies: Mapping[NetworkKey, FrozenCopy]
    """References and past selves."""
    players: Mapping[str, Hosted]
    """By player name, including past selves."""
    networks: Mapping[NetworkKey, Any]
    """Actors and critics in this process, or copies of them; exact evaluation reads actors."""

    @property
    def parameters(self) -> Mapping[NetworkKey, int]:
        """Number of trained parameters by learner."""
        return {
            key: sum(parameter.numel() for parameter in self.networks[key].trained().values())
            for key in self.learners
        }

    @property
    def serial(self) -> bool:
        """Whether models change one after the other, in the thread that asks for it."""
        return False

    @property
    def engines(self) -> list[TokenEngine]:
        """The distinct engines."""
        return list({id(one.engine): one.engine for one in self.players.values()}.values())

    def together(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        """Implements `Together`; sequential by default."""
        return one_by_one(calls)

    def publish(self) -> None:
        """Update every engine to the learners' weights."""
        for engine in self.engines:
            with engine.busy("transfer"):
                engine.sync()

    def rest(self) -> None:
        """Tell every engine that the models update now."""
        for engine in self.engines:
            engine.rest()

    def fetch(self) -> None:  # noqa: B027 - networks may be the learners' own
        """Load the learners' weights into `networks` that are copies; called before an exact
        evaluation."""

    def close(self) -> None:
        """Free resources outside Python's garbage collector."""
        for engine in self.engines:
            engine.close()


@dataclass(frozen=True, slots=True)
class HostWorker:
    """Processes with some of a run's models, and what a cluster reserves for each of them."""

    name: str
    keys: tuple[NetworkKey, ...]
    gpus: float
    cpus: float | None
    """None: an equal share of the cluster's."""
    processes: int = 1


class HostKind(ABC):
    """Settings of a kind of host, as a frozen dataclass. Importing it does not import torch."""

    @abstractmethod
    def build(self, run: Any, tokenizers: Any) -> ModelHost:
        """Load the models of a resolved run, with its kinds of learners and generators.

        Errors: ConfigError for a missing model or device, or an unsupported placement.
        """

    def workers(self, run: Any) -> list[HostWorker]:
        """Where the models of a resolved run are, if not in the process of the run."""
        return []

    def check(self, run: Any) -> None:  # noqa: B027 - most kinds take every run
        """Called before anything is loaded.

        Errors: ConfigError for a resolved run that this kind does not support.
        """
