"""pass@k against hand-computed values and against all subsets."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import pytest
from trees import chain

from colearn.config import EvaluationSettings
from colearn.errors import ConfigError, TaskError
from colearn.training.evaluation.pass_at_k import (
    mean_pass_at_k,
    pass_at_k,
    pass_metrics,
    too_few_scored,
)


@pytest.mark.parametrize(
    "samples, passed, k, value",
    [
        (10, 3, 1, 0.3),  # 1 - C(7,1)/C(10,1) = 1 - 7/10
        (5, 2, 2, 0.7),  # 1 - C(3,2)/C(5,2) = 1 - 3/10
        (4, 1, 3, 0.75),  # 1 - C(3,3)/C(4,3) = 1 - 1/4
        (10, 1, 10, 1.0),  # all are drawn
        (6, 4, 3, 1.0),  # only two failed, so three cannot all fail
        (6, 0, 3, 0.0),
        (6, 6, 1, 1.0),
        (1, 1, 1, 1.0),
    ],
)
def test_values_by_hand(samples, passed, k, value):
    assert pass_at_k(samples, passed, k) == pytest.approx(value, abs=1e-12)


def test_it_is_the_share_of_subsets_with_a_pass():
    for samples in range(1, 8):
        for passed in range(samples + 1):
            outcomes = [number < passed for number in range(samples)]
            for k in range(1, samples + 1):
                subsets = list(itertools.combinations(outcomes, k))
                share = sum(any(subset) for subset in subsets) / len(subsets)
                assert pass_at_k(samples, passed, k) == pytest.approx(share, abs=1e-12)


def test_large_numbers_do_not_overflow():
    # C(n-1, k)/C(n, k) = (n-k)/n
    assert pass_at_k(100_000, 1, 50_000) == pytest.approx(0.5, abs=1e-12)
    assert pass_at_k(100_000, 50_000, 1) == pytest.approx(0.5, abs=1e-12)


def test_the_mean_is_over_problems():
    assert mean_pass_at_k([(4, 1), (4, 4), (2, 0)], 1) == pytest.approx((0.25 + 1 + 0) / 3)


@pytest.mark.parametrize(
    "samples, passed, k, line",
    [
        (5, 6, 1, "passed: 6 must lie between 0 and samples (5)"),
        (5, -1, 1, "passed: -1 must lie"),
        (5, 2, 6, "k: 6 must lie between 1 and samples (5); draw more samples or lower k"),
        (5, 2, 0, "k: 0 must lie"),
    ],
)
def test_impossible_counts_are_named(samples, passed, k, line):
    with pytest.raises(ConfigError) as caught:
        pass_at_k(samples, passed, k)
    assert str(caught.value).startswith(line)


def test_no_problems_have_no_mean():
    with pytest.raises(ConfigError, match="counts: is empty"):
        mean_pass_at_k([], 1)


def _episodes(passed: Sequence[float | None], name: str = "pass"):
    """One finished episode for each entry, in order."""
    played = []
    for episode, value in enumerate(passed):
        tree = chain([0.0])
        end = dataclasses.replace(tree.nodes[-1], metrics={name: value})
        played.append(dataclasses.replace(tree, episode=episode, nodes=(*tree.nodes[:-1], end)))
    return played


def test_the_repeats_of_an_item_are_its_samples():
    # two items, three repeats: item 0 passes at episodes 0 and 4, item 1 never
    played = _episodes([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    settings = EvaluationSettings(repeats=3, pass_at=(1, 2))
    # pass@1: (2/3 + 0) / 2; pass@2: (1 - C(1,2)/C(3,2) + 0) / 2
    assert pass_metrics(played, settings, 2) == pytest.approx({"pass@1": 1 / 3, "pass@2": 0.5})


def test_items_that_come_round_again_within_a_pass_are_one_item():
    # three episodes of a split of two: items 0, 1, 0; the second item has one sample
    played = _episodes([1.0, 1.0, 0.0])
    settings = EvaluationSettings(episodes=3, pass_at=(1,))
    assert pass_metrics(played, settings, 2) == pytest.approx({"pass@1": 0.75})


def test_too_few_episodes_name_the_setting():
    settings = EvaluationSettings(repeats=2, pass_at=(1, 3))
    with pytest.raises(ConfigError, match=r"k = 3 .* there are 2; raise evaluation\.repeats"):
        pass_metrics(_episodes([1.0, 0.0]), settings, 1)


def test_a_task_without_pass_is_named():
    with pytest.raises(ConfigError, match="no metric 'pass'"):
        pass_metrics(_episodes([1.0], "score"), EvaluationSettings(pass_at=(1,)), 1)


def test_nothing_is_asked_of_a_task_where_no_k_is_given():
    assert pass_metrics(_episodes([1.0], "score"), EvaluationSettings(), 1) == {}


@pytest.mark.parametrize(
    ("repeats", "passed", "by_k"),
    [
        # one item, of ten episodes seven are scored and pass
        (10, [1.0] * 7 + [None] * 3, {1: 1.0, 7: 1.0}),
        # c = 2 of n = 4 scored: 1 - C(2,1)/C(4,1), 1 - C(2,2)/C(4,2), 1 - 0
        (6, [1.0, None, 0.0, 0.0, None, 1.0], {1: 1 / 2, 2: 5 / 6, 3: 1.0}),
        # items alternate: c = 1 of n = 2, and c = 0 of n = 3
        (3, [1.0, 0.0, None, 0.0, 0.0, 0.0], {1: 1 / 4, 2: 1 / 2}),
        # the second item has no scored episode: the first one's value, as in the mean of `pass`
        (2, [1.0, None, 0.0, None], {1: 1 / 2, 2: 1.0}),
    ],
)
def test_an_episode_that_is_not_scored_is_neither_a_success_nor_a_failure(repeats, passed, by_k):
    settings = EvaluationSettings(repeats=repeats, pass_at=tuple(by_k))
    found = pass_metrics(_episodes(passed), settings, len(passed) // repeats)
    assert found == pytest.approx({f"pass@{k}": value for k, value in by_k.items()})
    assert too_few_scored(_episodes(passed), settings, len(passed) // repeats) is None


def test_pass_at_k_is_left_out_where_an_item_has_fewer_than_k_scored_episodes():
    played = _episodes([1.0, 0.0, None, 0.0])  # the first item has one scored episode of two
    settings = EvaluationSettings(repeats=2, pass_at=(1, 2))
    assert pass_metrics(played, settings, 2) == pytest.approx({"pass@1": 0.5})
    line = too_few_scored(played, settings, 2)
    assert line is not None and line.startswith(
        "evaluation: no pass@2: an item has only 1 scored episodes"
    )


def test_without_a_scored_episode_there_is_no_pass_at_k():
    settings = EvaluationSettings(repeats=2, pass_at=(1,))
    assert pass_metrics(_episodes([None, None]), settings, 1) == {}


@pytest.mark.parametrize("value", [0.5, 0.999, 2.0, -1.0])
def test_a_fraction_of_a_pass_is_refused_instead_of_rounded(value):
    settings = EvaluationSettings(repeats=2, pass_at=(1,))
    with pytest.raises(TaskError, match=rf"task\.metrics: 'pass' is {value} for item 'None'; "):
        pass_metrics(_episodes([1.0, value]), settings, 1)


def test_true_and_false_are_a_pass_and_a_failure():
    settings = EvaluationSettings(repeats=4, pass_at=(1,))
    assert pass_metrics(_episodes([True, False, None, 1]), settings, 1) == pytest.approx(
        {"pass@1": 2 / 3}
    )
