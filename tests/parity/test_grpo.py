"""Group advantages and clipped losses against TRL's GRPO trainer.

TRL 1.16 differs by definition in two places: its deviation is the unbiased one and its epsilon
1e-4, bridged by hand below; and unless told otherwise it multiplies the KL term by the ratio
(`use_bias_correction_kl`), off here.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from statistics import stdev

import pytest
from credited import credited
from grpo_sides import SAMPLES, Scores, batch_of, both_sides, gap, trainer, trees_of

from colearn.methods.advantage.finish import EPSILON
from colearn.methods.advantage.group_baseline import GroupMean
from colearn.methods.loss.policy_gradient import PolicyGradient

CLOSE = 1e-5
CLIP = (0.1, 0.2)
LONGEST = 8
"""TRL's `max_completion_length` here."""
TRL_EPSILON = 1e-4


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    return both_sides(tmp_path_factory.mktemp("trl") / "model")


def token(**settings):
    return PolicyGradient(ratio="token", clip=CLIP[0], clip_high=CLIP[1], **settings)


# --- advantages ----------------------------------------------------------------------------------


def advantages(tmp_path, rule, mine):
    """TRL's and this library's for the same rewards, and the rewards."""
    reward = Scores()
    inputs = batch_of(trainer(tmp_path / "model", reward, scale_rewards=rule))
    advantages = mine(credited(trees_of(inputs, reward.given)))
    ours = [node["solo"] for tree in advantages for node in tree[1:]]
    return inputs["advantages"].tolist(), ours, reward.given


def test_advantages_without_scaling_are_those_of_trl(tmp_path):
    theirs, ours, _ = advantages(tmp_path, "none", GroupMean())
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert max(ours) > 0.3


def test_scaled_advantages_are_those_of_trl_with_its_deviation_and_epsilon(tmp_path):
    theirs, ours, rewards = advantages(tmp_path, "group", GroupMean(normalize_std=True))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        first = number - number % SAMPLES
        unbiased = stdev(rewards[first : first + SAMPLES])
        population = unbiased * sqrt((SAMPLES - 1) / SAMPLES)
        assert one * (population + EPSILON) == pytest.approx(
            other * (unbiased + TRL_EPSILON), abs=CLOSE
        )


# --- losses --------------------------------------------------------------------------------------


EQUAL = {
    "bnpo": ({"loss_type": "bnpo"}, token(reduction="token_mean")),
    "luspo": ({"loss_type": "luspo"}, token()),
    "grpo": ({"loss_type": "grpo"}, token(reduction="action_mean")),
    "kl": ({"loss_type": "bnpo", "beta": 0.3}, token(reduction="token_mean", kl=0.3)),
    "entropy": ({"loss_type": "bnpo", "entropy": 0.1}, token(reduction="token_mean", entropy=0.1)),
    "cispo": (
        {"loss_type": "cispo", "clip": (1.0, 1.02)},
        PolicyGradient(ratio="token", reduction="token_mean", ratio_cap=1.02),
    ),
    "gspo": (
        {"loss_type": "grpo", "level": "sequence", "clip": (0.02, 0.05)},
        PolicyGradient(ratio="geometric", clip=0.02, clip_high=0.05),
    ),
}
"""Settings of TRL's loss, by default with `CLIP`, and ours."""


@pytest.mark.parametrize(("settings", "loss"), EQUAL.values(), ids=EQUAL)
def test_a_loss_and_its_gradient_are_those_of_trl(sides, settings, loss):
    theirs, gradient = sides.theirs(**{"clip": CLIP, **settings})
    ours, our_gradient, metrics = sides.ours(loss)
    assert metrics["clip_fraction"] > 0.05
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_each_of_these_losses_has_a_value_of_its_own(sides):
    values = [sides.theirs(**{"clip": CLIP, **settings})[0] for settings, _ in EQUAL.values()]
    values.sort()
    assert min(after - before for before, after in pairwise(values)) > 10 * CLOSE


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_the_token_mean_is_that_of_trl_on_other_architectures(tmp_path, kind):
    sides = both_sides(tmp_path / "model", kind=kind)
    theirs, gradient = sides.theirs("bnpo", clip=CLIP, beta=0.05)
    ours, our_gradient, _ = sides.ours(token(reduction="token_mean", kl=0.05))
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_dr_grpo_is_the_sample_mean_over_the_token_limit(sides):
    theirs, gradient = sides.theirs("dr_grpo", clip=CLIP)
    ours, our_gradient, _ = sides.ours(token())
    assert ours / LONGEST == pytest.approx(theirs, abs=CLOSE)
    assert gap(gradient, our_gradient, 1 / LONGEST) < CLOSE


def test_ratios_of_these_tests_are_clipped_at_both_ends_as_trl_counts_them(sides):
    sides.theirs("bnpo", clip=CLIP)
    counted = sides.trl._metrics["eval"]
    low, high = (counted[f"clip_ratio/{end}_mean"][-1] for end in ("low", "high"))
    _, _, metrics = sides.ours(token(reduction="token_mean"))
    assert min(low, high) > 0.05
    assert metrics["clip_fraction"] == pytest.approx(low + high, abs=CLOSE)


def test_the_sequence_ratio_of_one_token_is_that_of_trl(tmp_path):
    sides = both_sides(tmp_path / "model", max_completion_length=1)
    assert set(sides.lengths) == {1}
    theirs, gradient = sides.theirs("grpo", level="sequence", clip=CLIP)
    ours, our_gradient, metrics = sides.ours(PolicyGradient(clip=CLIP[0], clip_high=CLIP[1]))
    assert metrics["clip_fraction"] > 0.1
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE
