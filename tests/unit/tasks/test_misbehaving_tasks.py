"""A task that breaks off, lies or talks without end: one line with task, method, item and place."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import Notes, byte_tokenizer, register, save_model

from colearn.config import build_task, load_config
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, asking, item_name
from colearn.contract.task_results import LARGEST_REWARD, validate_metrics, validate_outcome
from colearn.contract.types import AnswerLimits, Observation, Outcome, Tree
from colearn.entry.cli import main
from colearn.errors import ConfigError, TaskError
from colearn.estimate.script import read_script
from colearn.methods.credit.shared_reward import SharedReward
from colearn.models.embedded import embedded_model
from colearn.rollout.agents import AgentSpec, ChatFormat, Language, Program
from colearn.rollout.agents.programs import Legal, Says
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.runs.record.transcript import transcript
from colearn.training.evaluation.played import mean_outcomes

HERE = str(Path(__file__))


class Raises(Notes):
    """Raises what it is told to, in one method."""

    def __init__(self, method: str = "", error: BaseException | None = None) -> None:
        super().__init__(agents=1, horizon=1, items=1, clues=(("a clue",),))
        self.method, self.error = method, error

    def _maybe(self, method: str) -> None:
        if self.method == method and self.error is not None:
            raise self.error

    def items(self, split: str) -> Any:
        self._maybe("items")
        return super().items(split)

    def reset(self, item: Any, rng: np.random.Generator) -> Any:
        self._maybe("reset")
        return super().reset(item, rng)

    def observe(self, state: Any, agent: str) -> Any:
        self._maybe("observe")
        return super().observe(state, agent)

    def step(self, state: Any, actions: Mapping[str, str], rng: np.random.Generator) -> Any:
        self._maybe("step")
        return super().step(state, actions, rng)

    def metrics(self, state: Any) -> Any:
        self._maybe("metrics")
        return super().metrics(state)

    def global_info(self, state: Any) -> Any:
        self._maybe("global_info")
        return super().global_info(state)

    def render(self, state: Any) -> Any:
        self._maybe("render")
        return None

    def legal_action(self, state: Any, agent: str, rng: np.random.Generator) -> Any:
        self._maybe("legal_action")
        return "a"


def played(task: DecPOMDP[Any, Any], program: Any = None, **more: Any) -> list[Tree[Any]]:
    players = {agent: Program(program or Says(text="a")) for agent in task.agents}
    return grow(task, CheckedTask(task).items("train")[:1], players, Chain(), seed=0, **more)[0]


def complaint(call: Any, *arguments: Any, **more: Any) -> str:
    with pytest.raises(TaskError) as caught:
        call(*arguments, **more)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize(
    ("method", "error", "order"),
    [
        ("reset", SystemExit(0), "lockstep"),
        ("reset", StopIteration(), "free"),
        ("observe", ValueError("no such word"), "lockstep"),
        ("observe", SystemExit(0), "free"),
        ("step", StopIteration(), "lockstep"),
        ("step", MemoryError("all of it"), "free"),
        ("global_info", SystemExit(0), "lockstep"),
        ("metrics", StopIteration(), "lockstep"),
    ],
)
def test_whatever_a_task_raises_is_told_with_task_method_item_and_line(method, error, order):
    told = complaint(played, Raises(method, error), order=order)
    assert told.startswith(f"task.{method}: raised {type(error).__name__}: ")
    assert told.endswith("; in Raises, item '('a clue',)'")
    assert f"({HERE}, line " in told
    assert (str(error) or "nothing said") in told


@pytest.mark.parametrize("error", [SystemExit(0), StopIteration()])
def test_items_that_are_not_given_are_told_of(error):
    told = complaint(played, Raises("items", error))
    assert told.startswith(f"task.items: raised {type(error).__name__}: ")
    assert told.endswith("; in Raises, split 'train'")


def test_an_interruption_is_no_mistake_of_the_task():
    with pytest.raises(KeyboardInterrupt):
        played(Raises("step", KeyboardInterrupt()))


def test_a_users_mistake_keeps_its_own_line():
    with pytest.raises(ConfigError, match=r"^mend this$"):
        played(Raises("step", ConfigError("mend this")))


def test_what_a_task_raises_is_shown_without_escapes_and_in_one_line():
    told = complaint(played, Raises("step", ValueError("\x1b[2Jgone\n\x07 \ud800" + "x" * 9000)))
    assert "raised ValueError: ?[2Jgone ? ?xxx" in told and len(told) < 700


def test_a_step_in_another_process_is_told_alike():
    with ProcessPoolExecutor(1) as pool:
        told = complaint(played, Raises("step", SystemExit(0)), pool=pool)
    assert told.startswith("task.step: raised SystemExit: 0 (")
    assert told.endswith("item '('a clue',)'")


def test_a_legal_action_that_cannot_be_drawn_is_told_of():
    told = complaint(played, Raises("legal_action", StopIteration()), Legal())
    assert told.startswith("task.legal_action: raised StopIteration: ")


def test_a_legal_action_that_no_player_asks_for_is_told_of_alike():
    task = Raises("legal_action", StopIteration())
    told = complaint(CheckedTask(task).legal_action, None, "ada", np.random.default_rng(0))
    assert told.startswith("task.legal_action: raised StopIteration: ")


def test_the_dry_run_and_a_transcript_tell_alike():
    task = Raises("observe", StopIteration())
    told = complaint(read_script, task, ("a clue",), 0)
    assert told.startswith("task.observe: raised StopIteration: ") and "item '('a clue',)'" in told
    (tree,) = played(Raises())
    told = complaint(transcript, Raises("render", SystemExit(0)), tree)
    assert told.startswith("task.render: raised SystemExit: 0")


class Gives(Raises):
    """One method gives something else."""

    def __init__(self, method: str, value: Any) -> None:
        super().__init__()
        setattr(self, method, lambda *arguments: value)


@pytest.mark.parametrize(
    ("method", "value", "expected"),
    [
        (
            "metrics",
            {"letters": math.nan},
            "task.metrics: 'letters' is nan, must be a",
        ),
        ("metrics", {"letters": [1]}, "task.metrics: 'letters' is a list, must be a finite"),
        ("metrics", {3: 1.0}, "task.metrics: the name 3 must be str"),
        ("metrics", 1.0, "task.metrics: gave a float, must be a mapping from name to number"),
        (
            "observe",
            7,
            "task.observe: agent 'ada' was given a int, must be str, Observation or None",
        ),
        ("observe", Observation("seen", (1,)), "task.observe: agent 'ada' was given tokens, which"),
        (
            "observe",
            Observation("seen", limits=AnswerLimits(stop="</a>")),  # would stop at each of "</a>"
            "task.observe: agent 'ada' was given limits.stop '</a>', must be a tuple of non-empty",
        ),
        (
            "observe",
            Observation("seen", limits=AnswerLimits(max_tokens=0)),  # would be no limit
            "task.observe: agent 'ada' was given limits.max_tokens 0, must be an integer of 1",
        ),
        (
            "observe",
            Observation("seen", system="\ud800"),
            "task.observe: agent 'ada' was given half of a surrogate pair",
        ),
        (
            "observe",
            Observation("seen", turns=(("hello",),)),
            "task.observe: agent 'ada' was given turns that are no pairs of texts",
        ),
        ("global_info", 7, "task.global_info: gave a int, must be str"),
        ("global_info", "\ud800", "task.global_info: gave half of a surrogate pair"),
        ("step", Outcome(state=None, reward=1e300), "task.step: reward is 1e+300, beyond 1e+09"),
        ("step", Outcome(state=None, reward=math.nan), "task.step: reward is nan, must"),
        (
            "step",
            Outcome(state=None, reward=0.0, local_rewards={"ada": 1e300}),
            "task.step: local reward of 'ada' is 1e+300, beyond 1e+09",
        ),
        (
            "step",
            Outcome(state=None, reward=0.0, earned={(0, "ada"): 1e300}),
            "task.step: what (0, 'ada') earned is 1e+300, beyond 1e+09",
        ),
        (
            "step",
            Outcome(state=None, reward=0.0, earned={(5, "ada"): 1.0}),
            "task.step: earned names turn 5 of 'ada' after 1 turns",
        ),
    ],
)
def test_what_breaks_the_contract_is_told_with_the_item(method, value, expected):
    told = complaint(played, Gives(method, value))
    assert told.startswith(expected) and told.endswith("; in Gives, item '('a clue',)'")


def test_a_rendering_that_is_no_text_is_told_of():
    (tree,) = played(Raises())
    told = complaint(transcript, Gives("render", 7), tree)
    assert told.startswith("task.render: gave a int, must be str; in Gives, item")


def test_the_largest_reward_is_one():
    outcome = Outcome(state=None, reward=LARGEST_REWARD, local_rewards={"ada": -LARGEST_REWARD})
    assert validate_outcome(outcome, ("ada",)) is outcome
    assert validate_metrics({"found": True, "share": 0.5}) == {"found": True, "share": 0.5}


def test_metrics_whose_names_change_are_told_of():
    (tree,) = played(Raises())
    last = replace(tree.nodes[-1], metrics={"words": 1.0})
    other = replace(tree, nodes=(*tree.nodes[:-1], last))
    told = complaint(mean_outcomes, [tree, other], frozenset({"team"}), SharedReward())
    assert told.startswith("task.metrics: names change from ['letters'] to ['words']")


@pytest.mark.parametrize("name", ["return", "return/ada", "turns"])
def test_a_metric_with_the_name_of_one_of_every_evaluation_is_told_of(name):
    """`return` replaced the mean reward, and `turns` was replaced."""
    (tree,) = played(Raises())
    named = replace(tree.nodes[-1], metrics={name: 1.0})
    tree = replace(tree, nodes=(*tree.nodes[:-1], named))
    told = complaint(mean_outcomes, [tree], frozenset({"team"}), SharedReward())
    assert told.startswith(f"task.metrics: '{name}' is a metric of every evaluation; give ")


def test_an_item_is_named_whatever_its_text():
    class Mute:
        def __str__(self) -> str:
            raise ValueError

    one, other = (item_name("x" * 200 + end) for end in "ab")
    assert one[:72] == other[:72] == "x" * 67 + " ... " and one != other
    assert len(one) == 80 and item_name(one) == one
    assert item_name("a\x1b[2J\nb") == "a?[2J b"
    assert item_name(Mute()) == "Mute whose str() raises ValueError"


def test_the_line_told_is_the_tasks_own_where_a_library_raises():
    with pytest.raises(TaskError) as caught, asking(Raises(), "step"):
        np.zeros(2).reshape(3)
    assert f"({HERE}, line " in str(caught.value)


class Beyond(BaseException):
    """An exception of no kind that Python knows."""


@pytest.mark.parametrize(
    "raised",
    [asyncio.CancelledError("x"), Beyond("x"), BaseExceptionGroup("x", [SystemExit(1)])],
    ids=lambda raised: type(raised).__name__,
)
def test_whatever_a_step_raises_is_told_of(raised):
    """A CancelledError ended a branch as if it had been cancelled, and the episode with it."""

    class Ends(Notes):
        def step(self, state, actions, rng):
            raise raised

    told = complaint(played, Ends())
    assert told.startswith(f"task.step: raised {type(raised).__name__}: x")


def test_an_observation_longer_than_the_model_reads_is_told_of():
    chat = ChatFormat(byte_tokenizer())
    player = Language(engine=None, agent="ada", spec=AgentSpec(chat=chat, positions=100))  # type: ignore[arg-type]
    task = Gives("observe", "word " * 20)
    with pytest.raises(TaskError) as caught:
        grow(task, task.items("train"), {"ada": player}, Chain(), seed=0)
    assert str(caught.value) == (
        "task.observe: agent 'ada' was given 102 tokens, and its model reads 100; show less, or "
        "name a model with a longer context; in Gives, item '('a clue',)'"
    )


def test_the_embedded_model_is_not_made_of_observations_longer_than_it_reads(tmp_path, monkeypatch):
    monkeypatch.setenv("COLEARN_CACHE", str(tmp_path))
    told = complaint(embedded_model, Gives("observe", "word " * 40_000), "embedded-tiny", "path")
    assert told.startswith("task.observe: agent 'ada' was given 40000 tokens, and its model reads")
    assert told.endswith("in Gives, item '('a clue',)'")


class Leaves(Raises):
    """Ends the process that it runs in."""

    def step(self, state: Any, actions: Mapping[str, str], rng: np.random.Generator) -> Any:
        os._exit(0)


class Exits(Raises):
    """Ends its program as if all was well."""

    def __init__(self) -> None:
        super().__init__("step", SystemExit(0))


class NeverMade(Raises):
    """Ends its program as soon as it is made."""

    def __init__(self) -> None:
        raise SystemExit  # not sys.exit(), which wandb replaces


class Talks(Raises):
    """Shows 2,000 words."""

    def observe(self, state: Any, agent: str) -> Any:
        return "word " * 2000


NAMES = ("Exits", "Leaves", "NeverMade", "Talks")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize(
    ("task", "more", "expected"),
    [
        ("exits", (), "error: task.step: raised SystemExit: 0 ("),
        ("leaves", ("run.step_workers=1",), "error: task.step: a worker process died during a"),
        ("nevermade", (), "error: task.__init__: raised SystemExit: nothing said ("),
        ("talks", (), "error: task.observe: agent 'ada' was given 10"),
    ],
)
def test_a_run_of_such_a_task_ends_with_a_line_and_code_2(
    task, more, expected, model, tmp_path, monkeypatch, capsys
):
    register(monkeypatch, **{name.lower(): f"{__name__}:{name}" for name in NAMES})
    config = tmp_path / "config.yaml"
    config.write_text(
        f"task: {{name: {task}}}\n"
        "algorithm: {name: magrpo, rollout: {k: 2}}\n"
        f"models: {{'*': {{path: {model}, learning_rate: 1.0e-3}}}}\n"
        "agents: {'*': {sampling: {max_tokens: 2}}}\n"
        "train: {environment_steps: 4, episodes: 1, token_budget: 9000}\n"
        "run: {device: cpu}\n"
    )
    sets = [word for pair in more for word in ("--set", pair)]
    runs = [["--out", str(tmp_path / "out"), *sets]]
    if task == "talks":
        runs.append(["--dry-run"])
    for words in runs:
        monkeypatch.setattr(sys, "argv", ["colearn", "train", str(config), *words])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr().err
        assert stop.value.code == 2 and told.startswith(expected) and told.count("\n") == 1


def test_a_program_that_other_code_ends_with_code_0_says_where(monkeypatch, capsys):
    def ends(**words: Any) -> None:
        raise SystemExit

    monkeypatch.setattr("colearn.entry.cli.app", ends)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: {HERE}, line ") and told.count("\n") == 1


class NoHorizon(Notes):
    """Its horizon depends on what was never set."""

    def __init__(self) -> None:
        pass

    agents = ("ada",)

    @property
    def horizon(self) -> Any:  # type: ignore[override]
        return self.length


def test_a_property_of_a_task_that_raises_is_told_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(monkeypatch, no_horizon=f"{__name__}:NoHorizon")
    config = load_config({"task": "no_horizon", "models": {}})
    told = (
        r"task\.horizon: raised AttributeError: .*'length'.* \(.*misbehaving_tasks\.py, line \d+\)"
    )
    with pytest.raises(TaskError, match=told):
        build_task(config)
