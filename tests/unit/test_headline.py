"""The headline metric: named by the task or the config, with its direction."""

from __future__ import annotations

import math

from colearn.config import load_config, resolve
from colearn.contract import Headline

LOWER = Headline("nash_conv", "lower")


def test_a_lower_value_improves_a_metric_of_which_lower_is_better():
    assert LOWER.improves(0.6, 0.9) and not LOWER.improves(0.9, 0.6)
    assert Headline().improves(0.9, 0.6) and not Headline().improves(0.6, 0.9)


def test_an_equal_value_and_nan_improve_nothing():
    assert not LOWER.improves(0.9, 0.9) and not LOWER.improves(math.nan, None)


def test_kuhn_poker_is_judged_by_its_distance_from_an_equilibrium():
    assert resolve(load_config("learning/kuhn")).headline == LOWER


def test_without_exact_evaluation_a_game_is_judged_by_its_return():
    sampled = load_config("learning/kuhn", ["evaluation.exact=false"])
    assert resolve(sampled).headline == Headline("return", "higher")


def test_the_config_replaces_the_tasks_headline():
    changed = load_config("tiny/search_loop", ["evaluation.headline={metric: em}"])
    assert resolve(changed).headline == Headline("em")
    assert resolve(load_config("tiny/search_loop")).headline == Headline("f1")
