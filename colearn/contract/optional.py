"""Optional interfaces of a task, in addition to the members of `DecPOMDP`.

A task class inherits the interfaces that it supports. Code that reads an interface calls
`Interface.of(task)`. The call returns the task itself or, if the task does not inherit the
interface, an object whose methods return neutral answers. `isinstance` works as well.

    Drawable          text, pictures and drawings for reports and the watch page
    ExactlyMeasured   the headline of exact evaluation; QueriedTask, FiniteTask: how it is computed
    ItemHorizons      the maximum number of turns of single items
    LegalActions      random legal actions, which warm-start the embedded model
    PlayedAlone       the task as one agent plays it for the team
    PrivilegedInfo    text for central critics alone
    ProgramEpisodes   episodes that are runs of a program
    ReadsActions      steps that read tokens and log-probabilities
    RewardStructure   who is paid and when, bounds and optimum
    Services          costs and release of what runs outside of the task
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from colearn.contract.engine import Listener
from colearn.contract.headline import Headline
from colearn.contract.picture import Picture
from colearn.contract.reward_credit import Paid
from colearn.errors import TaskError
from colearn.tabular.model import TabularModel


class TaskOption:
    """An optional interface of a task. A task class inherits both the interface and `DecPOMDP`.

    The interface's members either all have the neutral defaults of a task without the interface, or
    are all abstract.
    """

    @classmethod
    def of(cls, task: object) -> Self:
        """Returns the task itself or, if the task does not inherit this interface, an object with
        neutral answers.

        Errors: TaskError for a task that has a member of the interface but does not inherit the
        interface.
        """
        if isinstance(task, cls):
            return task
        refuse_without(cls, task)
        return cls()


class Drawable(TaskOption):
    """A task whose states can be shown in transcripts, reports and the watch page."""

    def render(self, state: Any) -> str | None:
        """The state as text for transcripts; None: no text."""
        return None

    def picture(self, state: Any) -> Picture | None:
        """The state as a picture for reports and the watch page; None: no picture."""
        return None

    def svg(self, state: Any) -> str | None:
        """An SVG drawing of the episode up to `state` for the report; None: no drawing."""
        return None


class ExactlyMeasured(TaskOption):
    """A task with exact measures of a joint policy."""

    exact_headline: Headline | None = None
    """The headline metric with `evaluation.exact`; None: the task's `headline`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An information state: a point at which an agent chooses, with its private history."""

    key: str
    """The name that the task gives to this decision; unique among the agent's decisions."""
    history: tuple[tuple[str, str], ...]
    """Earlier observations and answers of the agent, by turn."""
    observation: str
    """The current observation."""
    replies: tuple[str, ...]
    """The valid replies."""


class QueriedTask(ExactlyMeasured, ABC):
    """A task with enumerable decisions that computes the measures of a joint policy itself."""

    agents: tuple[str, ...]

    @abstractmethod
    def decisions(self, agent: str) -> Sequence[Decision]:
        """All decisions of the agent that valid replies can reach."""

    @abstractmethod
    def judge(self, policy: Mapping[str, Mapping[str, Sequence[float]]]) -> Mapping[str, float]:
        """Exact metrics of a joint policy. `policy` gives the probability of each reply, by agent
        and `Decision.key`; the probabilities of one decision sum to 1."""


class FiniteTask(ExactlyMeasured, ABC):
    """A task that is a finite Dec-POMDP with a known model, such as `dpomdp`."""

    agents: tuple[str, ...]
    horizon: int
    model: TabularModel
    reward_scale: float

    @abstractmethod
    def action_words(self, agent: str) -> tuple[str, ...]:
        """The legal replies, in the order of the model's actions."""

    @abstractmethod
    def shown(self, agent: str, turn: int, observation: int | None) -> str:
        """The text that `observe` returns at `turn` for the index `observation` of the Dec-POMDP
        model; at turn 0, `observation` is None."""

    @abstractmethod
    def rejection_reward(self, turn: int) -> float:
        """The scaled reward for an illegal reply at `turn`."""


class ItemHorizons(TaskOption):
    """A task whose items take different numbers of turns. Memory estimates use the number of turns
    of each item."""

    horizon: int

    def horizon_of(self, item: Any) -> int:
        """The maximum number of turns of an item's episodes, which must not exceed `horizon`. The
        default is `horizon`."""
        return self.horizon


def horizon_of(task: Any, item: Any) -> int:
    """The maximum number of turns of an item's episodes, for any task."""
    longest: int = task.horizon_of(item) if isinstance(task, ItemHorizons) else task.horizon
    return longest


class LegalActions(TaskOption):
    """A task that provides random legal actions. The embedded model is warm-started on random legal
    actions. Checks, memory estimates and the program `random` also use random legal actions."""

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> str | None:
        """A legal action, chosen at random without regard to its quality; None: no action is
        available."""
        return None


class PlayedAlone(TaskOption):
    """A task with reward terms for cooperation, which `wrapper: single` leaves out."""

    def alone(self) -> Any:
        """The variant of the task that one agent plays for the whole team; None: the task is used
        unchanged."""
        return None


class PrivilegedInfo(TaskOption):
    """A task that gives centralised critics information that no agent has."""

    def privileged_info(self, state: Any) -> str:
        """Text that no agent sees, for centralised critics in training, such as the hidden state or
        the right answer. A decentralised critic reads this text only if the config enables it."""
        return ""


