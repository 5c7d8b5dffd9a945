"""Steps that wait run at once in lockstep; others one after the other, in the calling thread."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

from colearn.rollout.agents import Program
from colearn.rollout.grow import grow
from colearn.rollout.shapes import Chain
from colearn.tasks.dataset.task import Dataset
from tests.helpers.tiny import Notes

EPISODES = 4
WAIT = 0.2
"""Seconds; a step is seen to wait from 0.05 on."""


class Says:
    def act(self, view: Any) -> str:
        return f"{view.seat} {view.rng.integers(100)}"


class Waiting(Notes):
    """Its steps wait; all but the first of a turn wait for each other."""

    steps_at_once = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.begun, self.together, self.threads = 0, threading.Barrier(EPISODES - 1), list[str]()
        self.lock = threading.Lock()

    def step(self, state: Any, actions: Any, rng: Any) -> Any:
        with self.lock:
            self.begun += 1
            number = self.begun
            self.threads.append(threading.current_thread().name.partition("_")[0])
        if number == 1:
            time.sleep(WAIT)
        else:
            self.together.wait(timeout=600)
        return super().step(state, actions, rng)


def played(task: Any) -> list[Any]:
    players = {agent: Program(Says()) for agent in task.agents}
    trees, _ = grow(task, task.items("train")[:EPISODES], players, Chain(), seed=0)
    return [(node.reward, node.actions) for tree in trees for node in tree.nodes]


def test_steps_of_a_turn_that_wait_run_at_once_with_the_same_outcomes() -> None:
    task = Waiting(items=EPISODES, horizon=1)
    assert played(task) == played(Notes(items=EPISODES, horizon=1))
    assert task.threads == ["MainThread", "step", "step", "step"]


def test_steps_of_a_task_that_does_not_allow_it_run_in_the_calling_thread() -> None:
    class Alone(Waiting):
        steps_at_once = False

        def step(self, state: Any, actions: Any, rng: Any) -> Any:
            self.begun = 0
            return super().step(state, actions, rng)

    task = Alone(items=EPISODES, horizon=1)
    played(task)
    assert task.threads == ["MainThread"] * EPISODES


def test_steps_that_do_not_wait_run_in_the_calling_thread() -> None:
    class Quick(Waiting):
        def step(self, state: Any, actions: Any, rng: Any) -> Any:
            self.threads.append(threading.current_thread().name)
            return Notes.step(self, state, actions, rng)

    task = Quick(items=EPISODES, horizon=1)
    played(task)
    assert task.threads == ["MainThread"] * EPISODES


def test_a_step_that_sets_an_alarm_and_waits_runs_in_the_main_thread() -> None:
    class Alarms(Notes):
        steps_at_once = True

        def step(self, state: Any, actions: Any, rng: Any) -> Any:
            signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGALRM))
            time.sleep(WAIT / 2)
            return super().step(state, actions, rng)

    assert played(Alarms(items=EPISODES, horizon=1)) == played(Notes(items=EPISODES, horizon=1))


def test_another_error_in_a_thread_is_the_tasks() -> None:
    class Fails(Waiting):
        def step(self, state: Any, actions: Any, rng: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                raise ValueError("no such word")
            return super().step(state, actions, rng)

    with pytest.raises(Exception, match=r"task\.step: raised ValueError: no such word"):
        played(Fails(items=EPISODES, horizon=1))


@pytest.mark.parametrize("threads", [True, False])
def test_rewards_of_a_data_set_run_at_once_unless_it_says_no(threads: bool, tmp_path: Any) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a"}\n' * 4)
    rows, reward = str(tmp_path / "rows.jsonl"), "tests.helpers.reward_functions:matches"
    task = Dataset(rows, reward, threads=threads)
    assert task.steps_at_once is threads
