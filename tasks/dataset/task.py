"""A task made of a data set: prompts from a column, rewards from functions with TRL's signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from colearn.config import Named, build_part
from colearn.contract.held_out import hold_out, note_overlap
from colearn.contract.reward import RewardFunction
from colearn.errors import ConfigError, TaskError
from colearn.text.json_value import copied

from ..checks import check_split, check_unset
from .answering import AgentAnswer, Answering, AnswerRewards
from .data import SPLIT, RowSource, read_rows
from .prompt import AskedPrompt, read_prompt

TEAM = "team"
TEST_SHARE = 0.1
"""Share of the rows that is held out by default."""
_NOT_COLUMNS = ("prompt", "completion")
"""Columns that TRL does not pass to reward functions; `completion_ids` holds the sampled ids
instead."""
_ARGUMENTS = ("prompts", "completions", "team_completions", "log_extra", "log_metric", "self")
"""Names of the other arguments of reward functions, which no column may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataItem:
    """A row of the data."""

    where: str
    prompt: AskedPrompt
    columns: Mapping[str, Any]

    def __str__(self) -> str:
        return self.where


class Dataset(Answering[DataItem]):
    """One agent or a team answers the prompts in the rows of a file or of a hub data set.

    path: a `.jsonl`, `.json`, `.csv` or `.parquet` file, or a hub name, with `subset` and `split`.
    A row with an image, audio or video for the model is refused, because agents read text alone.
    prompt: the column with the prompts, plain text or messages.
    test_path, test_split: the held-out rows. A note states how many of them have a prompt that is
    trained on, too. Without these settings, `test_share` of the rows is held out, 0.1 by default.
    These rows are drawn with a fixed seed, and rows with the same prompt are in the same split.
    agents: names, or prompt templates by name. If only names are given, each agent reads the
    answers of the agents before it. In a template, `{prompt}` stands for the row's prompt, and
    another agent's name in braces stands for that agent's answer.
    answer: the agent whose answer is the completion; by default the last one.
    reward: one or several functions: `module:function` with TRL's signature, or shipped functions
    by name with their settings. A mapping by agent adds rewards of single agents; its key `team`
    holds the team's functions.
    weights: weights of the team's functions, 1 by default.
    words: answers on which the embedded model is warm-started, for all agents or by agent.
    threads: whether the completions of a turn are scored concurrently in several threads if
    functions wait, for example for a server. Set `threads` to false for a function that is not
    thread-safe.

    A reward function receives the row's other columns and `team_completions`, every agent's text by
    name. The function is called with one completion at a time. As in TRL, a reward of None means
    that the function does not apply to the row; the team's reward is then the weighted sum of the
    other functions. If no function applies, the completion is not scored: it is neither trained on
    nor part of a baseline.

    Reward functions that compare the completions of a batch with each other do not work with this
    task.

    Metrics: `reward`, the team's reward, and `reward_FUNCTION`, each function's unweighted reward;
    both are means over the scored completions. A judge also reports `reward_judge_unreadable` and
    `reward_judge_failed`.

    Errors: ConfigError from the constructor, and from `items` with the file and the line.
    """

    reads_actions = True

    def __init__(
        self,
        path: str,
        reward: Any,
        *,
        prompt: str = "prompt",
        subset: str | None = None,
        split: str = SPLIT,
        test_path: str | None = None,
        test_split: str | None = None,
        test_share: float | None = None,
        agents: dict[str, str] | tuple[str, ...] = ("agent",),
        answer: str | None = None,
        weights: tuple[float, ...] | None = None,
        words: dict[str, tuple[str, ...]] | tuple[str, ...] = (),
        threads: bool = True,
    ) -> None:
        self.sources = {"train": RowSource(path=path, subset=subset, split=split)}
        if test_path is not None or test_split is not None:
            self.sources["test"] = RowSource(
                path=test_path or path, subset=subset, split=test_split or split
            )
        _check_sources(self.sources, test_path, test_split)
        if "test" in self.sources:
            check_unset({"test_share": test_share}, "beside test_path or test_split")
        share = TEST_SHARE if test_share is None else test_share
        if not 0 < share < 1:
            raise ConfigError(f"task.test_share: must lie between 0 and 1, got {share}")
        self.column, self.test_share, self.steps_at_once = prompt, share, threads
        super().__init__(agents, answer, words)
        self.rewards = self._rewards(reward)
        self.weights = _weights(weights, len(self.rewards[TEAM]))
        self.pays = frozenset({"team", "local"} if len(self.rewards) > 1 else {"team"})
        names = (
            f"{name}_{measure}" if measure else name
            for receiver, functions in self.rewards.items()
            for name, function in zip(self._names(receiver), functions, strict=True)
            for measure in ("", *function.measures)
        )
        self.measures = ("reward", *names)
        for name in self.measures:
            if self.measures.count(name) > 1:
                raise ConfigError(f"task.reward: two functions report '{name}'; rename one of them")
        self._items: dict[str, Sequence[DataItem]] = {}

    def items(self, split: str) -> Sequence[DataItem]:
        """The rows of 'train' or 'test', read at the first call.

        Errors: ConfigError naming the row that cannot be used.
        """
        check_split(split)
        if split not in self._items:
            if "test" in self.sources:
                self._items[split] = self._read(split)
                if len(self._items) == len(self.sources):
                    note_overlap(
                        self._items["train"], self._items["test"], _prompt, source=self._source
                    )
            else:
                self._items = self._split(self._read("train"))
        return self._items[split]

    def _split(self, rows: Sequence[DataItem]) -> dict[str, Sequence[DataItem]]:
        test_size = max(1, round(len(rows) * self.test_share))
        if test_size == len(rows):
            raise ConfigError(
                f"task.test_share: holds out all rows of {self.sources['train'].name} "
                f"({test_size}); add rows, or set test_path"
            )
        return dict(hold_out(rows, _prompt, size=test_size, source=self._source))

    @property
    def _source(self) -> str:
        """The training data, for messages."""
        return f"task.path: {self.sources['train'].name}"

    def scores(self, item: DataItem, answers: Mapping[str, AgentAnswer]) -> AnswerRewards:
        """Calls the team's reward functions with the completion, and each agent's reward functions
        with that agent's answer."""
        metrics: dict[str, float | None] = {}
        paid: dict[str, float | None] = {}
        for receiver, functions in self.rewards.items():
            agent = self.answer if receiver == TEAM else receiver
            names = self._names(receiver)
            values = [
                self._score(function, name, item, answers, agent, metrics)
                for function, name in zip(functions, names, strict=True)
            ]
            weights = self.weights if receiver == TEAM else (1.0,) * len(values)
            paid[receiver] = weighted_sum(weights, values)
            metrics |= zip(names, values, strict=True)
        reward = paid.pop(TEAM)
        return AnswerRewards(reward=reward, local=paid, metrics={"reward": reward, **metrics})

    def costs(self) -> Mapping[str, float]:
        """The functions' cost totals, summed by name."""
        totals: dict[str, float] = {}
        for function in (function for functions in self.rewards.values() for function in functions):
            for name, amount in function.costs().items():
                totals[name] = totals.get(name, 0.0) + amount
        return totals

    def _names(self, receiver: str) -> list[str]:
        """Metric names of the reward functions of the team or of an agent; functions with the same
        label are numbered."""
        prefix = "reward" if receiver == TEAM else f"reward_{receiver}"
        labels = [function.label for function in self.rewards[receiver]]
        return [
            f"{prefix}_{label}" + (f"_{number}" if label in labels[:number] else "")
            for number, label in enumerate(labels)
        ]

    def _score(
        self,
        function: RewardFunction,
        name: str,
        item: DataItem,
        answers: Mapping[str, AgentAnswer],
        agent: str,
        metrics: dict[str, float | None],
    ) -> float | None:
        """Returns one function's reward, and adds the function's metrics to `metrics`."""

        def log_metric(measure: str, value: float) -> None:
            metrics[f"{name}_{measure}"] = value

        columns: dict[str, Any] = {
            **{name: [value] for name, value in copied(item.columns).items()},
            "completion_ids": [list(answers[agent].ids)],
            "team_completions": [{name: answer.completion for name, answer in answers.items()}],
        }
        if function.measures:
            columns["log_metric"] = log_metric
        completion = item.prompt.completion(answers[agent].completion)
        [value] = function(prompts=[item.prompt.given], completions=[completion], **columns)
        if value is not None and not isfinite(value):
            raise TaskError(
                f"task.reward: '{function.label}' returned {value}; return a finite number, or "
                "None if it does not apply"
            )
        return value

    def _read(self, split: str) -> list[DataItem]:
        items = []
        for location, row in read_rows(self.sources[split]):
            prompt = read_prompt(row, self.column, location)
            for name in row:
                if name in _ARGUMENTS:
                    raise ConfigError(
                        f"task.path: {location} has a column '{name}', which is the name of "
                        "another argument of reward functions; rename it"
                    )
            columns = {name: row[name] for name in row if name not in _NOT_COLUMNS}
            items.append(DataItem(where=location, prompt=prompt, columns=columns))
        return items

    def _rewards(self, setting: Any) -> dict[str, tuple[RewardFunction, ...]]:
        named = isinstance(setting, Mapping) and "name" not in setting
        if named and TEAM in self.agents:
            raise ConfigError(
                f"task.agents: '{TEAM}' names the functions of all agents in task.reward; rename it"
            )
        rewards = {}
        for receiver, functions in (setting if named else {TEAM: setting}).items():
            if receiver != TEAM:
                self._agent(receiver, "task.reward")
            function_list = functions if isinstance(functions, list | tuple) else [functions]
            rewards[receiver] = tuple(_function(function) for function in function_list)
        if not rewards.get(TEAM):
            raise ConfigError(f"task.reward: name a function of the team under '{TEAM}'")
        return rewards


