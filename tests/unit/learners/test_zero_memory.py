"""Memory of 1000 trained float32 weights on 4 processes, by hand: a part is 250 weights."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.training.learners.zero_memory import kept_by_zero


@pytest.mark.parametrize(("zero", "weights"), [({"sub_group_size": 10}, 10), ({}, 250)])
def test_a_step_of_stage_3_holds_three_numbers_per_weight_of_a_sub_group(
    zero: dict[str, Any], weights: int
) -> None:
    kept = kept_by_zero(1000, 0, {"stage": 3, **zero}, processes=4)
    assert kept.step == 3 * 4 * weights


def test_gradients_of_stage_2_are_a_part_and_two_buckets() -> None:
    kept = kept_by_zero(1000, 0, {"stage": 2, "reduce_bucket_size": 30}, processes=4)
    assert kept.gradients == 4 * 250 + 2 * 4 * 30
