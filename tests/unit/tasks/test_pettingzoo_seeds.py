"""Environments that ignore their seed are refused; faults name the environment's line."""

from __future__ import annotations

import dataclasses
import inspect
import random
import re
from collections import deque

import numpy as np
import pytest

from colearn.errors import ConfigError, TaskError
from colearn.tasks.pettingzoo import PettingZoo, replay
from colearn.tasks.pettingzoo.phrasing import written

pettingzoo = pytest.importorskip("pettingzoo", reason="needs the games extra")
spaces = pytest.importorskip("gymnasium.spaces", reason="needs the games extra")


class Secret(pettingzoo.ParallelEnv):
    """One step; an agent earns 1 for the number that nobody sees."""

    def __init__(self):
        self.possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Text(40)

    def action_space(self, agent):
        return spaces.Discrete(4)

    def draw(self, seed):
        return random.Random(seed).randrange(4)

    def info(self):
        return {}

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.secret = self.draw(seed)
        return dict.fromkeys(self.agents, "guess"), dict.fromkeys(self.agents, self.info())

    def pay(self, action):
        return float(action == self.secret)

    def step(self, actions):
        acted, self.agents = self.agents, []
        paid = {agent: self.pay(actions[agent]) for agent in acted}
        ended, cut = dict.fromkeys(acted, True), dict.fromkeys(acted, False)
        return dict.fromkeys(acted, ""), paid, ended, cut, {}


class Global(Secret):
    def draw(self, seed):
        return random.randrange(4)


class Own(Secret):
    """Resets of one environment differ, and all new environments are equal."""

    def __init__(self):
        super().__init__()
        self.rng = random.Random(7)

    def draw(self, seed):
        return self.rng.randrange(4)


class SeedsTheGlobalGenerator(Secret):
    """Another environment's reset changes what this one draws."""

    def draw(self, seed):
        random.seed(seed)

    def pay(self, action):
        return random.random()


class Shows(Secret):
    def reset(self, seed=None, options=None):
        seen, infos = super().reset(seed)
        return dict.fromkeys(seen, f"room {random.randrange(1000)}"), infos


class Masks(Secret):
    def info(self):
        return {"action_mask": [1, *np.random.randint(0, 2, 3)]}


class InTurn(pettingzoo.AECEnv):
    """Two agents act in an order that the seed does not decide."""

    def __init__(self):
        super().__init__()
        self.possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Text(40)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def observe(self, agent):
        return "go"

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.rewards = self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = random.choice(self.agents)

    def step(self, action):
        self.agent_selection = random.choice(self.agents)


@pytest.fixture(autouse=True)
def nothing_kept():
    replay.situation.cache_clear()
    replay._reached.clear()
    replay._live._by_play.clear()


def begun(kind, **settings):
    task = PettingZoo(env=f"{__name__}:{kind.__name__}", parallel=kind is not InTurn, **settings)
    return task, task.reset(task.items("train")[0], np.random.default_rng(0))


def test_an_environment_that_follows_from_its_seed_is_played():
    task, state = begun(Secret)
    assert "guess" in task.observe(state, "a")


@pytest.mark.parametrize(
    ("kind", "difference"),
    [
        (Global, "other rewards"),
        (Own, "other rewards"),
        (SeedsTheGlobalGenerator, "other rewards"),
        (Shows, "'a' another observation"),
        (Masks, "'a' other legal actions"),
        (InTurn, "another order of agents"),
    ],
)
def test_an_environment_that_ignores_its_seed_is_refused_before_the_first_episode(kind, difference):
    with pytest.raises(TaskError) as raised:
        begun(kind)
    assert str(raised.value).startswith(
        f"task.env: '{__name__}:{kind.__name__}' gives {difference} in a second play with the same "
        "seed and actions; let all randomness follow from the `seed` of reset"
    )


class Drifts(Secret):
    """Follows from its seed until it has been made five times."""

    made = 0

    def __init__(self):
        super().__init__()
        type(self).made += 1
        self.number = type(self).made

    def reset(self, seed=None, options=None):
        seen, infos = super().reset(seed)
        shown = f"guess {self.number if self.number > 5 else ''}"
        return dict.fromkeys(seen, shown), infos


def test_a_replay_that_shows_something_else_is_refused():
    task, state = begun(Drifts)
    with pytest.raises(TaskError, match="'a' another observation when an episode is replayed"):
        for word in "0123":
            task.step(state, {"a": word, "b": "0"}, np.random.default_rng(0))


