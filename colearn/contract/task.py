"""Task interface: a Dec-POMDP as pure functions of its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from colearn.pictures import Picture
from colearn.types import Outcome, Prompt

from .generator import Listener
from .headline import Headline
from .reward_credit import Paid

Item = TypeVar("Item")
State = TypeVar("State")


class DecPOMDP(ABC, Generic[Item, State]):
    """A team's problem (I, S, O, A, R, T, H): each agent sees its own text, all share one reward.

    States are immutable, and every method is a pure function of its arguments: rollout trees branch
    without copying, steps may run in a process pool, and (item, seed, actions) reproduce an
    episode. All randomness comes from `rng`. Settings are the constructor's keyword arguments.

    Simultaneous play: every agent observes at every turn. Sequential play, workflows and games:
    `observe` returns None for the agents that do not act now. A payoff per player goes into
    `Outcome.local_rewards`, the team's part into `Outcome.reward`.

    `colearn check NAME` and `colearn.testing.check_task` check a task against this contract.
    """

    agents: tuple[str, ...]
    """I: the agents' names."""
    horizon: int
    """H: the maximum number of turns. The rollout ends an episode here, and V = 0 after it."""
    pays: frozenset[Paid] = frozenset({"team"})
    """The kinds of reward it pays: to the team (`Outcome.reward`), to single agents
    (`Outcome.local_rewards` and `earned`), or both."""
    pays_later: bool = False
    """Whether some actions are paid at a later turn (`Outcome.earned`). A shape that compares
    candidates by immediate rewards cannot train such a task."""
    headline: Headline = Headline()
    """The metric by which runs are compared: `return` (the team's reward, or the players' mean
    payoff if the task pays no team) or one of `metrics`. `evaluation.headline` overrides it."""
    exact_headline: Headline | None = None
    """The headline with `evaluation.exact`, which computes better measures; None: `headline`."""
    reads_actions: bool = False
    """Whether `step` receives `Said` texts, which carry the sampled action with its tokens and
    log-probabilities."""
    steps_here: bool = False
    """Whether `step` works in the run's own process alone, as with connections that are open there:
    `run.step_workers` then has no effect."""
    program: bool = False
    """Whether an episode is the run of a program, which cannot be forked after its first request.
    A shape that forks later cannot train such a task."""
    optimum: float | None = None
    """The optimal return, if known; reports draw it."""
    reward_range: tuple[float, float] | None = None
    """Bounds of one turn's joint reward, if known; reports draw them."""

    @abstractmethod
    def items(self, split: str) -> Sequence[Item]:
        """D: the items of split 'train' or 'test'; never empty."""

    @abstractmethod
    def reset(self, item: Item, rng: np.random.Generator) -> State:
        """The state of turn 0."""

    @abstractmethod
    def observe(self, state: State, agent: str) -> str | Prompt | None:
        """O_i: the new observation of `agent` at this turn; None if it does not act.

        Earlier observations and actions stay in the agent's history, so return only new text, or a
        `Prompt` with `fresh=True`, which opens a new context.
        """

    @abstractmethod
    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        """T and R: the next state and reward for the joint action of all acting agents.

        The rollout passes each action's text without its reasoning (`<think>...</think>`, whole or
        cut); the action itself keeps it.
        """

    @abstractmethod
    def metrics(self, state: State) -> Mapping[str, float | None]:
        """Further measures of the final state (IoU, pass rate, ...) with fixed keys. In a game
        `payoff_AGENT` is each player's payoff, by which leagues count games. None: not
        measured, and in no mean."""

    def horizon_of(self, item: Item) -> int:
        """The maximum number of turns of an item's episodes, at most `horizon`, the default. Memory
        estimates count it."""
        return self.horizon

    def global_info(self, state: State) -> str:
        """m_t: text for centralised and decentralised critics in training, such as the turn and the
        last reward (CoLLM, E.3). Agents never see it."""
        return ""

    def privileged_info(self, state: State) -> str:
        """Text that no agent sees, for centralised critics in training, such as the hidden state or
        the right answer. A decentralised critic reads it only if the config says so."""
        return ""

    def legal_action(self, state: State, agent: str, rng: np.random.Generator) -> str | None:
        """A random legal action without skill, used to warm-start the embedded model; None if the
        task does not provide one."""
        return None

    def listener(self, state: State, agent: str) -> Listener | None:
        """Receives the text of the agent's answer in `state` while it is sampled; None: nobody
        listens. The default generator calls it if a single action is sampled."""
        return None

    def render(self, state: State) -> str | None:
        """The state as text for transcripts; None: nothing to show."""
        return None

    def picture(self, state: State) -> Picture | None:
        """The state as a picture for reports and the watch page; None: no picture."""
        return None

    def alone(self) -> DecPOMDP[Item, State]:
        """This task for `wrapper: single`, where one agent plays for the whole team: without reward
        terms for cooperation. Returns itself if there are none."""
        return self

    def svg(self, state: State) -> str | None:
        """An SVG drawing of the episode up to `state` for the report; None: no drawing."""
        return None

    def abandon(self, state: State) -> None:
        """Frees what the episode at `state` holds open: it ends there, because an agent's history
        no longer fits its model."""

    def costs(self) -> Mapping[str, float]:
        """Totals of the services that the task used so far in this process, by name, such as
        `judge calls`. Reports show them beside the run's other costs."""
        return {}

    def close(self) -> None:
        """Ends the processes, threads and servers that the task started in this process. The next
        use starts them anew."""

    def joint_observations(self, state: State) -> Mapping[str, Prompt]:
        """The prompts of all agents that act in `state`, by agent."""
        seen = {agent: self.observe(state, agent) for agent in self.agents}
        return {
            agent: shown if isinstance(shown, Prompt) else Prompt(shown)
            for agent, shown in seen.items()
            if shown is not None
        }
