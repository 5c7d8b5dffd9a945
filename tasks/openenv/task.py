"""A text task for one agent, made of an environment behind an OpenEnv server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.types import Observation, Outcome
from colearn.errors import ConfigError, TaskError
from colearn.text.notes import note_once
from colearn.text.reasoning import without_reasoning

from ..checks import check_split, check_whole
from .session import (
    EnvironmentSession,
    RejectedAction,
    ServerObservation,
    check_package,
    read_schema,
)
from .sessions import Play, begin, finish, under_way
from .texts import Form, action_form, read_action, write_observation

AGENT = "agent"
ITEMS = 64


@dataclass(frozen=True, slots=True)
class EnvironmentServer:
    """An item: the environment at a URL. All items are equal, since advantages compare episodes of
    one item."""

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedState:
    """An episode, stored as its seed, the actions taken and the texts shown."""

    seed: int
    shown: tuple[str, ...]
    """The texts shown after the reset and after each action."""
    actions: tuple[str, ...] = ()
    opening: float = 0.0
    """The reward of the reset, which is paid with the first action."""
    reward: float = 0.0
    refused: int = 0
    scored: bool = False
    """Whether the server has paid a number for an action."""


class OpenEnv(DecPOMDP[EnvironmentServer, ServedState]):
    """One agent plays an environment behind an OpenEnv server, over HTTP.

    url: address of the server, such as `http://127.0.0.1:8000`. Each live episode is a session with
    this server.
    action: the field of the server's actions that an answer fills; by default the only field. If
    the actions have several fields and this setting names none, an answer is a JSON object that
    follows the server's schema.
    observation: the field that is shown; by default the only field, or all fields as JSON.
    reset: further arguments of the environment's reset, besides `seed`.
    prompt: text before the first observation.
    horizon: maximum number of actions per episode.
    words: texts on which the embedded model is warm-started.

    The server pays a reward for each action. A reward that comes with the reset is paid with the
    first action. An action that the server refuses earns nothing, and the agent's next observation
    states the reason. Actions before the server's first number may have no reward, as in
    environments that pay once; a missing reward after a number or at the end is an error, because
    OpenEnv sends NaN as a missing reward. An episode that is not over at the horizon is truncated
    if the server has paid no number for the actions that it executed. If branches need an episode,
    the task replays the episode from its seed and actions in a separate session.

    An environment that ignores `seed` and draws at random does not work with this task: if a replay
    shows a different text, the task raises an error. A rollout of shape `chain` with one chain
    needs no replay.

    Metrics: `reward`, the sum of the episode's rewards, and `refused`, the number of refused
    actions.

    Errors: ConfigError from the constructor; MissingExtra without OpenEnv; TaskError if the server
    does not answer, pays no number, or has ended the episode at its reset.
    """

    def __init__(
        self,
        url: str,
        *,
        action: str | None = None,
        observation: str | None = None,
        reset: dict[str, Any] | None = None,
        prompt: str = "",
        horizon: int = 8,
        words: tuple[str, ...] = (),
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"task.url: must begin with http:// or https://, got '{url}'")
        check_whole("horizon", horizon, 1)
        check_package()
        self.url, self.action, self.observation = url.rstrip("/"), action, observation
        self.arguments, self.prompt = dict(reset or {}), prompt
        self.horizon, self.words = horizon, tuple(words)
        self.agents = (AGENT,)
        self._items = (EnvironmentServer(self.url),) * ITEMS

    @cached_property
    def form(self) -> Form:
        """The format of an action, read from the server once."""
        return action_form(read_schema(self.url), self.action)

    def items(self, split: str) -> Sequence[EnvironmentServer]:
        """The same environment 64 times, in both splits."""
        check_split(split)
        return self._items

    def reset(self, item: EnvironmentServer, rng: np.random.Generator) -> ServedState:
        """Resets a session's environment with a seed drawn from `rng`; returns the episode's
        state."""
        seed = int(rng.integers(2**31))
        session, answer = self._opened(seed)
        if answer.done:
            finish(session)
            raise TaskError(
                f"task.url: {self.url} has ended the episode at its reset, so no agent can act; "
                "let `reset` open an episode, or change task.reset"
            )
        state = ServedState(seed=seed, shown=(self._text(answer),), opening=answer.reward or 0.0)
        self._keep(state, session)
        return state

    def observe(self, state: ServedState, agent: str) -> Observation:
        """The server's last observation."""
        if state.actions:
            return Observation(state.shown[-1])
        return Observation(self.prompt + state.shown[0], system=self.form.system)

    def step(
        self, state: ServedState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[ServedState]:
        """Sends the action to the server. The session of an ended episode is kept for another
        episode."""
        session, action = self._replayed(state), without_reasoning(actions[AGENT])
        answer, text = self._answered(session, action)
        try:
            reward = self._paid(state, answer)
        except TaskError:
            finish(session)
            raise
        after = replace(
            state,
            actions=(*state.actions, action),
            shown=(*state.shown, text),
            reward=state.reward + reward,
            refused=state.refused + (answer is None),
            scored=state.scored or (answer is not None and answer.reward is not None),
        )
        done = answer is not None and answer.done
        last = len(after.actions) == self.horizon
        if done or last:
            finish(session)
        else:
            self._keep(after, session)
        unpaid = not after.scored and after.refused < len(after.actions)
        return Outcome(
            state=after, reward=reward, done=done, truncated=last and not done and unpaid
        )

    def metrics(self, state: ServedState) -> Mapping[str, float]:
        """`reward` and `refused`."""
        return {"reward": state.reward, "refused": float(state.refused)}

    def legal_action(self, state: ServedState, agent: str, rng: np.random.Generator) -> str | None:
        """Returns one of `words`; None if `words` is empty."""
        return self.words[int(rng.integers(len(self.words)))] if self.words else None

    def _opened(self, seed: int) -> tuple[EnvironmentSession, ServerObservation]:
        return begin(self.url, {**self.arguments, "seed": seed})

    def _text(self, answer: ServerObservation) -> str:
        return write_observation(answer.observation, self.observation)

    def _paid(self, state: ServedState, answer: ServerObservation | None) -> float:
        """The reward of an action, with the reset's reward if the action is the first."""
        opening = 0.0 if state.actions else state.opening
        if answer is None:
            return opening
        if answer.reward is None and (answer.done or state.scored):
            which = "the last action" if answer.done else "an action after it had paid one"
            raise TaskError(
                f"task.url: {self.url} paid no number for {which} (OpenEnv sends None, NaN and "
                "infinities alike); let the environment pay a finite number, such as 0.0"
            )
        if answer.reward is None:
            note_once(
                f"task.url: {self.url} paid no number for an action; this counts as 0 before its "
                "first number (OpenEnv sends None, NaN and infinities alike)"
            )
        return opening + (answer.reward or 0.0)

    def _answered(
        self, session: EnvironmentSession, action: str
    ) -> tuple[ServerObservation | None, str]:
        """The server's answer and its text; None and the reason if the action was refused."""
        try:
            answer = session.step(read_action(action, self.form))
        except (RejectedAction, ValueError) as error:
            return None, f"refused: {error}"
        return answer, self._text(answer)

    def _replayed(self, state: ServedState) -> EnvironmentSession:
        """The session after `state.actions`: the live one if it is kept, or a new one after a
        replay."""
        session = under_way(self.url).take(self._key(state))
        if session is not None:
            return session
        session, answer = self._opened(state.seed)
        texts = [
            self._text(answer),
            *(self._answered(session, action)[1] for action in state.actions),
        ]
        if tuple(texts) != state.shown:
            finish(session)
            raise TaskError(
                f"task.url: {self.url} shows another text when an episode is replayed; let the "
                "environment's reset take and use `seed`"
            )
        return session

    def _keep(self, state: ServedState, session: EnvironmentSession) -> None:
        under_way(self.url).keep(self._key(state), session)

    def _key(self, state: ServedState) -> Play:
        arguments = json.dumps(self.arguments, sort_keys=True)
        return arguments, state.seed, state.actions
