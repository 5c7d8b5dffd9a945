"""What a value of the joint history can explain, and what a mean by item does, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from credited import credited
from trees import tree

from colearn.methods.values.ceiling import ceilings, item_mean_pairs, return_groups
from colearn.methods.values.explained_variance import Pair, pairs

LOW, HIGH = (tree([(0, reward) for reward in rewards]) for rewards in ((0, 2, 4), (6, 8, 10)))
"""Three joint actions at the root of each."""


def test_what_differs_between_joint_actions_after_one_history_cannot_be_explained() -> None:
    # 8 + 8 within the trees, of 2 + 2 degrees of freedom; 70 in all, of 5
    (ceiling,) = ceilings(credited([LOW, HIGH]))
    assert ceiling.explainable == pytest.approx(1 - 4 / 14)
    assert (ceiling.turn, ceiling.groups) == (0, 2)


def test_the_roots_of_an_item_s_trees_are_one_history_where_items_are_named() -> None:
    groups = return_groups(credited([LOW, HIGH, LOW]), ["red", "red", "blue"])
    assert groups == {0: {"item red": [[0, 2, 4, 6, 8, 10]], "item blue": [[0, 2, 4]]}}


def test_an_item_s_mean_is_shrunk_by_two_returns_towards_its_turn_s_and_0_is_the_mean_of_none() -> (
    None
):
    before = [Pair(0, 9.0, 4.0, "red"), Pair(0, 9.0, 8.0, "red"), Pair(0, 9.0, 0.0, "blue")]
    seen = [("red", 0), ("blue", 0), ("green", 0), ("red", 1)]
    judged = [Pair(turn, 9.0, 1.0, item) for item, turn in seen]
    means = [pair.value for pair in item_mean_pairs(before, judged)]
    assert means == [(4 + 8 + 2 * 4) / 4, (0 + 2 * 4) / 3, 4.0, 0.0]


def test_a_pair_names_its_episode_s_item() -> None:
    (episode,) = credited([replace(tree([(0, 3.0)], agents=("ada",)), item="red")])
    told = pairs([episode], [{"ada": (2.0, None)}], of_state=True)
    assert list(told) == [Pair(0, 2.0, 3.0, "red")]
