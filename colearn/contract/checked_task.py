"""A task as the library calls it: the task's code is guarded, its results are checked against the
contract, and each error is one line that names the task, the method and the item."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from colearn.contract.types import Observation, Outcome
from colearn.errors import ColearnError, TaskError, line_of, printable, reason_of

from .global_switches import checked, guarded
from .seeding import Key, derive_rng
from .task import DecPOMDP
from .task_results import (
    validate_costs,
    validate_horizon,
    validate_items,
    validate_metrics,
    validate_observation,
    validate_outcome,
    validate_text,
)

Task = DecPOMDP[Any, Any]

_LONGEST_ITEM = 80


@dataclass(frozen=True, slots=True)
class CheckedTask:
    """A task, and the item that is played. Every method calls the task's method of the same name.

    Errors: TaskError if the task's code raises an exception, or if a result breaks the contract.
    """

    task: Task
    item: str | None = None
    """The item's name in errors (`item_name`); None for calls without an item."""

    def items(self, split: str) -> Sequence[Any]:
        """All items of a split. A lazy `Sequence` is not copied."""
        with checked("task.items", importing=True), asking(self.task, "items", split=split):
            items = validate_items(self.task.items(split), split)
            return items if isinstance(items, Sequence) else list(items)

    def horizon_of(self, item: Any) -> int:
        """The maximum number of turns of an item's episodes."""
        with asking(self.task, "horizon_of", self.item or item_name(item)):
            return validate_horizon(self.task.horizon_of(item), self.task.horizon)

    def prepare(self, item: Any) -> Any:
        """Starts an episode of a program; returns the item with which `reset` continues it."""
        with self._asking("prepare"):
            return self.task.prepare(item)

    def reset(self, item: Any, rng: np.random.Generator) -> Any:
        """The initial state of an item."""
        with self._asking("reset"):
            return self.task.reset(item, rng)

    def observe(self, state: Any) -> dict[str, Observation]:
        """The observation, without tokens, of each acting agent in `state`."""
        with self._asking("observe"):
            by_agent = {
                agent: validate_observation(self.task.observe(state, agent), agent)
                for agent in self.task.agents
            }
        return {agent: seen for agent, seen in by_agent.items() if seen is not None}

    def send(self, state: Any, actions: Mapping[str, Any]) -> Any:
        """Passes a joint action to a program; returns the state from which `step` executes it."""
        with self._asking("send"):
            return self.task.send(state, actions)

    def step(
        self, state: Any, actions: Mapping[str, Any], rng: np.random.Generator
    ) -> Outcome[Any]:
        """The outcome of a joint action. Actions are texts, or `SampledAction` objects if the task
        reads such objects."""
        with self._asking("step"):
            return validate_outcome(self.task.step(state, actions, rng), self.task.agents)

    def transition(
        self, state: Any, actions: Mapping[str, Any], keys: tuple[Key, ...]
    ) -> Outcome[Any]:
        """Calls `step` with the random generator of `keys`."""
        return self.step(state, actions, derive_rng(*keys))

    def abandon(self, state: Any) -> None:
        """Frees the resources of an episode that ends at `state`."""
        with self._asking("abandon"):
            self.task.abandon(state)

    def metrics(self, state: Any) -> dict[str, float | None]:
        """The metrics of a terminal state."""
        with self._asking("metrics"):
            return dict(validate_metrics(self.task.metrics(state)))

    def global_info(self, state: Any) -> str:
        """The global information m_t."""
        with self._asking("global_info"):
            return validate_text(self.task.global_info(state), "global_info")

    def privileged_info(self, state: Any) -> str:
        """The privileged information, for centralised critics only."""
        with self._asking("privileged_info"):
            return validate_text(self.task.privileged_info(state), "privileged_info")

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> str | None:
        """A random legal action; None if the task does not offer legal actions."""
        with self._asking("legal_action"):
            action = self.task.legal_action(state, agent, rng)
            return None if action is None else validate_text(action, "legal_action")

    def render(self, state: Any) -> str | None:
        """The state as text; None if the task does not render states."""
        with self._asking("render"):
            text = self.task.render(state)
            return None if text is None else validate_text(text, "render")

    def picture(self, state: Any) -> dict[str, Any] | None:
        """The state as a picture in plain data; None if the task has no picture."""
        with self._asking("picture"):
            picture = self.task.picture(state)
            return None if picture is None else picture.plain()

    def costs(self) -> Mapping[str, float]:
        """The total use of each service so far in this process."""
        with self._asking("costs"):
            return validate_costs(self.task.costs())

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Context for the use of a result: adds the task and the item to a TaskError."""
        with _placed(self.task, self.item):
            yield

    @contextmanager
    def _asking(self, method: str) -> Iterator[None]:
        with asking(self.task, method, self.item):
            yield


@contextmanager
def asking(
    task: Task | type[Task], method: str, item: str | None = None, *, split: str | None = None
) -> Iterator[None]:
    """Context for a call of `task.METHOD`, of a task or, while the task is being constructed, of
    its class. `item` is the result of `item_name`, and `split` the split whose items are read.

    Errors: as for `calling`, and TaskError if the task breaks its contract. The error names the
    task, and the item or the split.
    """
    with _placed(task, item, split=split), calling(f"task.{method}:"):
        yield


@contextmanager
def calling(who: str, *, remedy: str = "fix it there") -> Iterator[None]:
    """Context for a call of a user's code. Global switches that the code changes are put back
    (`guarded`).

    Errors: TaskError, which begins with `who` and names the source line and the remedy, for any
    exception, including SystemExit and asyncio's CancelledError, which would end a branch as if it
    had been cancelled. ColearnErrors and KeyboardInterrupt propagate unchanged.
    """
    try:
        with guarded(who):
            yield
    except (ColearnError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise TaskError(
            f"{who} raised {type(error).__name__}: {reason_of(error)} ({line_of(error)}); {remedy}"
        ) from error


@contextmanager
def _placed(
    task: Task | type[Task], item: str | None = None, *, split: str | None = None
) -> Iterator[None]:
    """Context that adds the task, and the item or the split, to a TaskError. Other exceptions
    propagate unchanged."""
    try:
        yield
    except TaskError as error:
        place = f"in {(task if isinstance(task, type) else type(task)).__name__}"
        for kind, name in (("item", item), ("split", split)):
            if name is not None:
                place += f", {kind} '{name}'"
        raise TaskError(f"{error}; {place}") from error


def item_name(item: Any) -> str:
    """A short name of an item for errors, and for what is known by item, such as mean returns: a
    long name ends with its digest, because the texts of items may begin alike."""
    try:
        name = printable(str(item))
    except Exception as error:  # noqa: BLE001 - the name is used only in an error message
        name = f"{type(item).__name__} whose str() raises {type(error).__name__}"
    if len(name) <= _LONGEST_ITEM:
        return name
    end = f" ... {hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"
    return name[: _LONGEST_ITEM - len(end)] + end


def check_frame(task: Task) -> None:
    """Check the members of a task that every run reads before the first episode: `agents`,
    `horizon`, `pays` and `reward_range`.

    Whether the agents' names can be keys and folders is checked elsewhere. Errors: TaskError, one
    line that names the member.
    """
    agents = getattr(task, "agents", None)
    if (
        not isinstance(agents, tuple)
        or not agents
        or not all(isinstance(agent, str) for agent in agents)
        or len(set(agents)) != len(agents)
    ):
        raise TaskError(
            f"task.agents: must be a tuple of different, non-empty names, got {agents!r}"
        )
    horizon = getattr(task, "horizon", None)
    if isinstance(horizon, bool) or not isinstance(horizon, Integral) or horizon < 1:
        raise TaskError(f"task.horizon: must be a whole number of 1 or more, got {horizon!r}")
    pays: object = task.pays
    if not isinstance(pays, frozenset | set) or not pays or not pays <= {"team", "local"}:
        raise TaskError(
            f"task.pays: must be a frozenset of 'team', 'local' or both, got {pays!r:.60}"
        )
    bounds = task.reward_range
    if bounds is not None and not (
        isinstance(bounds, tuple)
        and len(bounds) == 2
        and all(isinstance(bound, Real) and math.isfinite(bound) for bound in bounds)
        and bounds[0] <= bounds[1]
    ):
        raise TaskError(
            f"task.reward_range: must be None or (low, high), both finite, got {bounds!r}"
        )
