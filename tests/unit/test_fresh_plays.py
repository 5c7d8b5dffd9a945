"""What `colearn check` compares between processes."""

from __future__ import annotations

import pytest

from colearn.contract import DecPOMDP
from colearn.contract.testing import fresh_plays
from colearn.contract.types import Outcome
from colearn.errors import TaskError


class Mine(DecPOMDP):
    agents, horizon = ("a", "b"), 2
    word, paid, measured, told, listed = "guess", 1.0, 0.0, "", ("one", "two")

    def items(self, split):
        return list(self.listed)

    def reset(self, item, rng):
        return int(rng.integers(4))

    def observe(self, state, agent):
        return self.word if agent == "a" else None

    def step(self, state, actions, rng):
        return Outcome(state=state, reward=self.paid)

    def metrics(self, state):
        return {"m": self.measured}

    def global_info(self, state):
        return self.told


CHANGES = {
    "agents": (("b", "a"), "task.agents: the names"),
    "listed": (("two", "one"), "task.items: the content of item "),
    "word": ("look", "task.observe: what 'a' sees at turn 0 of item "),
    "paid": (2.0, "task.step: the reward at turn 0 of item "),
    "told": ("m", "task.global_info: the text at turn 0 of item "),
    "measured": (float("nan"), "task.metrics: the values at turn 0 of item "),
    "horizon": (1, "task."),
}


@pytest.fixture
def other(monkeypatch):
    """The task that each process builds: this one first, then the fresh ones."""
    tasks: list[Mine] = []
    monkeypatch.setattr(fresh_plays, "load_config", lambda data, changes: None)
    monkeypatch.setattr(fresh_plays, "build_task", lambda config: Mine())
    monkeypatch.setattr(fresh_plays, "_fresh", lambda config, seed: fresh_plays.plays(tasks[-1]))
    return tasks


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_an_agent_or_training_sees_is_compared_between_processes(other, name):
    value, told = CHANGES[name]
    other.append(type("Other", (Mine,), {name: value})())
    with pytest.raises(TaskError) as raised:
        fresh_plays.check_fresh_plays({}, [])
    assert str(raised.value).startswith(told) and " differs between processes; " in str(
        raised.value
    )


def test_equal_plays_pass(other):
    other.append(Mine())
    fresh_plays.check_fresh_plays({}, [])
