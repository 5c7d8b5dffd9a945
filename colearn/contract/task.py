"""The task: a Dec-POMDP as a pure function of state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from colearn.pictures import Picture
from colearn.types import Outcome, Prompt

from .credit import Paid
from .headline import Headline

Item = TypeVar("Item")
State = TypeVar("State")


class DecPOMDP(ABC, Generic[Item, State]):
    """A team's problem (I, S, O, A, R, T, H): each agent sees its own text, all share one reward.

    A state is immutable, and every method is a pure function of its arguments: a tree of rollouts
    branches without copying, steps run in a pool, an episode replays from (item, seed, actions).
    All randomness comes from the `rng` given. Settings are the constructor's keyword arguments.

    Simultaneous play: every agent observes at every turn. Sequential play, workflows and games:
    `observe` returns None for the agents that do not act now. A payoff per player goes into
    `Outcome.local_rewards`, the team's part into `Outcome.reward`.

    `colearn check NAME` and `colearn.testing.check_task` hold a task to this contract.
    """

    agents: tuple[str, ...]
    """I: the agents' names."""
    horizon: int
    """H: the most turns an episode has. The rollout ends an episode here; after it V = 0."""
    pays: frozenset[Paid] = frozenset({"team"})
    """The kinds of reward that it gives out: of the whole team (`Outcome.reward`), of single agents
    (`Outcome.local_rewards` and `earned`), or both."""
    pays_later: bool = False
    """Some actions are paid at a later turn (`Outcome.earned`). A shape that compares candidates by
    what they are paid at once cannot train it."""
    headline: Headline = Headline()
    """The metric that a run is judged by: `return` (the team's reward, or the players' mean payoff
    where the task pays no team) or one of `metrics`. `evaluation.headline` replaces it."""
    exact_headline: Headline | None = None
    """The headline where `evaluation.exact` computes better measures; None keeps `headline`."""
    reads_actions: bool = False
    """`step` is given `Said` texts, which carry their action: for programs that are told token
    counts and log-probabilities. Such a task is stepped in this process."""
    program: bool = False
    """Episodes are runs of a program that cannot be forked after its first request. A shape that
    forks later cannot train it."""
    optimum: float | None = None
    """The best return that any team can have, where it is known; reports draw it."""
    reward_range: tuple[float, float] | None = None
    """Bounds of one turn's joint reward where they are known; reports draw them."""

    @abstractmethod
    def items(self, split: str) -> Sequence[Item]:
        """D: the items of split 'train' or 'test'; never empty."""

    @abstractmethod
    def reset(self, item: Item, rng: np.random.Generator) -> State:
        """The state of turn 0."""

    @abstractmethod
    def observe(self, state: State, agent: str) -> str | Prompt | None:
        """O_i: what `agent` is newly shown at this turn; None where it does not act.

        Earlier observations and actions stay in the agent's history, so return what is new only,
        or a `Prompt` with `fresh=True`, which opens a new context.
        """

    @abstractmethod
    def step(
        self, state: State, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[State]:
        """T and R: the joint action of all agents that observed, to the next state and reward."""

    @abstractmethod
    def metrics(self, state: State) -> Mapping[str, float]:
        """What the final state is worth beside its reward (IoU, pass rate, ...); fixed keys. In a
        game `payoff_AGENT` is what each player got out of it: leagues count games by it."""

    def global_info(self, state: State) -> str:
        """m_t: text that every critic may read in training, central or decentral, such as the turn
        and the last reward (CoLLM, E.3). Agents never see it."""
        return ""

    def privileged_info(self, state: State) -> str:
        """What no agent sees and a central critic may be told in training, such as the hidden state
        or the right answer. A decentral critic is told only where a config says so."""
        return ""

    def legal_action(self, state: State, agent: str, rng: np.random.Generator) -> str | None:
        """Some action that the task understands, drawn at random and without skill: what the
        embedded model is warm-started on. None where the task draws none."""
        return None

    def render(self, state: State) -> str | None:
        """The state as text for a reader of transcripts; None where there is nothing to show."""
        return None

    def picture(self, state: State) -> Picture | None:
        """The state as a picture for reports and the watch page; None where there is none."""
        return None

    def alone(self) -> DecPOMDP[Item, State]:
        """This task as one agent plays it for the whole team (`wrapper: single`): without what its
        reward pays for cooperation. Itself where it pays for nothing of the kind."""
        return self

    def svg(self, state: State) -> str | None:
        """The whole episode up to `state` as a drawing, which the report shows as an image; None
        where there is none."""
        return None

    def joint_observations(self, state: State) -> Mapping[str, Prompt]:
        """The prompts of all agents that act in `state`; empty where none does."""
        seen = {agent: self.observe(state, agent) for agent in self.agents}
        return {
            agent: shown if isinstance(shown, Prompt) else Prompt(shown)
            for agent, shown in seen.items()
            if shown is not None
        }
