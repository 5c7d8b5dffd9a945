"""Means by item and turn beside a critic's network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from trees import chain, tree

from colearn.contract import CounterfactualValues
from colearn.contract.rows import Mark, Row
from colearn.contract.types import Tree
from colearn.methods.credit.shared_reward import SharedReward
from colearn.methods.critic.centralized import Centralized
from colearn.methods.critic.counterfactual import Counterfactual
from colearn.methods.critic.decentralized import Decentralized
from colearn.methods.values.item_means import ItemMeans, baselined, scaled

V = Centralized()


def credited(*trees: Tree[Any]) -> list[Tree[Any]]:
    return [one.credited(SharedReward()(one)) for one in trees]


def of(item: str, *rewards: float) -> Tree[Any]:
    return replace(chain(rewards), item=item)


def offsets_of(means: ItemMeans, *trees: Tree[Any]) -> list[dict[int, float]]:
    return [dict(one["alice"]) for one in means.offsets(V, credited(*trees))]


def test_an_episode_is_compared_with_the_others_of_its_iteration_alone() -> None:
    # of "a": 4, 6 and 8, of "b": 2; the turn's mean without one's own is 16/3, 14/3, 4 and 6,
    # counted twice beside the returns of one's item
    told = offsets_of(ItemMeans(), of("a", 4.0), of("a", 6.0), of("a", 8.0), of("b", 2.0))
    expected = [(6 + 8 + 32 / 3) / 4, (4 + 8 + 28 / 3) / 4, (4 + 6 + 8) / 4, 6.0]
    assert [one[0] for one in told] == pytest.approx(expected)


def test_returns_of_earlier_iterations_count_three_quarters_as_much() -> None:
    means = ItemMeans()
    offsets_of(means, of("a", 4.0), of("b", 0.0))
    (told,) = offsets_of(means, of("a", 100.0))
    usual = 2.0  # of 4 and 0
    assert told[0] == pytest.approx((0.75 * 4.0 + 2 * usual) / (0.75 + 2))


def test_a_mean_is_dropped_once_its_item_has_not_occurred_for_eleven_iterations() -> None:
    means = ItemMeans()
    offsets_of(means, of("a", 4.0))
    for _ in range(10):
        offsets_of(means, of("b", 0.0))
    assert means.state["team\x1f0\x1fa"][1] == pytest.approx(0.75**10)  # above 0.05
    offsets_of(means, of("b", 0.0))
    assert "team\x1f0\x1fa" not in means.state


def test_squared_errors_of_earlier_iterations_count_three_quarters_as_much() -> None:
    means = ItemMeans()
    # each is compared with the other, 0 and 4; then 6 with the mean of both
    offsets_of(means, of("a", 4.0), of("b", 0.0))
    offsets_of(means, of("c", 6.0))
    assert means.state["team\x1f0\x1f\x1f8"] == (0.75 * (16.0 + 16.0) + 16.0, 0.75 * 2 + 1)


def test_items_that_say_nothing_are_left_with_the_mean_of_the_turn() -> None:
    """Two items whose returns are each other's: an item's mean is wrong by as much as it says."""
    means = ItemMeans()
    for first, second in ((0.0, 10.0), (10.0, 0.0), (0.0, 10.0), (10.0, 0.0)):
        offsets_of(means, of("a", first), of("b", second))
    assert means.prior("team\x1f0") == inf
    (seen,) = offsets_of(means, of("a", 3.0))
    assert seen[0] == pytest.approx(5.0)


def test_items_that_decide_the_return_are_hardly_shrunk() -> None:
    means = ItemMeans()
    for _ in range(6):
        offsets_of(means, *(of("a", 0.0) for _ in "12"), *(of("b", 10.0) for _ in "12"))
    assert means.prior("team\x1f0") == 2.0


def test_turns_have_means_of_their_own() -> None:
    means = ItemMeans()
    offsets_of(means, of("a", 1.0, 5.0))
    (told,) = offsets_of(means, of("b", 0.0, 0.0))
    assert told == pytest.approx({0: 6.0, 1: 5.0})


def test_a_tree_counts_its_mean_return_once() -> None:
    means = ItemMeans()
    wide = replace(tree([(0, 1.0), (0, 3.0), (0, 8.0)]), item="a")
    offsets_of(means, wide)
    assert [told for key, told in means.state.items() if "\x1f\x1f" not in key] == [(4.0, 1.0)] * 2


def test_the_first_episode_has_nothing_before_it() -> None:
    assert offsets_of(ItemMeans(), of("a", 3.0)) == [{0: 0.0}]


def test_values_before_an_action_get_the_mean_of_its_turn() -> None:
    trees = [of("a", 1.0, 2.0)]
    values = [{"alice": (10.5, 20.25, None), "bob": (34.0, 40.0, None)}]
    means = [{"alice": {0: 10.0, 1: 20.0}, "bob": {0: 30.0, 1: 40.0}}]
    half = [{"alice": {0: 1.0, 1: 0.0}, "bob": {0: 0.5}}]
    whole = scaled(V, trees, values, means, half)
    assert whole == [{"alice": (10.5, 20.0, None), "bob": (32.0, 40.0, None)}]


def test_values_of_joint_actions_and_of_alternatives_get_the_mean_of_the_turn_before() -> None:
    values = CounterfactualValues((None, 11.0, 22.0), ((), (13.0, 14.0), ()))
    means = [{"alice": {0: 10.0, 1: 20.0}}]
    shares = [{"alice": {0: 0.5}}]
    (one,) = scaled(Counterfactual(), [of("a", 1.0, 2.0)], [{"alice": values}], means, shares)
    assert list(one["alice"]) == [None, 10.5, 20.0]
    assert one["alice"].alternatives == ((), (11.5, 12.0), ())


def share_of(means: ItemMeans, turn: int = 0) -> float:
    (by_agent,) = means.shares(V, [of("a", 0.0, 0.0)])
    return by_agent["alice"][turn]


def compared(means: ItemMeans, residuals: Sequence[float], returns: Sequence[float]) -> None:
    """Compare episodes of one turn, whose mean is 10, with values of 10 and the residual."""
    trees = [of("a", one) for one in returns]
    values = [dict.fromkeys(("alice", "bob"), (10.0 + f, None)) for f in residuals]
    offsets = [{agent: {0: 10.0} for agent in ("alice", "bob")} for _ in trees]
    means.compare(V, credited(*trees), values, offsets)


def test_the_share_of_the_residual_is_the_slope_of_what_the_mean_left_on_it() -> None:
    means = ItemMeans()
    compared(means, (1.0, -2.0), (12.0, 9.0))
    assert share_of(means) == pytest.approx((1.0 * 2.0 + -2.0 * -1.0) / (1.0 + 4.0))
    assert share_of(means, turn=1) == 0.0


def test_a_residual_that_predicts_the_wrong_sign_does_not_count() -> None:
    means = ItemMeans()
    compared(means, (1.0, -1.0), (9.0, 11.0))
    assert share_of(means) == 0.0


def test_a_residual_that_is_too_small_counts_once() -> None:
    means = ItemMeans()
    compared(means, (1.0, -1.0), (15.0, 5.0))
    assert share_of(means) == 1.0


def test_a_residual_does_not_count_before_it_was_compared() -> None:
    assert share_of(ItemMeans()) == 0.0


def test_comparisons_of_earlier_iterations_count_three_quarters_as_much_for_the_share() -> None:
    means = ItemMeans()
    compared(means, (2.0, 2.0), (10.0, 10.0))
    offsets_of(means, of("a", 0.0, 0.0))  # the next iteration begins
    compared(means, (2.0, 2.0), (12.0, 12.0))
    assert share_of(means) == pytest.approx(8.0 / (0.75 * 8.0 + 8.0))


def test_each_reader_has_the_means_of_its_agents() -> None:
    one = of("a", 0.0)
    rewards = ({}, {"alice": 1.0, "bob": 7.0})
    means = ItemMeans()
    means.offsets(Decentralized(), [one.credited(rewards)])
    episodes = [one.credited(({}, {"alice": 0.0, "bob": 0.0}))]
    (told,) = means.offsets(Decentralized(), episodes)
    assert told == {"alice": {0: pytest.approx(1.0)}, "bob": {0: pytest.approx(7.0)}}


def test_a_reader_s_means_are_found_by_its_whole_name() -> None:
    state = {"lead writer\x1f0": (4.0, 2.0), "lead\x1f0": (3.0, 1.0)}
    assert ItemMeans(state).of_readers(("lead writer",)) == {"lead writer\x1f0": (4.0, 2.0)}


def marks(*numbers: tuple[int, int | None, str | None]) -> Row:
    read = tuple(Mark(node, 0, inside, agent) for node, inside, agent in numbers)
    return Row(tokens=(1,), pieces=(), marks=read)


MEANS = {"alice": {0: 10.0, 1: 20.0}, "bob": {0: 30.0, 1: 40.0}}
TWO_TURNS = of("a", 1.0, 2.0)


def test_a_row_of_v_has_the_mean_of_each_mark_s_turn_for_its_baseline() -> None:
    row = baselined(marks((0, None, None), (1, None, None)), V, TWO_TURNS, ("bob",), MEANS)
    assert row.baselines == (30.0, 40.0)


def test_a_row_of_q_has_the_mean_of_the_turn_before_each_mark_by_the_mark_s_agent() -> None:
    read = marks((1, None, "alice"), (1, 0, "bob"), (2, None, "bob"))
    row = baselined(read, Counterfactual(), TWO_TURNS, ("alice", "bob"), MEANS)
    assert row.baselines == (10.0, 30.0, 40.0)


def test_values_before_the_tokens_of_an_action_get_the_mean_of_its_turn() -> None:
    row = baselined(marks((0, None, None), (1, 0, None)), V, TWO_TURNS, ("alice",), MEANS)
    assert row.baselines == (10.0, 10.0)
