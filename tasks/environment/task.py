"""A task made of an environment with TRL's `environment_factory` interface.

Tool calls are text; episodes are replayed from their actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from colearn.contract import DecPOMDP
from colearn.contract.held_out import hold_out, row_key
from colearn.contract.types import Observation, Outcome
from colearn.deploy.client.protocol.tool_call_text import (
    Call,
    announce,
    message,
    read_calls,
    write_response,
)
from colearn.errors import ConfigError, TaskError
from colearn.registry.given import settled
from colearn.text.json_value import copied
from colearn.text.reasoning import without_reasoning

from ..checks import check_number, check_split, check_unset, check_whole
from ..dataset.data import RowSource, read_rows
from ..dataset.prompt import AskedPrompt, read_prompt
from ..dataset.task import TEST_SHARE, weighted_sum
from ..live_games import LiveGames
from ..rewards.function import PythonFunction
from .live_environment import (
    TIMEOUT,
    EpisodeEnded,
    LiveEnvironment,
    ToolResult,
    check_factory,
    tool_schemas,
)

AGENT = "agent"
ITEMS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentItem:
    """A row of the data; without data, one of several equal items."""

    where: str
    prompt: AskedPrompt
    columns: Mapping[str, Any]

    def __str__(self) -> str:
        return self.where


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentState:
    """An episode, stored as its item, its seed and the actions taken."""

    item: EnvironmentItem
    seed: int
    shown: str
    """The agent's next observation."""
    actions: tuple[str, ...] = ()
    results: tuple[tuple[ToolResult, ...], ...] = ()
    """The results of each action's tool calls."""
    reward: float | None = None
    """None until the episode is scored."""


