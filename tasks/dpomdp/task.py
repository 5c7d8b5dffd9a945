"""Classical Dec-POMDPs as text: shipped problems and any `.dpomdp` file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from colearn.contract import (
    DecPOMDP,
    FiniteProblem,
    Headline,
)
from colearn.contract.types import Outcome
from colearn.exact.reader import read_dpomdp
from colearn.text.reasoning import without_reasoning

from ..checks import check_split
from .settings import check_numbers, choose_horizon, choose_problem
from .text import (
    OPENING,
    OPENING_FIELDS,
    TURN,
    TURN_FIELDS,
    check_template,
    rename,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """The only item of both splits."""

    name: str
    """The name of a shipped problem, or of the file without its suffix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayState:
    """The hidden state, the observations and the rewards so far."""

    hidden: int
    """The index of the model's state."""
    turn: int
    """Turns played so far."""
    observations: tuple[int, ...] | None
    """Index of each agent's newest observation; None before the first joint action."""
    value: float
    """The sum of rewards so far, undiscounted and unscaled."""
    legal: bool
    """Whether all replies so far were accepted."""
    reward: float = 0.0
    """The last turn's reward, unscaled."""


class TextDecPOMDP(DecPOMDP[Problem, PlayState]):
    """A Dec-POMDP with finitely many states, whose actions and observations are words.

    Every agent acts at every turn. The reward of a turn is R(s, a, s', o), where s' and o are drawn
    from the model.

    Settings:

    - `problem`: a shipped problem: dec_tiger (the default), climbing, lock, penalty, two_step or
      vault. Instead, `file` can name the path of a `.dpomdp` file.
    - `horizon`: the number of turns. Each shipped problem has a default; with `file`, this setting
      is required.
    - `opening`, the text of turn 0, and `turn`, the text of later turns. They may contain {agent},
      {actions} and {horizon}; `turn` may also contain {observation} and {turn}, which counts from
      1.
    - `words`: replacement texts for actions and observations, by their names in the problem.
    - `penalty`: the reward, instead of R, of a turn in which a reply is rejected. A reply is
      rejected if it is not exactly one of the agent's actions, apart from surrounding space. After
      a rejected reply, the state stays the same and the episode ends. The default is the model's
      worst reward times the number of turns left, including the current one, so no legal play earns
      less. A higher `penalty` may exceed the rewards of legal play at some turn. In this case, the
      team learns to give replies that are rejected, and its exact value can exceed the optimum.
    - `reward_scale` multiplies every reward, the penalty included; metrics are not scaled.

    The task does not apply the discount in a file, because the discount is a setting of the
    algorithm.

    Errors: ConfigError from the constructor, one line that names the setting, or the file's line.
    """

    exact_headline = Headline("exact_return")

    def __init__(
        self,
        *,
        problem: str | None = None,
        file: str | None = None,
        horizon: int | None = None,
        opening: str = OPENING,
        turn: str = TURN,
        words: Mapping[str, str] | None = None,
        penalty: float | None = None,
        reward_scale: float = 1.0,
    ) -> None:
        name, path = choose_problem(problem, file)
        self.horizon = choose_horizon(horizon, name, shipped=file is None)
        check_template("opening", opening, OPENING_FIELDS)
        check_template("turn", turn, TURN_FIELDS)
        check_numbers(penalty, reward_scale)
        self.model = read_dpomdp(path)
        self.agents = self.model.agents
        self.opening, self.turn = opening, turn
        self.penalty, self.reward_scale = penalty, float(reward_scale)
        self._item = Problem(name)
        self._actions, self._observations = rename(self.model, words)
        self._worst = float(self.model.reward.min())
        rewards = [self._worst, float(self.model.reward.max())]
        bounds = [reward * self.reward_scale for reward in rewards]
        bounds += [self.rejection_reward(number) for number in range(self.horizon)]
        self.reward_range = (min(bounds), max(bounds))

    def items(self, split: str) -> Sequence[Problem]:
        """The problem itself, for 'train' and for 'test'."""
        check_split(split)
        return (self._item,)

    def reset(self, item: Problem, rng: np.random.Generator) -> PlayState:
        """A state drawn from b_0."""
        hidden = _draw(self.model.start, rng)
        return PlayState(hidden=hidden, turn=0, observations=None, value=0.0, legal=True)

    def observe(self, state: PlayState, agent: str) -> str | None:
        """The text (`shown`) of the agent's newest observation; None after the last turn or a
        rejection."""
        if state.turn == self.horizon or not state.legal:
            return None
        if state.observations is None:
            return self.shown(agent, state.turn, None)
        return self.shown(agent, state.turn, state.observations[self.agents.index(agent)])

    def step(
        self, state: PlayState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[PlayState]:
        """Draw s' and then o, or end the episode if a reply is rejected."""
        replies = [without_reasoning(actions[agent]).strip() for agent in self.agents]
        vocabularies = [self.action_words(agent) for agent in self.agents]
        if not all(word in words for word, words in zip(replies, vocabularies, strict=True)):
            return self._rejected(state)
        joint = self.model.joint_action(
            tuple(words.index(word) for word, words in zip(replies, vocabularies, strict=True))
        )
        hidden = _draw(self.model.transition[joint, state.hidden], rng)
        joint_observation = _draw(self.model.observation[joint, hidden], rng)
        reward = float(self.model.reward[joint, state.hidden, hidden, joint_observation])
        numbers = np.unravel_index(joint_observation, self.model.observation_shape)
        after = PlayState(
            hidden=hidden,
            turn=state.turn + 1,
            observations=tuple(int(number) for number in numbers),
            value=state.value + reward,
            legal=True,
            reward=reward,
        )
        return Outcome(state=after, reward=reward * self.reward_scale)

    def metrics(self, state: PlayState) -> Mapping[str, float]:
        """`value`, the undiscounted and unscaled sum of rewards; `legal`, 0 after a rejection."""
        return {"value": state.value, "legal": float(state.legal)}

    def global_info(self, state: PlayState) -> str:
        """m_t: the turn, from 1, and the last turn's reward, unscaled."""
        return f"turn {min(state.turn + 1, self.horizon)} reward {state.reward:g}"

    def privileged_info(self, state: PlayState) -> str:
        """The hidden state."""
        return f"state {self.model.states[state.hidden]}"

    def finite_problem(self) -> FiniteProblem:
        """The task itself."""
        return self

    def action_words(self, agent: str) -> tuple[str, ...]:
        """The agent's legal replies, in the order of the model's actions."""
        return self._actions[self.agents.index(agent)]

    def shown(self, agent: str, turn: int, observation: int | None) -> str:
        """The text that the agent reads at `turn` (counted from 0); `observation` is an index.

        At turn 0 there is no observation yet, so `observation` is None.
        """
        listed = ", ".join(self.action_words(agent))
        if observation is None:
            return self.opening.format(agent=agent, actions=listed, horizon=self.horizon)
        return self.turn.format(
            agent=agent,
            observation=self._observations[self.agents.index(agent)][observation],
            turn=turn + 1,
            horizon=self.horizon,
            actions=listed,
        )

    def rejection_reward(self, turn: int) -> float:
        """The scaled reward of a rejected reply at `turn`, counted from 0."""
        return self.reward_scale * self._rejection(turn)

    def legal_action(self, state: PlayState, agent: str, rng: np.random.Generator) -> str:
        """A random action of the agent, for the warm start of the embedded model."""
        words = self.action_words(agent)
        return words[int(rng.integers(len(words)))]

    def _rejection(self, turn: int) -> float:
        if self.penalty is None:
            return self._worst * (self.horizon - turn)
        return float(self.penalty)

    def _rejected(self, state: PlayState) -> Outcome[PlayState]:
        earned = self._rejection(state.turn)
        value = state.value + earned
        after = replace(state, turn=state.turn + 1, value=value, reward=earned, legal=False)
        return Outcome(state=after, reward=self.rejection_reward(state.turn), done=True)


def _draw(probabilities: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draws the same index as `rng.choice(len(probabilities), p=probabilities)`, but without the
    checks of `rng.choice`, which take four fifths of its time."""
    below = probabilities.cumsum()
    below /= below[-1]
    return int(below.searchsorted(rng.random(), side="right"))
