"""Task interface: a Dec-POMDP, given by pure functions of the task's state.

Every task has five methods, `agents` and `horizon`. Everything else is an option: an attribute or a
method with a neutral default, which a task overrides if it offers more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from colearn.contract.types import Observation, Outcome

from .exact import EnumeratedGame, FiniteProblem
from .headline import Headline
from .picture import Picture
from .reward_credit import Paid

Item = TypeVar("Item")
State = TypeVar("State")


class DecPOMDP(ABC, Generic[Item, State]):
    """A team's problem (I, S, O, A, R, T, H): each agent sees its own text, and all agents share
    one reward.

    States are immutable, and every method is a pure function of its arguments: rollout trees branch
    without copying, steps may run in a process pool, and (item, seed, actions) reproduce an
    episode. All randomness comes from `rng`. Settings are the constructor's keyword arguments.

    Simultaneous play: every agent observes at every turn. Sequential play, workflows and games:
    `observe` returns None for the agents that do not act at this turn. A payoff per player belongs
    in `Outcome.local_rewards`, and the team's part in `Outcome.reward`. A task with payoffs
    lists in `pays` the kinds of reward that it pays.

    The five abstract methods come first. The options follow, by what they are for:

        information      global_info, privileged_info
        rewards          pays, pays_later, optimum, reward_range
        actions          legal_action, action_words, reads_actions
        items            horizon_of
        pictures         render, picture
        one agent        alone
        services         steps_at_once, costs, close
        programs         program, steps_here, prepare, send, abandon
        exact measures   exact_headline, finite_problem, enumerated_game

    `colearn check NAME` and `colearn.contract.testing.check_task` check a task against this
    contract.
    """

    agents: tuple[str, ...]
    """I: the agents' names."""
    horizon: int
    """H: the maximum number of turns. The rollout ends an episode after this number of turns; V is
    0 at the end."""
    headline: Headline = Headline()
    """The metric that is used to compare runs: `return` (the team's reward, or the players' mean
    payoff if the task pays no team reward) or one of `metrics`. `evaluation.headline` overrides
    it."""

    @abstractmethod
    def items(self, split: str) -> Sequence[Item]:
        """D: the items of split 'train' or 'test'; never empty."""

    @abstractmethod
    def reset(self, item: Item, rng: np.random.Generator) -> State:
        """The state of turn 0."""

    @abstractmethod
    def observe(self, state: State, agent: str) -> str | Observation | None:
        """O_i: the new observation of `agent` at this turn; None if the agent does not act.

        Earlier observations and actions stay in the agent's history, so return only new text, or an
        `Observation` with `fresh=True`, which opens a new context. The agent's player adds the
        tokens of an `Observation`.
        """

    @abstractmethod
    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        """T and R: the next state and reward for the joint action of all acting agents.

        The rollout passes each action's text without its reasoning (`<think>...</think>`, whole or
        cut); the recorded action keeps its reasoning.
        """

    @abstractmethod
    def metrics(self, state: State) -> Mapping[str, float | None]:
        """Additional metrics of the final state (IoU, pass rate, ...), with fixed keys. In a game,
        `payoff_AGENT` is a player's payoff; in a league, payoffs determine the winner. A metric
        with the value None was not measured and is excluded from means."""

    # Options: information for critics

    def global_info(self, state: State) -> str:
        """m_t: text for centralised and decentralised critics in training, such as the turn and the
        last reward (CoLLM, E.3). Agents never see it."""
        return ""

    def privileged_info(self, state: State) -> str:
        """Text that no agent sees, for centralised critics in training, such as the hidden state or
        the right answer. A decentralised critic reads this text only if the config enables it."""
        return ""

    # Options: rewards

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

    # Options: actions

    def legal_action(self, state: State, agent: str, rng: np.random.Generator) -> str | None:
        """A legal action, chosen at random without regard to its quality; None: no action is
        available. The embedded model is warm-started on random legal actions. Checks, memory
        estimates and the program `legal` also use them."""
        return None

    def action_words(self, agent: str) -> tuple[str, ...] | None:
        """All legal actions of the agent, if they are the same few words in every state; else
        None."""
        return None

    reads_actions: bool = False
    """Whether rollouts pass a `SampledAction` for each agent to `step`, with tokens and
    log-probabilities. Task checks pass strings instead; `SampledAction.of` accepts a string or a
    `SampledAction`."""

    # Options: items

    def horizon_of(self, item: Item) -> int:
        """The maximum number of turns of an item's episodes, which must not exceed `horizon`.
        Memory estimates use it."""
        return self.horizon

    # Options: pictures for transcripts, reports and the watch page

    def render(self, state: State) -> str | None:
        """The state as text for transcripts; None: no text."""
        return None

    def picture(self, state: State) -> Picture | None:
        """The state as a picture for reports and the watch page; None: no picture."""
        return None

    # Options: one agent for the team

    def alone(self) -> DecPOMDP[Any, Any] | None:
        """The variant of the task that one agent plays for the whole team (`wrapper: single`),
        without reward terms for cooperation; None: the task is used unchanged."""
        return None

    # Options: services, processes or servers outside this process

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

    # Options: episodes that run outside of the task's state, for example in a program

    program: bool = False
    """Whether an episode cannot be forked after its first request. A rollout shape that forks later
    cannot be used to train on this task."""
    steps_here: bool = False
    """Whether `step` works only in the run's own process, for example because connections are open
    there. `run.step_workers` then has no effect."""

    def prepare(self, item: Item) -> Any:
        """Starts an episode of the item without waiting for it, and returns the object with which
        `reset` continues this episode. The rollout calls this method for all items before the first
        `reset`, so that programs start concurrently. `reset` must also accept the item itself,
        because play and task checks do not call this method."""
        return item

    def send(self, state: State, actions: Mapping[str, Any]) -> State:
        """Passes a joint action to the episode without waiting for what follows, and returns the
        state from which `step` then executes the same joint action. The rollout calls this method
        as soon as the actions are known, so that episodes continue concurrently even if their
        steps run one after another. The calling thread is that of the rollout's event loop, which
        may be another thread than that of `step`; this method must not wait, because all episodes
        would wait with it. `step` must also accept a state that was not sent, because task checks,
        and wrappers that change joint actions, do not call this method."""
        return state

    def abandon(self, state: State) -> None:
        """Frees the resources of an episode that ends at `state` because an agent's history no
        longer fits the agent's model."""

    # Options: exact measures of a joint policy (`evaluation.exact`)

    exact_headline: Headline | None = None
    """The headline metric with `evaluation.exact`; None: `headline`."""

    def finite_problem(self) -> FiniteProblem | None:
        """The task as a finite Dec-POMDP with a known model; None: it is none."""
        return None

    def enumerated_game(self) -> EnumeratedGame | None:
        """The task as a game with enumerable decisions; None: it is none."""
        return None


def joint_observations(task: DecPOMDP[Any, Any], state: Any) -> dict[str, Observation]:
    """The observations of all agents that act in `state`, by agent."""
    observations = {agent: task.observe(state, agent) for agent in task.agents}
    return {
        agent: observation if isinstance(observation, Observation) else Observation(observation)
        for agent, observation in observations.items()
        if observation is not None
    }
