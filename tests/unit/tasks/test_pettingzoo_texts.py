"""Texts of observations that are arrays, and the words of an environment of one's own."""

from __future__ import annotations

import numpy as np
import pytest

from colearn.errors import ConfigError
from colearn.tasks.pettingzoo import PettingZoo
from colearn.tasks.pettingzoo.phrasing import written

pettingzoo = pytest.importorskip("pettingzoo", reason="needs the games extra")
spaces = pytest.importorskip("gymnasium.spaces", reason="needs the games extra")


@pytest.mark.parametrize("other", [1.0, 0.125, -1234567.0, 1e-7, np.nan])
def test_the_text_of_a_number_does_not_depend_on_the_numbers_beside_it(other):
    first, _ = written(np.array([0.75, other])).split(", ")
    assert first == "[0.75"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1 / 3, "0.3333"),
        (-2.71828, "-2.718"),
        (12345.678, "12350"),
        (0.00012346, "0.0001235"),
        (3e20, "3e+20"),
        (np.float32(0.1), "0.1"),
        (np.float16(0.1), "0.1"),
        (np.inf, "inf"),
        (12345, "12345"),
        (2**70, "1180591620717411303424"),
        (True, "True"),
    ],
)
def test_a_float_has_four_significant_digits_and_others_are_written_in_full(number, text):
    assert written(number) == text


def test_each_row_of_an_array_is_a_line_in_brackets():
    assert written(np.arange(4).reshape(2, 2)) == "[0, 1]\n[2, 3]"


def test_an_empty_line_separates_the_matrices_of_an_array():
    assert written(np.arange(4).reshape(2, 1, 2) > 1) == "[False, False]\n\n[True, True]"


def test_many_numbers_stay_on_one_line():
    assert written(np.arange(100)) == str(list(range(100)))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_an_empty_array_is_a_pair_of_brackets(shape):
    assert written(np.zeros(shape)) == "[]"


class Room(pettingzoo.ParallelEnv):
    """Two agents, one turn."""

    name: str | None = "room_v3"

    def __init__(self):
        self.metadata, self.possible_agents = {"name": self.name}, ["a", "b"]

    def action_space(self, agent):
        return spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        return dict.fromkeys(self.agents, "dark"), {}

    def step(self, actions):
        acted, self.agents = self.agents, []
        paid, ended = dict.fromkeys(acted, 1.0), dict.fromkeys(acted, True)
        return {}, paid, ended, dict.fromkeys(acted, False), {}


class Unnamed(Room):
    name = None


@pytest.mark.parametrize(("kind", "name"), [("Room", "room_v3"), ("Unnamed", "Unnamed")])
def test_an_environment_of_ones_own_is_called_what_its_metadata_say(kind, name):
    task = PettingZoo(env=f"{__name__}:{kind}", parallel=True)
    state = task.reset(task.items("train")[0], np.random.default_rng(0))
    assert task.observe(state, "a").startswith(f"You are a in {name}, with b.\n")


def test_what_is_no_phrasing_is_told_where_to_import_one():
    line = "is no Phrasing; derive it from Phrasing of colearn.tasks.pettingzoo.phrasing"
    with pytest.raises(ConfigError, match=rf"^task\.phrasing: '{__name__}:Room' {line}$"):
        PettingZoo(phrasing=f"{__name__}:Room")
