"""A task has five abstract methods; everything else is an option with a neutral default."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from colearn.config import load_config, resolve
from colearn.contract import DecPOMDP
from colearn.contract.checked_task import CheckedTask, check_frame, item_name
from colearn.contract.testing import check_task
from colearn.contract.types import Outcome
from colearn.errors import TaskError
from colearn.tasks.wrappers import Wrapper

RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Turn:
    number: int = 0


class Plain(DecPOMDP[int, Turn]):
    agents = ("a",)
    horizon = 3

    def items(self, split):
        return [0]

    def reset(self, item, rng):
        return Turn()

    def observe(self, state, agent):
        return "go"

    def step(self, state, actions, rng):
        return Outcome(state=Turn(state.number + 1), reward=0.0)

    def metrics(self, state):
        return {}


REQUIRED = {"items", "reset", "observe", "step", "metrics"}
OPTIONS = {name for name in vars(DecPOMDP) if not name.startswith("_")} - REQUIRED - {"headline"}


def test_the_author_of_a_task_writes_five_methods():
    assert DecPOMDP.__abstractmethods__ == REQUIRED


def test_a_task_without_options_gives_neutral_answers():
    task, state = Plain(), Turn()
    assert task.render(state) is task.picture(state) is None
    assert task.legal_action(state, "a", RNG) is task.action_words("a") is None
    assert task.global_info(state) == task.privileged_info(state) == ""
    assert task.pays == {"team"} and not task.pays_later
    assert task.optimum is task.reward_range is task.exact_headline is None
    assert not (task.program or task.steps_here or task.steps_at_once or task.reads_actions)
    assert task.prepare(0) == 0 and task.send(state, {}) == state
    assert task.alone() is None
    assert task.finite_problem() is task.enumerated_game() is None
    assert task.costs() == {}
    assert task.horizon_of(0) == 3


def test_every_option_is_documented():
    source = inspect.getsource(DecPOMDP)
    for name in OPTIONS:
        value = vars(DecPOMDP).get(name)
        if callable(value):
            assert value.__doc__, name
        else:
            after = source.split(f"\n    {name}: ")[1].splitlines()[1]
            assert after.strip().startswith('"""'), name
        assert name in DecPOMDP.__doc__, name


OF_THE_TASK_ITSELF = {
    "action_words",
    "alone",
    "enumerated_game",
    "exact_headline",
    "finite_problem",
    "optimum",
    "send",
}
"""Options that describe the task's own observations and joint actions."""


class Holder(NamedTuple):
    """A wrapper's state."""

    inner: str


class Same(Wrapper):
    reset = observe = step = None


@pytest.mark.parametrize("name", sorted(OPTIONS - OF_THE_TASK_ITSELF))
def test_a_wrapper_forwards_every_option(name):
    default = vars(DecPOMDP)[name]
    inner, calls = Plain(), []
    if not callable(default):
        setattr(inner, name, f"the task's {name}")
        assert getattr(Same(inner), name) == f"the task's {name}"
        return
    setattr(inner, name, lambda *given: calls.append(given) or f"the task's {name}")
    arguments = {"legal_action": ("a", RNG)}.get(name, ())
    if "item" in inspect.signature(default).parameters:
        arguments = ("item",)
    elif "state" in inspect.signature(default).parameters:
        arguments = (Holder("inner"), *arguments)
    told = getattr(Same(inner), name)(*arguments)
    assert told == f"the task's {name}" or default.__annotations__["return"] == "None"
    assert calls == [tuple("inner" if isinstance(a, Holder) else a for a in arguments)]


@pytest.mark.parametrize("name", sorted(OF_THE_TASK_ITSELF))
def test_a_wrapper_does_not_forward_what_describes_the_task_alone(name):
    assert name not in vars(Wrapper)


class SetsInConstructor(Plain):
    def __init__(self):
        self.pays = frozenset({"local"})


def test_an_option_may_be_set_in_the_constructor():
    check_frame(SetsInConstructor())
    check_task(SetsInConstructor())


@pytest.mark.parametrize("value", ["team", frozenset(), {"players"}, None])
def test_kinds_of_reward_that_do_not_exist_are_one_line_before_a_run(value):
    task = Plain()
    task.pays = value
    config = load_config({"task": {"name": "any"}, "models": {}})
    with pytest.raises(TaskError, match=r"^task\.pays: must be a frozenset of 'team', 'local'"):
        resolve(config, task=task)


class Faulty(Plain):
    """Each of its options raises an exception."""


CALLS = {
    "prepare": (0,),
    "send": (Turn(), {}),
    "abandon": (Turn(),),
    "global_info": (Turn(),),
    "privileged_info": (Turn(),),
    "legal_action": (Turn(), "a", RNG),
    "render": (Turn(),),
    "picture": (Turn(),),
    "horizon_of": (7,),
    "metrics": (Turn(),),
}


@pytest.mark.parametrize("method", CALLS)
def test_an_exception_in_an_option_is_one_line_with_the_method_and_the_item(method):
    def fails(*_):
        raise ValueError("out of order")

    task = Faulty()
    setattr(task, method, fails)
    with pytest.raises(TaskError) as raised:
        getattr(CheckedTask(task, item_name(7)), method)(*CALLS[method])
    told = str(raised.value)
    assert told.startswith(f"task.{method}: raised ValueError: out of order (")
    assert told.endswith("fix it there; in Faulty, item '7'")


@pytest.mark.parametrize("turns", [0, 4, 2.0, True, None])
def test_a_horizon_of_an_item_outside_of_the_tasks_is_one_line(turns):
    task = Plain()
    task.horizon_of = lambda item: turns
    with pytest.raises(TaskError) as raised:
        CheckedTask(task).horizon_of("x")
    assert str(raised.value) == (
        f"task.horizon_of: must be a whole number from 1 to task.horizon (3), got {turns!r}; in "
        "Plain, item 'x'"
    )


def test_a_horizon_of_numpy_is_a_number():
    task = Plain()
    task.horizon_of = lambda item: np.int64(2)
    assert CheckedTask(task).horizon_of("x") == 2
