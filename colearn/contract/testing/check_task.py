"""Checks a task against the contract of `DecPOMDP` with arbitrary agent replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from colearn.contract import (
    OWN_METRICS,
    DecPOMDP,
)
from colearn.contract.checked_task import check_frame
from colearn.contract.seeding import derive_rng
from colearn.contract.task_results import (
    validate_earned,
    validate_horizon,
    validate_items,
    validate_metrics,
    validate_observation,
    validate_outcome,
    validate_text,
)
from colearn.contract.types import Observation, Outcome
from colearn.errors import TaskError, nearest
from colearn.text.names import name_problem

from .calls import copied, guarded
from .fingerprint import fingerprint

Task = DecPOMDP[Any, Any]
Actions = Callable[[Any, str, np.random.Generator], str]
"""A function that maps (state, agent, rng) to the text of the agent's action."""

Value = TypeVar("Value")

SPLITS = ("train", "test")
JUNK = (
    "",
    "   \n\t\n",
    "I would rather talk about the weather.",
    "```\n/do 1 2 3\n```",
    "-1 999999999999999999999 0.5 nan ~ ~1",
    "日本語 emoji 🙂 ½ ٣ \u202e \x00 ﬀ",
    "word " * 2000,
    "{\"a\": [1, 2, {'b': None}]}\n\\n%s {} $x",
    "0\n1\n2\n3\nyes\nno",
)


def check_task(
    task: Task,
    *,
    seeds: Sequence[int] = (0, 1),
    episodes: int = 2,
    actions: Actions | None = None,
) -> None:
    """Play `episodes` episodes per seed and split, and check the task's contract.

    The checks include names and horizon, the items of both splits, the types of observations,
    rewards, metrics and m_t, whether numbers are finite, and whether rewards are within
    `reward_range`. Every method must be a pure function of its arguments. To check this, calls are
    repeated on a copy of the task, and again after other actions were tried from the same state.
    Trying other actions must not change any observation. Some agent must act until the task is done
    or the horizon is reached. Task, items and states must pickle. Every step is executed four
    times.

    The agents reply with empty strings, prose, control characters and other malformed text.
    If `actions` is given, each episode is followed by another one in which `actions` provides valid
    replies, so that deeper states are reached.

    Errors: TaskError, one line with the method and the remedy.
    """
    check_frame(task)
    for problem in filter(None, map(name_problem, task.agents)):
        raise TaskError(f"task.agents: {problem}")
    copy = copied(
        task, "task", "keep plain data and module-level functions in it; steps run in workers"
    )
    checker = _Checker(task, copy)
    for split in SPLITS:
        items = validate_items(guarded("items", task.items, split), split)
        if len(guarded("items", task.items, split)) != len(items):
            raise TaskError(f"task.items: split '{split}' changes its length between calls")
        for seed in seeds:
            for episode in range(episodes):
                number = int(derive_rng(seed, "item", split, episode).integers(len(items)))
                item = copied(items[number], "task.items: an item", "build it from plain data")
                if fingerprint(guarded("items", task.items, split)[number]) != fingerprint(item):
                    raise TaskError(
                        f"task.items: split '{split}' gives another item {number} at each call; "
                        "fix the items in the constructor"
                    )
                for speaker in (_junk, actions):
                    if speaker is not None:
                        checker.play(item, speaker, (seed, split, episode))


