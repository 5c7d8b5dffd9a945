"""Host interface: a kind of host places a team's models in processes; frozen copies of models, and
calls of several models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from .network_key import NetworkKey

if TYPE_CHECKING:
    from .rows import Outputs, Row

Given = TypeVar("Given")


class Together(Protocol):
    """Runs one call per model and returns the results by model. The calls run in parallel if the
    models' places support parallel calls."""

    def __call__(self, calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
        """Run the calls; each call uses only the model that is its key in `calls`. If several calls
        fail, the error of the first failed call, in the order of `calls`, is raised."""


def one_by_one(calls: Mapping[NetworkKey, Callable[[], Given]]) -> dict[NetworkKey, Given]:
    """Runs the calls sequentially, in their order."""
    return {key: call() for key, call in calls.items()}


def in_threads(
    pool: Executor,
    calls: Mapping[NetworkKey, Callable[[], Given]],
    group: Callable[[NetworkKey], Hashable],
) -> dict[NetworkKey, Given]:
    """Runs the calls of each group sequentially, and different groups concurrently."""
    groups: dict[Hashable, dict[NetworkKey, Callable[[], Given]]] = {}
    for key, call in calls.items():
        groups.setdefault(group(key), {})[key] = call
    futures: dict[NetworkKey, Future[dict[NetworkKey, Given]]] = {}
    for together in groups.values():
        futures |= dict.fromkeys(together, pool.submit(one_by_one, together))
    return {key: futures[key].result()[key] for key in calls}


class FrozenCopy(ABC):
    """A copy of a trained model, used as a reference policy or as a past self (an opponent). The
    copy holds the run's initial weights until `copy_weights` is called."""

    @abstractmethod
    def copy_weights(self) -> None:
        """Copy the model's current weights."""

    @abstractmethod
    def evaluate(self, rows: Sequence[Row]) -> list[Outputs]:
        """Returns teacher-forced outputs without gradient, one per row."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the copy. Errors: OSError if the file cannot be written."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Read the copy. Errors: CheckpointError for a missing, truncated or foreign file."""


class HostKind(ABC):
    """Settings of a kind of host, as a frozen dataclass. Importing the dataclass does not import
    torch."""

    joint_passes: ClassVar[bool] = False
    """Whether the learners are in the run's own process, as joint passes of several require."""

    @abstractmethod
    def build(self, run: Any, tokenizers: Any) -> Any:
        """Returns a `Team` with the models of a resolved run, with its kinds of learners and
        generators. Its players are those that these models play.

        Errors: ConfigError for a missing model or device, or an unsupported placement.
        """

    def check(self, run: Any) -> None:  # noqa: B027 - most kinds take every run
        """Check a resolved run before models are loaded.

        Errors: ConfigError for a resolved run that this kind does not support.
        """
