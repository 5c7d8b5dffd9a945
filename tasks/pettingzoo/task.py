"""PettingZoo's environments as text: replayed from seed and actions, so states stay plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.types import Outcome
from colearn.errors import ConfigError, TaskError, reason_of, required
from colearn.text.reasoning import without_reasoning

from ..checks import check_finite, check_split, check_whole
from .foreign import raised_in
from .phrasing import phrasing as phrased
from .repeats import check_repeats
from .replay import EnvironmentSource, Joint, Situation, make, situation

ITEMS = 64


@dataclass(frozen=True, slots=True)
class ZooItem:
    """An item: one environment. All items are equal, since advantages compare episodes of one
    item."""

    env: str

    def __str__(self) -> str:
        return self.env


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooState:
    """An environment's state, stored as its seed and the actions taken."""

    seed: int
    actions: tuple[Joint, ...] = ()
    acted: tuple[str, ...] = ()
    """The agents that have acted so far, without repetition."""
    returns: tuple[float, ...]
    """The rewards so far by agent, without penalties."""
    invalid: bool = False


class PettingZoo(DecPOMDP[ZooItem, ZooState]):
    """The task plays an AEC or parallel environment of PettingZoo that has discrete actions.

    The task's agents are the environment's agents. In an AEC environment, one agent acts at a time;
    in a parallel environment, all remaining agents act. The task itself makes the steps that
    PettingZoo requires of terminated agents. If the environment truncates the episode before
    `horizon`, so does the task (`Outcome.truncated`); at the horizon, the episode ends. All
    randomness follows from the seed that `reset` draws, so all branches of a tree have the same
    random outcomes. An environment that draws anything otherwise is refused: before the first
    episode, the task plays it twice with equal seeds and actions, and each replay is compared with
    the episode.

    Settings: `env`, family/name (`classic/rps_v2`; the family classic may be left out), or
    module:Class of another environment; `settings`, the environment's constructor arguments;
    `parallel`, whether to use the environment's parallel form; `horizon`, the maximum number of
    steps per episode; `phrasing`, module:Class of a custom `Phrasing`; `team`, whether the joint
    reward is the mean over the agents, for cooperative environments; `invalid_penalty`, the penalty
    for a reply that is not a legal action, which ends the episode. With `team`, the team pays the
    whole penalty once.

    Metrics: `return_AGENT`, the environment's own return, and `invalid`.

    Errors: ConfigError from the constructor; MissingExtra without PettingZoo.
    """

    def __init__(
        self,
        *,
        env: str = "classic/rps_v2",
        settings: Mapping[str, Any] | None = None,
        parallel: bool = False,
        horizon: int = 64,
        phrasing: str | None = None,
        team: bool = False,
        invalid_penalty: float = 1.0,
    ) -> None:
        self.source = EnvironmentSource(env, dict(settings or {}), parallel)
        self.phrasing, self.team = phrasing, team
        check_whole("horizon", horizon, 1)
        check_finite("invalid_penalty", invalid_penalty, least=0)
        self.horizon, self.invalid_penalty = horizon, float(invalid_penalty)
        self.pays = frozenset({"team", "local"}) if team else frozenset({"local"})
        self.agents, name = _agents(self.source)
        self._say = phrased(env, phrasing, name)
        self._checked = False
        self._items = {split: (ZooItem(env),) * ITEMS for split in ("train", "test")}

    def items(self, split: str) -> Sequence[ZooItem]:
        """The same environment 64 times, in both splits."""
        check_split(split)
        return self._items[split]

    def reset(self, item: ZooItem, rng: np.random.Generator) -> ZooState:
        """Returns the state of a new environment, whose seed is drawn from `rng`. Before the first
        episode, the task checks that the environment follows from its seed."""
        if not self._checked:
            check_repeats(self.source, self.horizon)
            self._checked = True
        return ZooState(seed=int(rng.integers(2**31)), returns=(0.0,) * len(self.agents))

    def observe(self, state: ZooState, agent: str) -> str | None:
        """The environment's observation of an acting agent as text; None for other agents. After a
        truncation, the observations of the truncated agents."""
        current = self._now(state)
        if state.invalid or agent not in (*current.acting, *current.cut):
            return None
        text = self._say.situation(agent, current.seen[agent], current.legal[agent])
        if agent in state.acted:
            return text
        return f"{self._say.opening(agent, self.agents)}\n{text}"

    def step(
        self, state: ZooState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[ZooState]:
        """Execute the environment's step, or end the episode if a reply is not a legal action."""
        current = self._now(state)
        chosen: list[tuple[str, int]] = []
        invalid = []
        for agent in current.acting:
            words = self._words(current, agent)
            word = without_reasoning(actions[agent]).strip()
            if word in words:
                chosen.append((agent, words[word]))
            else:
                invalid.append(agent)
        if invalid:
            local = {a: -self.invalid_penalty * (a in invalid) for a in self.agents}
            ended = self._outcome(replace(state, invalid=True), local, done=True)
            return replace(ended, reward=-self.invalid_penalty if self.team else 0.0)
        after = replace(
            state,
            actions=(*state.actions, tuple(chosen)),
            acted=tuple(dict.fromkeys((*state.acted, *current.acting))),
        )
        reached = self._now(after)
        local = {agent: reached.rewards.get(agent, 0.0) for agent in self.agents}
        total = zip(state.returns, local.values(), strict=True)
        after = replace(after, returns=tuple(before + paid for before, paid in total))
        truncated = reached.truncated and len(after.actions) < self.horizon
        return replace(self._outcome(after, local, done=not reached.acting), truncated=truncated)

    def metrics(self, state: ZooState) -> Mapping[str, float]:
        """`return_AGENT` and `invalid`."""
        returns = zip(self.agents, state.returns, strict=True)
        return {**{f"return_{a}": r for a, r in returns}, "invalid": float(state.invalid)}

    def legal_action(self, state: ZooState, agent: str, rng: np.random.Generator) -> str:
        """A random legal action, for the warm start of the embedded model."""
        words = list(self._words(self._now(state), agent))
        return words[int(rng.integers(len(words)))]

    def _now(self, state: ZooState) -> Situation:
        return situation(self.source, state.seed, state.actions)

    def _words(self, current: Situation, agent: str) -> dict[str, int]:
        """Maps replies to legal actions.

        Errors: TaskError for a word that is not the word of exactly one legal action, or that no
        reply can spell.
        """
        words: dict[str, int] = {}
        for action in current.legal[agent]:
            word = self._say.word(agent, action)
            if not isinstance(word, str) or word != without_reasoning(word).strip() or not word:
                raise TaskError(
                    f"task.phrasing: the word of action {action} of '{agent}' is {word!r}, which "
                    "no reply can be; return a text without white space around it"
                )
            if word in words:
                raise TaskError(
                    f"task.phrasing: actions {words[word]} and {action} of '{agent}' have the same "
                    f"word {word!r}; return another word for each legal action"
                )
            words[word] = action
        return words

    def _outcome(
        self, state: ZooState, local: Mapping[str, float], *, done: bool
    ) -> Outcome[ZooState]:
        mean = sum(local.values()) / len(local) if self.team else 0.0
        return Outcome(state=state, reward=mean, done=done, local_rewards=local)


def _agents(source: EnvironmentSource) -> tuple[tuple[str, ...], str | None]:
    """The environment's agents, after checking that the task can play it, and its own name."""
    try:
        env = make(source)
    except ImportError as error:
        raise ConfigError(f"task.env: '{source.env}': {reason_of(error)}") from None
    except (TypeError, ValueError, AssertionError) as error:
        place = raised_in(error)
        raise ConfigError(
            f"task.settings: {reason_of(error)}{'' if place is None else f' ({place})'}"
        ) from None
    discrete = required("gymnasium.spaces", "games").Discrete
    for agent in env.possible_agents:
        if not isinstance(env.action_space(agent), discrete):
            raise ConfigError(
                f"task.env: the actions of '{agent}' in '{source.env}' are not discrete; "
                f"{_remedy(env)}"
            )
    name = (getattr(env, "metadata", None) or {}).get("name")
    env.close()
    return tuple(map(str, env.possible_agents)), name if isinstance(name, str) and name else None


def _remedy(env: Any) -> str:
    """What to do about continuous actions: the setting of the environment's class for them, if it
    has one."""
    for setting in signature(type(env.unwrapped)).parameters:
        if setting in ("continuous_actions", "continuous"):
            return f"set task.settings.{setting} to false"
    return "choose another environment"