class Environment(DecPOMDP[EnvironmentItem, EnvironmentState]):
    """One agent plays an environment with TRL's `environment_factory` interface.

    factory: `module:Class`, a class that is called without arguments. The method `reset(**row)`
    returns None or the text of the first observation. `get_reward()` returns the score of the
    episode at its end; None means that the episode is not scored. All other public methods are
    tools, described by type hints and docstrings.
    path, prompt, test_share: rows of data as in the task `dataset`; the prompt column may be
    missing. Without a path, all items are equal and `reset` is called without arguments.
    reward: further functions with TRL's signature, which also receive `environments`.
    horizon: maximum number of answers per episode. An answer without a tool call also ends the
    episode.
    words: texts on which the embedded model is warm-started.
    threads: whether the functions of `reward` run concurrently for different episodes, in several
    threads, if they wait. Set `threads` to false for functions that are not thread-safe. Methods of
    environments run one after another, because each episode has its own state of the global
    generators; `run.step_workers` runs them concurrently in several processes.
    timeout: time limit in seconds of a tool call. A call that takes longer fails, all later calls
    of the episode fail too, and `get_reward` does not score the episode.

    An environment with a method `close` is closed at the end of its episode. A tool that raises
    SystemExit or KeyboardInterrupt ends its episode, which is then not scored. Methods of
    frameworks (`close`, `reset`, `step`, `render`, `seed`, `get_reward`) are not tools.

    If branches or other processes need an episode, the task replays it from its seed and actions.
    Python's and numpy's global generators are seeded for each episode.

    An environment that draws from its own unseeded generators, or acts on external systems, does
    not work with this task.

    Metrics: `reward`, `calls` and `failures`.

    Errors: ConfigError from the constructor, and from `items` with the file and the line.
    """

    def __init__(
        self,
        factory: str,
        *,
        path: str | None = None,
        prompt: str | None = None,
        test_share: float | None = None,
        reward: str | tuple[str, ...] = (),
        horizon: int = 8,
        words: tuple[str, ...] = (),
        timeout: float = TIMEOUT,
        threads: bool = True,
    ) -> None:
        check_factory(factory)
        check_number("timeout", timeout, 0.01, 86400.0)
        self.timeout, self.steps_at_once = timeout, threads
        check_whole("horizon", horizon, 1)
        if path is None:
            check_unset({"prompt": prompt, "test_share": test_share}, "without task.path")
        share = TEST_SHARE if test_share is None else test_share
        check_number("test_share", share, 0.0, 1.0)
        targets = (reward,) if isinstance(reward, str) else tuple(reward)
        self.factory, self.path, self.column = settled(factory), path, prompt or "prompt"
        self.test_share, self.horizon, self.words = share, horizon, tuple(words)
        self.rewards = tuple(PythonFunction(target=target) for target in targets)
        self.agents = (AGENT,)
        self._items: Mapping[str, Sequence[EnvironmentItem]] = {}

    @cached_property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """Descriptions of the environment's methods."""
        return tool_schemas(self.factory)

    def items(self, split: str) -> Sequence[EnvironmentItem]:
        """The rows of 'train' or 'test', read at the first call; without data, 64 equal items.

        Errors: ConfigError naming the row that cannot be used.
        """
        check_split(split)
        if not self._items:
            if self.path is None:
                item = EnvironmentItem(where=self.factory, prompt=AskedPrompt(text=""), columns={})
                self._items = {"train": (item,) * ITEMS, "test": (item,) * ITEMS}
            else:
                self._items = self._splits(RowSource(path=self.path))
        return self._items[split]

    def _splits(self, source: RowSource) -> dict[str, tuple[EnvironmentItem, ...]]:
        rows = [self._item(*row) for row in read_rows(source)]
        test_size = max(1, round(len(rows) * self.test_share))
        if test_size == len(rows):
            raise ConfigError(
                f"task.test_share: holds out all rows of {source.name} ({test_size}); add rows, or "
                "set it lower"
            )
        return hold_out(
            rows,
            lambda item: row_key(item.columns),
            size=test_size,
            source=f"task.path: {source.name}",
        )

    def reset(self, item: EnvironmentItem, rng: np.random.Generator) -> EnvironmentState:
        """Resets an environment with the row and a seed drawn from `rng`; returns the episode's
        state."""
        state = EnvironmentState(item=item, seed=int(rng.integers(2**31)), shown="")
        live = self._opened(state)
        self._keep(state, live)
        return replace(state, shown=item.prompt.text + live.opened)

    def observe(self, state: EnvironmentState, agent: str) -> Observation:
        """Returns at first the prompt with the environment's first text and tools, and later the
        results of the tool calls."""
        if state.actions:
            return Observation(state.shown)
        prompt = state.item.prompt
        system = "\n\n".join(t for t in (prompt.system, self.tools and announce(self.tools)) if t)
        return Observation(state.shown, system=system or None, turns=prompt.turns)

    def step(
        self, state: EnvironmentState, actions: Mapping[str, str], rng: np.random.Generator
    ) -> Outcome[EnvironmentState]:
        """Runs the answer's tool calls. An answer without calls ends the episode, which is then
        scored. As in TRL, the calls of the last answer are not run."""
        live, answer = self._replayed(state), without_reasoning(actions[AGENT])
        after = replace(state, actions=(*state.actions, answer))
        last = len(after.actions) == self.horizon
        with ExitStack() as episode:
            episode.callback(self._end, live, after)
            try:
                results = () if last else self._run(live, answer)
            except EpisodeEnded as error:
                failed = ToolResult(tool="", text=str(error), failed=True)
                after = replace(after, results=(*state.results, (failed,)), reward=None)
                return Outcome(state=after, reward=None, done=True)
            after = replace(after, results=(*state.results, results))
            if not results:
                values = [*live.rewards(), *self._scored(live, after)]
                if not values:
                    raise TaskError(
                        f"task.reward: '{self.factory}' has no method get_reward, so that nothing "
                        "pays; add it, or name a function"
                    )
                reward = weighted_sum([1.0] * len(values), values)
                return Outcome(state=replace(after, reward=reward), reward=reward, done=True)
            episode.pop_all()
        self._keep(after, live)
        text = "\n".join(write_response(result.text) for result in results)
        return Outcome(state=replace(after, shown=text), reward=0.0)

    def metrics(self, state: EnvironmentState) -> Mapping[str, float | None]:
        """`reward`, `calls`, the number of tool calls, and `failures`, the number of calls that
        raised an error."""
        results = [result for of_action in state.results for result in of_action]
        return {
            "reward": state.reward,
            "calls": float(len(results)),
            "failures": float(sum(result.failed for result in results)),
        }

    def legal_action(
        self, state: EnvironmentState, agent: str, rng: np.random.Generator
    ) -> str | None:
        """Returns one of `words`; None if `words` is empty."""
        return self.words[int(rng.integers(len(self.words)))] if self.words else None

    def _item(self, location: str, row: Mapping[str, Any]) -> EnvironmentItem:
        filled_row = row if self.column in row else {**row, self.column: ""}
        prompt = (
            read_prompt(filled_row, self.column, location)
            if filled_row[self.column]
            else AskedPrompt(text="")
        )
        return EnvironmentItem(where=location, prompt=prompt, columns=dict(row))

    def _read(self, text: str) -> tuple[str, list[Call]]:
        """The text outside the tool calls, and the calls."""
        return read_calls(text, [tool["name"] for tool in self.tools], several=True)

    def _run(self, live: LiveEnvironment, text: str) -> tuple[ToolResult, ...]:
        return tuple(live.call(name, arguments) for name, arguments in self._read(text)[1])

    def _replayed(self, state: EnvironmentState) -> LiveEnvironment:
        """The environment after `state.actions`: the live one if it is kept, or a new one after a
        replay."""
        live = _live.take((self.factory, state.item.where, state.seed, state.actions))
        if live is None:
            live = self._opened(state)
            for action in state.actions:
                self._run(live, action)
        return live

    def close(self) -> None:
        """Closes the environments of unfinished episodes."""
        _live.drop_where(lambda play: play[0] == self.factory)

    def _opened(self, state: EnvironmentState) -> LiveEnvironment:
        return LiveEnvironment(self.factory, state.seed, state.item.columns, timeout=self.timeout)

    def _end(self, live: LiveEnvironment, state: EnvironmentState) -> None:
        """Close the environment of an ended episode, and the environments kept for its branches."""
        live.close()
        episode, turns = (self.factory, state.item.where, state.seed), len(state.actions)
        _live.drop_where(lambda play: play[:3] == episode and len(play[3]) < turns)

    def _keep(self, state: EnvironmentState, live: LiveEnvironment) -> None:
        _live.keep((self.factory, state.item.where, state.seed, state.actions), live)

    def _scored(self, live: LiveEnvironment, state: EnvironmentState) -> list[float | None]:
        """The values of the reward functions, which receive the episode as messages, as in TRL."""
        if not self.rewards:
            return []
        completion = self._messages(state)
        columns = {n: [v] for n, v in copied(state.item.columns).items() if n not in _NOT_COLUMNS}
        values = []
        for function in self.rewards:
            [value] = function(
                prompts=[state.item.prompt.given],
                completions=[completion],
                environments=[live.environment],
                **columns,
            )
            values.append(value)
        return values

    def _messages(self, state: EnvironmentState) -> list[dict[str, Any]]:
        messages = []
        for action, results in zip(state.actions, state.results, strict=True):
            messages.append(message(*self._read(action)))
            messages += [{"role": "tool", "name": r.tool, "content": r.text} for r in results]
        return messages


_NOT_COLUMNS = ("prompt", "completion", "completion_ids")
"""Columns that TRL does not pass to reward functions under their own names."""
_live = LiveGames[tuple[str, str, int, tuple[str, ...]], LiveEnvironment](LiveEnvironment.close)