def _prompt(item: DataItem) -> AskedPrompt:
    return item.prompt


def weighted_sum(weights: Sequence[float], values: Sequence[float | None]) -> float | None:
    """The weighted sum of the values that are not None; None if all are None."""
    scored = [w * v for w, v in zip(weights, values, strict=True) if v is not None]
    return sum(scored) if scored else None


def _check_sources(
    sources: Mapping[str, RowSource], test_path: str | None, test_split: str | None
) -> None:
    """Errors: ConfigError if the held-out rows are the training rows, or if a file has a subset or
    split."""
    train, test = sources["train"], sources.get("test", sources["train"])
    if test_split is not None and test.is_file:
        raise ConfigError(f"task.test_split: {test.path} is a file, which has none; leave it out")
    if train.is_file and test.is_file:
        for name, default in (("subset", None), ("split", SPLIT)):
            if getattr(train, name) != default:
                raise ConfigError(
                    f"task.{name}: {train.path} is a file, which has none; leave it out"
                )
    if "test" in sources and (test == train or _one_file(train, test)):
        field = "split" if test_path is None else "path"
        raise ConfigError(f"task.test_{field}: equals task.{field}; name another {field}")


def _one_file(train: RowSource, test: RowSource) -> bool:
    """Whether two paths, such as `rows.jsonl` and `./rows.jsonl` or a link, are one file."""
    if not (train.is_file and test.is_file):
        return False
    first, second = (Path(source.path).expanduser() for source in (train, test))
    try:
        return first.samefile(second)
    except (OSError, ValueError):  # a file that is not there; reading it says so
        return False


def _function(setting: Any) -> RewardFunction:
    if isinstance(setting, str) and ":" in setting:
        setting = {"name": "function", "target": setting}
    elif isinstance(setting, str):
        setting = {"name": setting}
    if not isinstance(setting, Mapping) or not isinstance(setting.get("name"), str):
        raise ConfigError(
            f"task.reward: {setting!r:.60} names no function; write module:function, or the name "
            "of a shipped one with its settings"
        )
    part: RewardFunction = build_part(RewardFunction, Named(**setting), "task.reward")
    return part


def _weights(weights: tuple[float, ...] | None, count: int) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * count
    if len(weights) != count:
        raise ConfigError(
            f"task.weights: {len(weights)} weights for {count} functions; give one for each"
        )
    return tuple(weights)
