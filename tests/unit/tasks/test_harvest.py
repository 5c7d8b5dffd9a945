"""Harvest: pay at the end, luck that one agent sees, and pairs of words that are held out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from colearn.contract.testing import check_task
from colearn.errors import ConfigError
from colearn.tasks.harvest import Harvest
from colearn.tasks.harvest.orders import CROPS, PLACES, Choice, Week, pairs

SEASON = (
    Week(Choice(("rye", "oats"), "oats"), Choice(("mill", "inn"), "mill")),
    Week(Choice(("barley", "peas"), "barley"), Choice(("school", "abbey"), "abbey")),
)
READY = {"grower": "ready", "carter": "ready"}


class Drawn:
    """A generator that draws this weather: 0 is hail, 1 is sun."""

    def __init__(self, weather):
        self.weather = weather

    def integers(self, below):
        assert below == 2
        return self.weather


def played(task, weather, *answers):
    """The rewards and the last state of a season of two weeks."""
    state, rewards = task.reset(SEASON, None), []
    for actions in (READY, *({"grower": g, "carter": c} for g, c in answers)):
        outcome = task.step(state, actions, Drawn(weather))
        state = outcome.state
        rewards.append(outcome.reward)
    assert outcome.done
    return rewards, state


def test_the_task_keeps_the_contract():
    check_task(Harvest())
    check_task(Harvest(weeks=1, luck=0))


@pytest.mark.parametrize("weather, luck", [(1, 3.0), (0, -3.0)])
@pytest.mark.parametrize(
    "answers, sold",
    [
        ((("oats", "mill"), ("barley", "abbey")), 1.0),
        (((" oats\n", "mill"), ("barley", "school")), 0.5),
        ((("rye", "mill"), ("peas", "abbey")), 0.0),  # the other agent's right choice earns nothing
        ((("oats", "inn"), ("barley or peas", "abbey")), 0.0),
    ],
)
def test_the_team_is_paid_once_the_share_of_loads_and_the_luck(weather, luck, answers, sold):
    rewards, state = played(Harvest(weeks=2, luck=3.0), weather, *answers)
    assert rewards == [0.0, 0.0, sold + luck]
    assert Harvest(weeks=2, luck=3.0).metrics(state) == {"sold": sold, "luck": luck}


def test_without_luck_the_weather_is_read_and_pays_nothing():
    task = Harvest(weeks=2, luck=0)
    answers = (("oats", "mill"), ("peas", "abbey"))
    assert played(task, 0, *answers)[0] == played(task, 1, *answers)[0] == [0.0, 0.0, 0.5]
    state = task.step(task.reset(SEASON, None), READY, Drawn(0)).state
    lucky = Harvest(weeks=2, luck=3.0)
    assert [task.observe(state, agent) for agent in task.agents] == [
        lucky.observe(state, agent) for agent in task.agents
    ]


def test_the_carter_reads_the_weather_every_week_and_the_grower_never():
    task = Harvest(weeks=2)
    for weather, word in ((0, "hail"), (1, "sun")):
        state = task.reset(SEASON, None)
        assert "weather" not in task.observe(state, "carter")
        state = task.step(state, READY, Drawn(weather)).state
        for week, (crops, places) in enumerate([("rye or oats", "mill or inn")], start=1):
            assert task.observe(state, "grower") == f"week {week} : plant {crops}"
            assert task.observe(state, "carter") == (
                f"week {week} : drive to the {places} . the weather is {word}"
            )
        state = task.step(state, {"grower": "oats", "carter": "mill"}, None).state
        assert task.observe(state, "grower") == "week 2 : plant barley or peas"
        assert task.observe(state, "carter").endswith(f"the weather is {word}")


def test_the_weather_is_drawn_in_the_first_step_and_not_before():
    task = Harvest()
    item = task.items("train")[0]
    state = task.reset(item, np.random.default_rng(0))
    drawn = [task.step(state, READY, np.random.default_rng(n)).state.weather for n in range(400)]
    assert 160 < drawn.count("sun") < 240  # four standard deviations of 10 around 200
    assert set(drawn) == {"sun", "hail"}


@pytest.mark.parametrize("words", [CROPS, PLACES])
def test_three_quarters_of_the_pairs_are_trained_on_and_the_others_are_tested(words):
    train, test = set(pairs(words, "train")), set(pairs(words, "test"))
    assert (len(train), len(test)) == (12, 4)
    assert train | test == set(itertools.product(*words)) and not train & test
    for split in (train, test):  # every word is seen in both
        assert {word for pair in split for word in pair} == {*words[0], *words[1]}


def test_seasons_offer_the_pairs_of_their_split_in_both_orders():
    task = Harvest(train=40, test=40)
    for split in ("train", "test"):
        choices = [week.crop for season in task.items(split) for week in season]
        allowed = set(pairs(CROPS, split))
        assert {(c.right, *({*c.offered} - {c.right})) for c in choices} == allowed
        firsts = [c.offered[0] == c.right for c in choices]
        assert 60 < sum(firsts) < 140
    assert task.items("train") == Harvest(train=40, test=40).items("train")
    assert task.items("train") != Harvest(train=40, test=40, seed=1).items("train")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"weeks": 0}, "task.weeks: must be a whole number, got 0; set it to 1 to 50"),
        ({"luck": -1}, "task.luck: must be a number, got -1; set it to 0 to 1000"),
        ({"test": 1.5}, "task.test: must be a whole number, got 1.5; set it to 1 to 1000000"),
        ({"seed": -1}, "task.seed: must be a whole number, got -1; set it to 0 or more"),
    ],
)
def test_a_bad_setting_is_one_line(settings, message):
    with pytest.raises(ConfigError) as error:
        Harvest(**settings)
    assert str(error.value) == message