class ProgramEpisodes(TaskOption):
    """A task whose episodes run outside of the task's state, for example in a program."""

    program: bool = False
    """Whether an episode cannot be forked after its first request. A rollout shape that forks later
    cannot be used to train on this task."""
    steps_here: bool = False
    """Whether `step` works only in the run's own process, for example because connections are open
    there. `run.step_workers` then has no effect."""

    def prepare(self, item: Any) -> Any:
        """Starts an episode of the item without waiting for it, and returns the object with which
        `reset` continues this episode. The rollout calls this method for all items before the first
        `reset`, so that programs start concurrently. `reset` must also accept the item itself,
        because play and task checks do not call this method."""
        return item

    def send(self, state: Any, actions: Mapping[str, Any]) -> Any:
        """Passes a joint action to the episode without waiting for what follows, and returns the
        state from which `step` then executes the same joint action. The rollout calls this method
        as soon as the actions are known, so that episodes continue concurrently even if their
        steps run one after another. The calling thread is that of the rollout's event loop, which
        may be another thread than that of `step`; this method must not wait, because all episodes
        would wait with it. `step` must also accept a state that was not sent, because task checks,
        and wrappers that change joint actions, do not call this method."""
        return state

    def listener(self, state: Any, agent: str) -> Listener | None:
        """The function that receives the text of the agent's answer in `state` during sampling;
        None: no function. The default generator calls this function only if a request samples a
        single action."""
        return None

    def abandon(self, state: Any) -> None:
        """Frees the resources of an episode that ends at `state` because an agent's history no
        longer fits the agent's model."""


class ReadsActions(TaskOption):
    """A task that reads not only the text of an action but also its tokens and
    log-probabilities."""

    reads_actions: bool = False
    """Whether rollouts pass a `SampledAction` for each agent to `step`, with tokens and
    log-probabilities. Task checks pass strings instead; `SampledAction.of` accepts a string or a
    `SampledAction`."""


class RewardStructure(TaskOption):
    """A task that rewards single agents, rewards earlier actions at later turns, or knows bounds of
    its rewards."""

    pays: frozenset[Paid] = frozenset({"team"})
    """The kinds of reward that the task pays: to the team (`Outcome.reward`), to single agents
    (`Outcome.local_rewards` and `earned`), or both."""
    pays_later: bool = False
    """Whether the task rewards some actions at a later turn (`Outcome.earned`). A rollout shape
    that compares candidate actions by immediate rewards cannot be used to train on this task."""
    optimum: float | None = None
    """The optimal return, if known; reports draw it as a line."""
    reward_range: tuple[float, float] | None = None
    """Bounds of one turn's joint reward, if known."""


class Services(TaskOption):
    """A task that uses resources outside this process, such as services, processes or servers."""

    steps_at_once: bool = False
    """Whether steps of different episodes may run concurrently in several threads. The rollout uses
    threads as soon as one step waits. A step that sets an alarm needs the main thread; after the
    first such step, the rollout no longer uses threads."""

    def costs(self) -> Mapping[str, float]:
        """Total use of each service by the task so far in this process, by name, such as `judge
        calls`. Reports show these totals with the run's other costs."""
        return {}

    def close(self) -> None:
        """Ends the processes, threads and servers that the task started in this process. The next
        use of the task starts these resources again."""


OPTIONS: tuple[type[TaskOption], ...] = (
    Drawable,
    ExactlyMeasured,
    FiniteTask,
    ItemHorizons,
    LegalActions,
    PlayedAlone,
    PrivilegedInfo,
    ProgramEpisodes,
    QueriedTask,
    ReadsActions,
    RewardStructure,
    Services,
)


def refuse_unread_members(task: object) -> None:
    """Errors: TaskError for a task or task class that has a member of an optional interface and
    does not inherit the interface, because the library would then ignore the member."""
    kind = task if isinstance(task, type) else type(task)
    for option in OPTIONS:
        if not issubclass(kind, option):
            refuse_without(option, task)


def refuse_without(option: type[TaskOption], task: object) -> None:
    """Errors: TaskError if a task or task class that does not inherit the interface has one of its
    members. If the interface has abstract methods, the error is raised only if the task has all of
    these methods."""
    names, all_of_them = _members(option)
    found_names = [name for name in names if hasattr(task, name)]
    if not found_names or (all_of_them and len(found_names) < len(names)):
        return
    kind = (task if isinstance(task, type) else type(task)).__name__
    raise TaskError(
        f"task.{min(found_names)}: {kind} has it without its interface, so nobody would read it; "
        f"add colearn.contract.{option.__name__} to the bases of {kind}, or rename it"
    )


def _members(option: type[TaskOption]) -> tuple[tuple[str, ...], bool]:
    """The names of the interface's members, and whether they are abstract."""
    if option not in _known:
        abstract: frozenset[str] = getattr(option, "__abstractmethods__", frozenset())
        names = abstract or {name for name in vars(option) if not name.startswith("_")}
        _known[option] = tuple(sorted(names)), bool(abstract)
    return _known[option]


_known: dict[type[TaskOption], tuple[tuple[str, ...], bool]] = {}
