"""Worker processes for steps: what is sent, what comes back, what cannot be sent."""

from __future__ import annotations

import threading
from operator import itemgetter

import pytest
from tiny import Notes

from colearn.contract import SampledAction
from colearn.contract.types import Action
from colearn.errors import ConfigError
from colearn.training.step_workers import step_workers


class Paid(Notes):
    """Pays a service for each step, and has rows that are large."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def costs(self):
        return {"calls": self.calls}


class Locked(Notes):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Here(Notes):
    steps_here = True


def pay(task: Paid, times: int) -> int:
    task.calls += times
    return times


def same(task: Paid, other: Paid) -> bool:
    return task is other


def lock(task: Paid) -> object:
    return threading.Lock()


def test_a_worker_holds_the_task_once():
    task = Paid()
    with step_workers(1, task) as pool:
        assert pool.submit(same, task, task).result()


def test_costs_of_the_workers_are_added_up():
    task = Paid()
    with step_workers(2, task) as pool:
        assert list(pool.map(pay, [task] * 3, [1, 2, 4])) == [1, 2, 4]
        assert pool.costs == {"calls": 7}
    assert task.calls == 0


def test_a_task_with_open_connections_is_stepped_here():
    with step_workers(2, Here()) as pool:
        assert pool is None


def test_an_action_arrives_with_its_tokens_and_without_its_player():
    said = SampledAction(Action("owl", (1, 2)), threading.Lock(), (7, 8))
    with step_workers(1, Paid()) as pool:
        came = pool.submit(itemgetter(0), [said]).result()
    assert (came.text, came.action, came.context) == ("owl", said.action, (7, 8))
    assert came.player is None


def test_a_task_that_cannot_be_sent_is_one_line():
    message = r"^run\.step_workers: the task cannot be sent to a worker process \(cannot pickle"
    with pytest.raises(ConfigError, match=message), step_workers(1, Locked()):
        pass


def test_a_state_that_cannot_be_sent_is_one_line():
    with step_workers(1, Paid()) as pool:
        with pytest.raises(ConfigError, match=r"^run\.step_workers: a state cannot be sent"):
            pool.submit(max, threading.Lock())
        with pytest.raises(ConfigError, match=r"^run\.step_workers: an outcome cannot be sent"):
            pool.submit(lock, None).result()
