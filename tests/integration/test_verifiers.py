"""Environments of verifiers, played by the package itself: COLEARN_VERIFIERS is the Python of an
environment with verifiers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from colearn.tasks.verifiers import Verifiers
from tests.helpers.gateway_programs import RNG, episode, opened

LOOK = '<tool_call>{"name": "room_look", "arguments": {"room": "hill"}}</tool_call>'
HELPERS = Path(__file__).parents[1] / "helpers"

pytestmark = pytest.mark.frameworks


@pytest.fixture
def rooms(monkeypatch):
    python = os.environ.get("COLEARN_VERIFIERS")
    if not python:
        pytest.skip("COLEARN_VERIFIERS is not set")
    monkeypatch.chdir(HELPERS)
    return lambda **settings: opened(Verifiers("verifiers_rooms", python=python, **settings))


def talk(agent, prompt):
    if agent == "guide":
        return "red"
    return "red" if "tool_response" in prompt else LOOK


def test_roles_play_with_tools_and_each_is_paid_its_own_rewards(rooms):
    task = rooms(rewards="own")
    assert task.agents == ("scout", "guide")  # the judge names a model
    first = task.reset(0, RNG)
    states = [first]
    outcomes = []
    while not states[-1].finished:
        asked = {a: task.observe(states[-1], a) for a in task.agents}
        said = {a: talk(a, p.whole) for a, p in asked.items() if p is not None}
        outcomes.append(task.step(states[-1], said, RNG))
        states.append(outcomes[-1].state)
    assert states[-1].failure is None
    prompts = [(e.call.name, e.call.prompt.fresh, e.call.prompt.text) for e in states[-1].events]
    assert prompts == [
        ("scout", True, "Room hill."),
        ("scout", False, "<tool_response>red</tool_response>"),
        ("guide", True, "The scout says red."),
    ]
    assert states[-1].events[2].call.prompt.system == "Repeat."
    last = outcomes[-1]  # the guide's action is this turn's
    assert (last.reward, last.local_rewards) == (0.0, {"guide": 1.0})
    assert last.earned == {(0, "scout"): 2.0, (1, "scout"): 2.0}


def test_the_team_is_paid_the_sum_of_the_roles_rewards(rooms):
    task = rooms()
    assert episode(task, talk, 0)[-1].measured["reward"] == 3.0
    wrong = episode(task, lambda agent, prompt: "red", 1)[-1]  # the barn is blue
    assert wrong.measured["reward"] == 1.0


def test_an_episode_with_an_infinite_reward_fails_at_once(rooms):
    task = rooms(failure_reward=-1.0)
    final = episode(task, lambda agent, prompt: "more", 0)[-1]
    assert final.measured["reward"] == -1.0
    assert final.failure == "the environment pays guide inf"


def test_an_episode_that_the_environment_does_not_complete_fails(rooms):
    """A role's setting reaches the environment, which refuses to run this harness without a
    container."""
    task = rooms(settings={"scout": {"harness": {"id": "codex"}}}, failure_reward=-1.0)
    final = episode(task, talk, 0)[-1]
    assert final.measured["reward"] == -1.0
    assert "needs a container runtime" in final.failure