class _Checker:
    """State of a check: the task, a copy of the task, and the values that all episodes of the check
    share. The copy is made before the first call."""

    def __init__(self, task: Task, copy: Task) -> None:
        self.task, self.copy = task, copy
        self.metric_names: set[str] | None = None

    def play(self, item: Any, speaker: Actions, key: tuple[int, str, int]) -> None:
        """Play one episode from reset to its end, and check every state and every step."""
        self.speaker, self.key = speaker, key
        state = self._pure("reset", {"item": item}, lambda task: task.reset(item, self._rng("r")))
        horizon = self._horizon_of(item)
        for turn in range(self.task.horizon):
            if turn == horizon:
                raise TaskError(
                    f"task.horizon_of: says {horizon}, but the episode went on; give the turns of "
                    "the item's longest episode, or leave the method out"
                )
            self._check_info(state)
            texts = self._observe(state)
            if not any(text is not None for text in texts.values()):
                raise TaskError(
                    f"task.observe: nobody acts at turn {turn} although the episode is not done; "
                    "give an agent something to do, or return done=True one step earlier"
                )
            outcome = self._step(state, texts, turn)
            state = outcome.state
            self._check_metrics(state)
            self._check_headline()
            if outcome.last:
                break
        self._check_info(state)

    def _horizon_of(self, item: Any) -> int:
        horizon = self._pure("horizon_of", {"item": item}, lambda task: task.horizon_of(item))
        return validate_horizon(horizon, self.task.horizon)

    def _observe(self, state: Any) -> dict[str, Observation | None]:
        agents = self.task.agents
        texts = {
            agent: validate_observation(
                self._pure("observe", {"state": state}, _observation(state, agent)), agent
            )
            for agent in agents
        }
        self._check_unmoved(state, texts, reversed(agents), "the order in which agents observe")
        return texts

    def _step(self, state: Any, texts: Mapping[str, Observation | None], turn: int) -> Outcome[Any]:
        acting = [agent for agent, text in texts.items() if text is not None]
        actions, other_actions = (self._say(state, acting, turn, attempt) for attempt in range(2))

        def step(task: Task) -> Outcome[Any]:
            passed = dict(actions)
            outcome = task.step(state, passed, self._rng("step", turn))
            if passed != actions:
                raise TaskError("task.step: changed the actions it was given; copy them first")
            return validate_outcome(outcome, task.agents)

        def step_otherwise(task: Task) -> None:
            task.step(state, dict(other_actions), self._rng("other", turn))

        outcome = self._pure("step", {"state": state}, step, between=step_otherwise)
        validate_earned(outcome.earned, turn + 1)
        self._check_late(outcome, turn)
        self._check_reward(outcome.reward)
        self._check_unmoved(state, texts, self.task.agents, "what agents did after observing it")
        copied(outcome.state, "task.step: the state", "build it from plain data, frozen")
        return outcome

    def _check_headline(self) -> None:
        known = {*OWN_METRICS, *(self.metric_names or ())}
        if self.task.headline.metric not in known:
            raise TaskError(
                f"task.headline: '{self.task.headline.metric}' is no metric of the task; "
                f"{nearest(self.task.headline.metric, known)}"
            )

    def _check_late(self, outcome: Outcome[Any], turn: int) -> None:
        late = [key for key in outcome.earned if key[0] != turn]
        if late and not self.task.pays_later:
            raise TaskError(
                f"task.step: pays {late[0]} at turn {turn}, and pays_later is False; set "
                "pays_later = True on the task"
            )

    def _say(self, state: Any, acting: Sequence[str], turn: int, attempt: int) -> dict[str, str]:
        actions = {}
        for agent in acting:
            text = self.speaker(state, agent, self._rng("say", turn, attempt, agent))
            if not isinstance(text, str):
                raise TaskError(f"check_task: actions gave a {type(text).__name__}, must be str")
            actions[agent] = text
        return actions

    def _pure(
        self,
        method: str,
        arguments: Mapping[str, Any],
        call: Callable[[Task], Value],
        between: Callable[[Task], object] | None = None,
    ) -> Value:
        """Call a method, make the call `between`, call the method again, and call it on the task's
        copy. The results of the method must be equal."""
        before = {name: fingerprint(value) for name, value in arguments.items()}

        def check_arguments() -> None:
            """Check whether the method changed its arguments. The check runs before results are
            compared, since a changed argument would explain different results."""
            for name, value in arguments.items():
                if fingerprint(value) != before[name]:
                    raise TaskError(
                        f"task.{method}: changed the {name} it was given in place; make it a "
                        "frozen dataclass and return a new one"
                    )

        result = guarded(method, call, self.task)
        expected = fingerprint(result)
        check_arguments()
        if between is not None:
            guarded(method, between, self.task)
            check_arguments()
        for task, place in ((self.task, "again"), (self.copy, "on a copy of the task")):
            repeated = fingerprint(guarded(method, call, task))
            check_arguments()
            if repeated != expected:
                raise TaskError(
                    f"task.{method}: the same call gives something else {place}; draw from the "
                    "given rng alone and remember nothing outside the state"
                )
        return result

    def _check_unmoved(
        self, state: Any, texts: Mapping[str, Observation | None], order: Any, cause: str
    ) -> None:
        for agent in order:
            observation = guarded("observe", _observation(state, agent), self.task)
            if validate_observation(observation, agent) != texts[agent]:
                raise TaskError(
                    f"task.observe: what agent '{agent}' sees in a state depends on {cause}; "
                    "make it a function of (state, agent) alone"
                )

    def _check_info(self, state: Any) -> None:
        text = self._pure("global_info", {"state": state}, lambda task: task.global_info(state))
        validate_text(text, "global_info")
        hidden = self._pure(
            "privileged_info",
            {"state": state},
            lambda task: task.privileged_info(state),
        )
        validate_text(hidden, "privileged_info")

    def _check_metrics(self, state: Any) -> None:
        metrics = self._pure("metrics", {"state": state}, lambda task: task.metrics(state))
        validate_metrics(metrics)
        if self.metric_names is not None and self.metric_names != set(metrics):
            raise TaskError(
                f"task.metrics: names change from {sorted(self.metric_names)} to "
                f"{sorted(metrics)}; give the same ones for each state"
            )
        self.metric_names = set(metrics)

    def _check_reward(self, reward: float | None) -> None:
        bounds = self.task.reward_range
        if reward is None or bounds is None:
            return
        low, high = bounds
        if not low - 1e-9 <= reward <= high + 1e-9:
            raise TaskError(
                f"task.step: reward {reward} lies outside reward_range ({low}, {high}); "
                "widen the range or bound the reward"
            )

    def _rng(self, *parts: int | str) -> np.random.Generator:
        return derive_rng(*self.key, *parts)


def _observation(state: Any, agent: str) -> Callable[[Task], str | Observation | None]:
    return lambda task: task.observe(state, agent)


def _junk(state: Any, agent: str, rng: np.random.Generator) -> str:
    return "\n".join(JUNK[k] for k in rng.integers(len(JUNK), size=int(rng.integers(1, 3))))
