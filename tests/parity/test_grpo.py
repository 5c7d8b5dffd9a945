"""Group advantages and clipped losses against TRL's GRPO trainer.

TRL 1.16 differs by definition in three places, each bridged by hand below: its deviation is the
unbiased one and its epsilon 1e-4; its `grpo` reduction divides each sequence by its own length; and
unless told otherwise it multiplies the KL term by the ratio (`use_bias_correction_kl`), off here.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from statistics import stdev

import pytest
from credited import credited
from grpo_sides import SAMPLES, Scores, batch_of, both_sides, gap, trainer, trees_of
from tiny import ARCHITECTURES

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


def advantages(tmp_path, scale, rule, mine):
    """TRL's and this library's for the same rewards, and the rewards."""
    reward = Scores(scale)
    inputs = batch_of(trainer(tmp_path / "model", reward, scale_rewards=rule))
    advantages = mine(credited(trees_of(inputs, reward.given)))
    ours = [node["solo"] for tree in advantages for node in tree[1:]]
    return inputs["advantages"].tolist(), ours, reward.given


def test_advantages_without_scaling_are_those_of_trl(tmp_path):
    theirs, ours, _ = advantages(tmp_path, 1.0, "none", GroupMean())
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert max(ours) > 0.3


def test_scaled_advantages_are_those_of_trl_with_its_deviation_and_epsilon(tmp_path):
    theirs, ours, rewards = advantages(tmp_path, 1.0, "group", GroupMean(normalize_std=True))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        first = number - number % SAMPLES
        unbiased = stdev(rewards[first : first + SAMPLES])
        population = unbiased * sqrt((SAMPLES - 1) / SAMPLES)
        assert one * (population + EPSILON) == pytest.approx(
            other * (unbiased + TRL_EPSILON), abs=CLOSE
        )


def test_scaled_advantages_of_large_rewards_exceed_trls_by_the_factor_of_the_deviations(tmp_path):
    """Beside rewards of some thousands neither epsilon counts."""
    theirs, ours, _ = advantages(tmp_path, 1e4, "group", GroupMean(normalize_std=True))
    factor = sqrt(SAMPLES / (SAMPLES - 1))
    assert ours == pytest.approx([factor * value for value in theirs], abs=CLOSE)


# --- token ratios --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss_type", ["bnpo", "dapo"])
def test_the_token_mean_is_that_of_trl(sides, loss_type):
    theirs, gradient = sides.theirs(loss_type, clip=CLIP)
    ours, our_gradient, _ = sides.ours(token(reduction="token_mean"))
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_the_token_mean_is_that_of_trl_on_every_architecture(tmp_path, kind):
    sides = both_sides(tmp_path / "model", kind=kind)
    theirs, gradient = sides.theirs("bnpo", clip=CLIP, beta=0.05)
    ours, our_gradient, _ = sides.ours(token(reduction="token_mean", kl=0.05))
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_the_sample_mean_of_token_sums_is_the_luspo_reduction_of_trl(sides):
    theirs, gradient = sides.theirs("luspo", clip=CLIP)
    ours, our_gradient, _ = sides.ours(token())
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_dr_grpo_is_the_sample_mean_over_the_token_limit(sides):
    theirs, gradient = sides.theirs("dr_grpo", clip=CLIP)
    ours, our_gradient, _ = sides.ours(token())
    assert ours / LONGEST == pytest.approx(theirs, abs=CLOSE)
    assert gap(gradient, our_gradient, 1 / LONGEST) < CLOSE


def test_the_mean_of_sequence_means_is_the_sample_mean_with_advantages_over_lengths(sides):
    """A / |a| is by hand: the library never weighs a token by its response's length."""
    theirs, gradient = sides.theirs("grpo", clip=CLIP)
    rows = []
    for row in sides.rows:
        lengths = [span.end - span.start for span in row.spans]
        pairs = zip(row.advantages, lengths, strict=True)
        rows.append(replace(row, advantages=tuple(a / length for a, length in pairs)))
    ours, our_gradient, _ = sides.ours(token(), rows)
    assert len(set(sides.lengths)) > 1
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_without_a_clip_every_ratio_counts_on_both_sides(sides):
    theirs, gradient = sides.theirs("bnpo")
    ours, our_gradient, metrics = sides.ours(PolicyGradient(ratio="token", reduction="token_mean"))
    assert metrics["clip_fraction"] == 0.0
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_ratios_of_these_tests_are_clipped_at_both_ends_as_trl_counts_them(sides):
    sides.theirs("bnpo", clip=CLIP)
    counted = sides.trl._metrics["eval"]
    low, high = (counted[f"clip_ratio/{end}_mean"][-1] for end in ("low", "high"))
    _, _, metrics = sides.ours(token(reduction="token_mean"))
    assert min(low, high) > 0.05
    assert metrics["clip_fraction"] == pytest.approx(low + high, abs=CLOSE)


# --- sequence ratios -----------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [None, (0.02, 0.05)], ids=["no clip", "clip"])
def test_the_geometric_ratio_is_gspos_in_trl(sides, clip):
    theirs, gradient = sides.theirs("grpo", level="sequence", **({"clip": clip} if clip else {}))
    bounds = {"clip": clip[0], "clip_high": clip[1]} if clip else {}
    ours, our_gradient, metrics = sides.ours(PolicyGradient(ratio="geometric", **bounds))
    assert (metrics["clip_fraction"] > 0.1) == bool(clip)
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_the_sequence_ratio_of_one_token_is_that_of_trl(tmp_path):
    sides = both_sides(tmp_path / "model", max_completion_length=1)
    assert set(sides.lengths) == {1}
    theirs, gradient = sides.theirs("grpo", level="sequence", clip=CLIP)
    ours, our_gradient, metrics = sides.ours(PolicyGradient(clip=CLIP[0], clip_high=CLIP[1]))
    assert metrics["clip_fraction"] > 0.1
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


@pytest.mark.parametrize("cap", [1.02, 5.0])
def test_the_capped_ratio_is_cispo_in_trl(sides, cap):
    theirs, gradient = sides.theirs("cispo", clip=(1.0, cap))
    loss = PolicyGradient(ratio="token", reduction="token_mean", ratio_cap=cap)
    ours, our_gradient, metrics = sides.ours(loss)
    assert (metrics["clip_fraction"] > 0.05) == (cap < 2.0)
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


# --- what is added to the loss -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss_type", "reduction"), [("bnpo", "token_mean"), ("luspo", "sample_mean")]
)
def test_the_kl_term_is_that_of_trl(sides, loss_type, reduction):
    without, _ = sides.theirs(loss_type, clip=CLIP)
    theirs, gradient = sides.theirs(loss_type, clip=CLIP, beta=0.3)
    ours, our_gradient, _ = sides.ours(token(reduction=reduction, kl=0.3))
    assert theirs - without > 0.05
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE


def test_the_entropy_bonus_is_that_of_trl(sides):
    without, _ = sides.theirs("bnpo", clip=CLIP)
    theirs, gradient = sides.theirs("bnpo", clip=CLIP, entropy=0.1)
    ours, our_gradient, _ = sides.ours(token(reduction="token_mean", entropy=0.1))
    assert without - theirs > 0.05
    assert ours == pytest.approx(theirs, abs=CLOSE)
    assert gap(our_gradient, gradient) < CLOSE
