"""The metrics of MHGPO's Figures 7 and 9, by hand."""

from __future__ import annotations

import pytest

from colearn.contract import AnswerGroup
from colearn.training.update.metrics import similarity_metrics


def test_similarity_is_the_mean_f1_of_pairs_and_then_of_groups() -> None:
    # pairs: "red car" and "red bus" share one of two words: 1/2; "tree" shares none with either
    first = AnswerGroup("x", ("go",) * 3, ("red car", "red bus", "tree"))
    second = AnswerGroup("x", ("go",) * 2, ("tree", "tree"))
    found = similarity_metrics([first, second])["x/similarity"]
    assert found == pytest.approx(((1 / 2 + 0 + 0) / 3 + 1) / 2)


def test_a_group_is_as_homogeneous_as_its_pairs_share_a_prompt() -> None:
    # of the prompts a, a, b one pair of three is equal
    groups = [
        AnswerGroup("y", ("a", "a", "b"), ("1", "2", "3")),
        AnswerGroup("z", ("a",) * 2, ("",) * 2),
    ]
    metrics = similarity_metrics(groups)
    assert metrics["y/same_prompt"] == pytest.approx(1 / 3) and metrics["z/same_prompt"] == 1.0


def test_an_advantage_without_groups_reports_nothing() -> None:
    assert similarity_metrics([]) == {}