MASKS = {
    "longer": ([1, 1, 0, 0, 1], "has 5 entries and its space 4 actions"),
    "of two rows": ([[1, 1, 0, 0]], "has 1 x 4 entries and its space 4 actions"),
    "a set of actions": ({0, 2}, "has no entries and its space 4 actions"),
    "added to logits": ([0.0, -np.inf, 0.0, 0.0], "has entries other than 0 and 1"),
    "of actions": ([0, 2, 3, 1], "has entries other than 0 and 1"),
    "empty": ([0, 0, 0, 0], "leaves 'a' no action"),
}


@pytest.mark.parametrize(("mask", "fault"), MASKS.values(), ids=MASKS)
def test_a_mask_that_does_not_fit_the_space_is_refused(monkeypatch, mask, fault):
    monkeypatch.setattr(Secret, "info", lambda self: {"action_mask": mask})
    with pytest.raises(TaskError, match=re.escape(fault)):
        begun(Secret)


@pytest.mark.parametrize("kind", [np.int8, bool, list])
def test_a_mask_of_any_type_that_fits_is_read(monkeypatch, kind):
    mask = [1, 0, 0, 1] if kind is list else np.array([1, 0, 0, 1], kind)
    monkeypatch.setattr(Secret, "info", lambda self: {"action_mask": mask})
    task, state = begun(Secret)
    assert task.observe(state, "a").endswith("Answer with one of: 0, 3")


class NoInfos(Secret):
    def reset(self, seed=None, options=None):
        return super().reset(seed)[0]


class OneObservation(Secret):
    def reset(self, seed=None, options=None):
        seen, infos = super().reset(seed)
        return {"a": seen["a"]}, infos


class OldStep(Secret):
    def step(self, actions):
        return super().step(actions)[:4]


class PaysText(Secret):
    def pay(self, action):
        return "1"


class RaisesInNumpy(Secret):
    def pay(self, action):
        return np.zeros(2).reshape(3)


@pytest.mark.parametrize(
    ("kind", "method", "told"),
    [
        (NoInfos, "reset", "reset must return (observations, infos)"),
        (OneObservation, "reset", "does not return what PettingZoo's interface requires (KeyError"),
        (OldStep, "step", "step must return (observations, rewards, terminations, truncations"),
        (PaysText, "step", "'a' was paid '1'"),
        (RaisesInNumpy, "pay", "raised ValueError: cannot reshape array"),
    ],
)
def test_a_fault_of_an_environment_names_its_file_and_line(kind, method, told):
    function = getattr(kind, method)
    start = function.__code__.co_firstlineno
    with pytest.raises(TaskError) as raised:
        begun(kind)
    message = str(raised.value)
    assert message.startswith("task.env: ") and told in message and "\n" not in message
    [(file, line)] = re.findall(r"(\S+\.py), line (\d+)", message)
    assert file.lstrip("(") == __file__
    lines = range(start, start + len(inspect.getsourcelines(function)[0]))
    if method == "step" and kind is PaysText:  # Secret's
        lines = range(Secret.step.__code__.co_firstlineno, Secret.step.__code__.co_firstlineno + 6)
    assert int(line) in lines


def broken() -> None:
    raise TypeError("no board")


def test_a_fault_while_an_environment_is_made_names_its_file():
    with pytest.raises(ConfigError, match=rf"^task\.settings: no board \({__file__}, line \d+\)"):
        PettingZoo(env=f"{__name__}:broken")


def test_a_set_in_an_observation_is_sorted():
    assert written({"words": {"oak", "ash"}, "seen": (frozenset({3, 10, 2}), "x")}) == (
        "words: ash\noak\nseen: 2\n3\n10\nx"
    )


@dataclasses.dataclass
class Hand:
    cards: set[str]


@pytest.mark.parametrize("holding", [deque, lambda held: np.array([*held, 1], dtype=object)])
def test_a_set_anywhere_in_an_observation_is_sorted(holding):
    letters = set("hgfedcba")
    assert written(holding([letters])).removesuffix("\n1") == "\n".join("abcdefgh")
    assert written(Hand(letters)) == "cards: " + "\n".join("abcdefgh")


def test_an_object_without_a_text_of_its_own_is_refused():
    with pytest.raises(TaskError, match=r"^task\.phrasing: an observation has a object, which has"):
        written([object()])
