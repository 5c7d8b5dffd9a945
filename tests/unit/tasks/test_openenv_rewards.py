"""Rewards and ends that an OpenEnv server reports: none is dropped, and none is made up."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from colearn.errors import TaskError
from colearn.tasks.openenv import OpenEnv, session, sessions, task
from colearn.text.notes import note_once

RNG = np.random.default_rng(0)
NAN, INFINITY = float("nan"), float("inf")


class Client:
    """OpenEnv's client of an environment that follows a script of (reward, done)."""

    script: Sequence[tuple[Any, bool]] = ()

    def __init__(self, base_url: str) -> None:
        self.place = 0

    def sync(self) -> Client:
        return self

    def reset(self, **arguments: Any) -> Any:
        self.place = 0
        return self._result()

    def step(self, action: Any) -> Any:
        self.place += 1
        return self._result()

    def close(self) -> None:
        pass

    def _result(self) -> Any:
        reward, done = self.script[self.place]
        return SimpleNamespace(observation={"text": f"{self.place}"}, reward=reward, done=done)


@pytest.fixture
def made(monkeypatch):
    """Returns a function that makes the task of a script."""
    monkeypatch.setattr(session, "_client_class", lambda: Client)
    monkeypatch.setattr(
        session, "_exceptions", lambda: SimpleNamespace(ConnectionClosed=ConnectionError)
    )
    monkeypatch.setattr(task, "read_schema", lambda url: {"properties": {"word": {}}})
    monkeypatch.setattr(sessions, "_idle", {})
    monkeypatch.setattr(sessions, "_live", {})

    def make(*script: tuple[Any, bool], horizon: int = 8) -> OpenEnv:
        monkeypatch.setattr(Client, "script", script)
        return OpenEnv("http://nowhere", horizon=horizon)

    return make


@pytest.fixture
def play(made):
    """Plays a script to its end; returns the rewards, and the metric `reward`."""

    def played(*script: tuple[Any, bool], horizon: int = 8) -> tuple[list[float | None], float]:
        openenv = made(*script, horizon=horizon)
        state = openenv.reset(openenv.items("train")[0], RNG)
        rewards = []
        for _ in range(horizon):
            outcome = openenv.step(state, {"agent": "x"}, RNG)
            rewards.append(outcome.reward)
            state = outcome.state
            if outcome.done:
                break
        return rewards, openenv.metrics(state)["reward"]

    return played


def test_a_reward_of_the_reset_is_paid_with_the_first_action(play):
    assert play((2.0, False), (1.0, False), (0.5, True)) == ([3.0, 0.5], 3.5)
    assert play((None, False), (1.0, False), (0.5, True)) == ([1.0, 0.5], 1.5)


def test_an_environment_that_pays_once_at_the_end_has_no_reward_before(play):
    assert play((None, False), (None, False), (None, False), (4, True)) == ([0.0, 0.0, 4.0], 4.0)
    assert play((None, False), (None, False), (True, True)) == ([0.0, 1.0], 1.0)
    assert play((None, False), (None, False), (None, False), horizon=2) == ([0.0, 0.0], 0.0)


@pytest.mark.parametrize(
    ("script", "truncated"),
    [
        ([(None, False), (None, False)], True),  # it pays at its end, which is not reached
        ([(2.0, False), (None, False)], True),
        ([(None, False), (0.0, False)], False),  # it pays for each action
        ([(None, False), (0.0, True)], False),
    ],
)
def test_an_episode_that_has_not_paid_at_the_horizon_is_truncated(made, script, truncated):
    openenv = made(*script, horizon=1)
    state = openenv.reset(openenv.items("train")[0], RNG)
    assert openenv.step(state, {"agent": "x"}, RNG).truncated is truncated


def test_refused_actions_alone_do_not_truncate_an_episode(made, monkeypatch):
    openenv = made((None, False), horizon=1)
    state = openenv.reset(openenv.items("train")[0], RNG)
    monkeypatch.setattr(openenv, "_answered", lambda session, action: (None, "refused: x"))
    assert not openenv.step(state, {"agent": "x"}, RNG).truncated


def test_a_missing_reward_that_counts_as_0_is_noted(play, capsys):
    note_once.cache_clear()
    play((None, False), (None, False), (4, True))
    assert "paid no number for an action; this counts as 0" in capsys.readouterr().err
    note_once.cache_clear()
    play((None, False), (0.0, False), (4, True))
    assert capsys.readouterr().err == ""


def test_an_episode_that_has_ended_at_its_reset_is_refused(play):
    for reward in (None, 1.0):
        with pytest.raises(TaskError, match=r"^task\.url: http://nowhere has ended the episode at"):
            play((reward, True), (1.0, True))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([(None, False), (NAN, True)], "paid nan; let the environment pay finite numbers"),
        ([(None, False), (NAN, False)], "paid nan; let"),
        ([(None, False), (-INFINITY, False)], "paid -inf; let"),
        ([(NAN, False)], "paid nan; let"),
        ([(None, False), ("high", False)], "paid 'high'; let"),
        ([(None, False), (None, True)], "paid no number for the last action"),
        ([(None, False), (1.0, False), (None, False)], "after it had paid one"),
        ([(None, False), (0.0, False), (None, True)], "paid no number for the last action"),
    ],
)
def test_a_reward_that_is_no_finite_number_is_refused(play, script, said):
    with pytest.raises(TaskError, match=rf"^task\.url: http://nowhere .*{said}"):
        play(*script)
