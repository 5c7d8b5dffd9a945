import dataclasses
import math

import pytest
import torch

from colearn.contract import PolicyBatch
from colearn.contract.algorithm import ValueLoss
from colearn.errors import ConfigError
from colearn.methods.loss.policy_gradient import PolicyGradient
from colearn.methods.loss.value import value_loss

# Two actions of two and three tokens.
OLD = torch.tensor([-1.0, -2.0, -0.5, -0.5, -3.0])
OF = torch.tensor([0, 0, 1, 1, 1])
ADVANTAGES = torch.tensor([2.0, -1.0])


def batch(logprobs, advantages=ADVANTAGES, **settings):
    given = {
        "logprobs": logprobs,
        "action_of": OF,
        "advantages": advantages,
        "old_logprobs": OLD,
        "behaviour": OLD,
        "ref_logprobs": None,
        "entropy": None,
        "total_samples": 2,
        "total_tokens": 5,
    }
    return PolicyBatch(**(given | settings))


def gradient(loss, logprobs, **settings):
    logprobs = logprobs.clone().requires_grad_()
    value, metrics = loss(batch(logprobs, **settings))
    (grad,) = torch.autograd.grad(value, logprobs)
    return value.item(), grad.tolist(), metrics


@pytest.mark.parametrize("ratio", ["sequence", "token"])
def test_at_ratio_one_the_gradient_is_that_of_log_pi_times_the_advantage(ratio):
    _, grad, metrics = gradient(PolicyGradient(ratio=ratio), OLD)
    assert grad == [-1.0, -1.0, 0.5, 0.5, 0.5]  # -A / 2 actions
    assert metrics["ratio_mean"] == 1.0
    assert metrics["clip_fraction"] == 0.0


@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_the_action_mean_weighs_an_action_of_any_length_alike(kl):
    """-(1/2) (2/2 + 2/2 - (1/3 + 1/3 + 1/3)) with A = 2 and -1; KL d = 0.1 at the first token."""
    loss = PolicyGradient(ratio="token", reduction="action_mean", kl=kl)
    reference = OLD + torch.tensor([0.1, 0.0, 0.0, 0.0, 0.0])
    value, grad, _ = gradient(loss, OLD, ref_logprobs=reference)
    penalty = kl * (math.exp(0.1) - 1.1) / 2 / 2
    assert value == pytest.approx(-(2.0 - 1.0) / 2 + penalty)
    first = -0.5 - kl * (math.exp(0.1) - 1.0) / 4
    assert grad == pytest.approx([first, -0.5, 1 / 6, 1 / 6, 1 / 6])


def test_the_gradient_through_a_policy_is_rho_a_grad_log_pi():
    """Eq. 1, 2, 4 on a two-armed bandit: d log softmax(x)_0 / dx = (1 - p, -(1 - p))."""
    logits = torch.tensor([0.0, math.log(3.0)], requires_grad=True)
    logprob = logits.log_softmax(0)[:1]  # p = 1/4
    loss, _ = PolicyGradient()(
        PolicyBatch(
            logprobs=logprob,
            action_of=torch.tensor([0]),
            advantages=torch.tensor([2.0]),
            old_logprobs=torch.tensor([math.log(0.5)]),  # rho = 1/2
            behaviour=torch.tensor([math.log(0.5)]),
            ref_logprobs=None,
            entropy=None,
            total_samples=1,
            total_tokens=1,
        )
    )
    (grad,) = torch.autograd.grad(loss, logits)
    assert grad.tolist() == pytest.approx([-0.5 * 2.0 * 0.75, 0.5 * 2.0 * 0.75])


def test_the_sequence_ratio_is_the_product_over_the_actions_tokens():
    moved = OLD + torch.tensor([0.1, 0.2, 0.0, -0.1, 0.0])
    value, grad, metrics = gradient(PolicyGradient(), moved)
    first, second = math.exp(0.3), math.exp(-0.1)
    assert value == pytest.approx(-(2 * first - second) / 2)
    assert grad == pytest.approx([-first, -first, second / 2, second / 2, second / 2])
    assert metrics["ratio_mean"] == pytest.approx((first + second) / 2)


def test_the_geometric_ratio_is_the_mean_over_the_actions_tokens():
    """GSPO: s = exp of the mean log-ratio; d s / d log pi_t = s / length."""
    moved = OLD + torch.tensor([0.1, 0.2, 0.0, -0.1, 0.0])
    value, grad, metrics = gradient(PolicyGradient(ratio="geometric"), moved)
    first, second = math.exp(0.15), math.exp(-0.1 / 3)
    assert value == pytest.approx(-(2 * first - second) / 2)
    assert grad == pytest.approx([-first / 2, -first / 2, *[second / 6] * 3])
    assert metrics["ratio_mean"] == pytest.approx((first + second) / 2)


def test_the_geometric_ratio_is_clipped_as_gspo_clips_it():
    """exp(0.15) is above 1.0004 and A > 0: no gradient; exp(-0.1 / 3) with A < 0: none either."""
    moved = OLD + torch.tensor([0.1, 0.2, 0.0, -0.1, 0.0])
    loss = PolicyGradient(ratio="geometric", clip=3e-4, clip_high=4e-4)
    value, grad, metrics = gradient(loss, moved)
    assert value == pytest.approx(-(2 * 1.0004 - 0.9997) / 2)
    assert grad == [0.0] * 5 and metrics["clip_fraction"] == 1.0


def test_a_capped_ratio_weighs_log_pi_and_carries_no_gradient():
    """CISPO, cap 1.15: -(1/5) sum of min(r, cap) A log pi; the gradient is -min(r, cap) A / 5."""
    moved = OLD + torch.tensor([0.1, 0.2, 0.0, -0.1, 0.0])
    loss = PolicyGradient(ratio="token", reduction="token_mean", ratio_cap=1.15)
    value, grad, metrics = gradient(loss, moved)
    weights = [math.exp(0.1), 1.15, 1.0, math.exp(-0.1), 1.0]
    pulls = [-w * a / 5 for w, a in zip(weights, [2.0, 2.0, -1.0, -1.0, -1.0], strict=True)]
    assert grad == pytest.approx(pulls)
    assert value == pytest.approx(sum(p * x for p, x in zip(pulls, moved.tolist(), strict=True)))
    assert metrics["clip_fraction"] == pytest.approx(1 / 5)


@pytest.mark.parametrize("other", ["clip", "dual_clip"])
def test_a_cap_beside_a_clip_is_refused(other):
    with pytest.raises(ConfigError, match="ratio_cap: takes the place of clip and dual_clip"):
        PolicyGradient(ratio_cap=5.0, **{other: 3.0 if other == "dual_clip" else 0.2})


def test_a_teacher_gives_each_token_the_advantage_log_teacher_less_log_policy():
    """Weight 2, gaps 0.5, 0, -1, 0, 0 and rho 1: d loss / d log pi = -2 gap / 2 actions."""
    gaps = torch.tensor([0.5, 0.0, -1.0, 0.0, 0.0])
    loss = PolicyGradient(teacher=2.0)
    value, grad, metrics = gradient(
        loss, OLD, advantages=torch.zeros(2), teacher_logprobs=OLD + gaps
    )
    assert grad == pytest.approx([-0.5, 0.0, 1.0, 0.0, 0.0])
    assert value == pytest.approx(0.5)
    assert metrics["teacher_kl"] == pytest.approx((1.0 - 0.5) / 5)


def test_a_teachers_term_is_weighed_by_the_ratio_of_its_token():
    """rho 1.5 at the first token, whose gap is then 0.5 - log 1.5."""
    moved = OLD + torch.tensor([math.log(1.5), 0.0, 0.0, 0.0, 0.0])
    teacher = OLD + torch.tensor([0.5, 0.0, 0.0, 0.0, 0.0])
    loss = PolicyGradient(teacher=1.0)
    _, grad, _ = gradient(loss, moved, advantages=torch.zeros(2), teacher_logprobs=teacher)
    assert grad == pytest.approx([-1.5 * (0.5 - math.log(1.5)) / 2, 0.0, 0.0, 0.0, 0.0])


def test_the_mean_gradient_of_a_teachers_term_is_that_of_the_reverse_kl():
    """Over all tokens of a three-armed bandit, weighed by their probability: d KL(p || q) / dx."""
    logits = torch.tensor([0.3, -0.2, 0.1], requires_grad=True)
    teacher = torch.tensor([0.5, 0.3, 0.2]).log()
    kl = (logits.softmax(0) * (logits.log_softmax(0) - teacher)).sum()
    (exact,) = torch.autograd.grad(kl, logits)
    mean = torch.zeros(3)
    for arm in range(3):
        logprob = logits.log_softmax(0)[arm : arm + 1]
        loss, _ = PolicyGradient(teacher=1.0)(
            PolicyBatch(
                logprobs=logprob,
                action_of=torch.tensor([0]),
                advantages=torch.zeros(1),
                old_logprobs=logprob.detach(),
                behaviour=logprob.detach(),
                ref_logprobs=None,
                teacher_logprobs=teacher[arm : arm + 1],
                entropy=None,
                total_samples=1,
                total_tokens=1,
            )
        )
        (grad,) = torch.autograd.grad(loss, logits)
        mean += logprob.exp().item() * grad
    assert mean.tolist() == pytest.approx(exact.tolist(), abs=1e-6)


@pytest.mark.parametrize("ratio", ["sequence", "token"])
def test_a_teachers_term_on_samples_of_other_weights_is_that_of_the_policy(ratio):
    """Policy (1/2, 1/2), teacher (1/4, 3/4), sampled by (3/4, 1/4): four actions of one token with
    weights 2/3 and 2. KL = ln(2) / 2 + ln(2/3) / 2 = 0.143841, without the weights 0.418494. The
    gradient of a token's log-probability is its weight times log(policy / teacher) / 4."""
    policy = torch.full((4,), math.log(1 / 2))
    _, grad, metrics = gradient(
        PolicyGradient(ratio=ratio, importance_cap=2.0, teacher=1.0),
        policy,
        advantages=torch.zeros(4),
        action_of=torch.arange(4),
        old_logprobs=policy,
        behaviour=torch.tensor([3 / 4, 3 / 4, 3 / 4, 1 / 4]).log(),
        teacher_logprobs=torch.tensor([1 / 4, 1 / 4, 1 / 4, 3 / 4]).log(),
        total_samples=4,
        total_tokens=4,
    )
    assert metrics["teacher_kl"] == pytest.approx(0.143841, abs=1e-6)
    pulls = [2 / 3 * math.log(2) / 4] * 3 + [2 * math.log(2 / 3) / 4]
    assert grad == pytest.approx(pulls)


def test_a_teachers_term_has_at_most_the_cap_as_weight():
    """The first action is 4 times as likely as when it was sampled, each of its tokens 2 times; the
    cap is 1.5, and with a ratio of sequences the action's weight stands at each of its tokens."""
    sampled = OLD - torch.tensor([math.log(2.0), math.log(2.0), 0.0, 0.0, 0.0])
    teacher = OLD + torch.tensor([1.0, -1.0, 0.0, 0.0, 1.0])
    _, grad, metrics = gradient(
        PolicyGradient(importance_cap=1.5, teacher=1.0),
        OLD,
        advantages=torch.zeros(2),
        behaviour=sampled,
        teacher_logprobs=teacher,
    )
    assert grad == pytest.approx([-1.5 / 2, 1.5 / 2, 0.0, 0.0, -1 / 2])
    assert metrics["teacher_kl"] == pytest.approx(-(1.5 - 1.5 + 1.0) / 5)


@pytest.mark.parametrize(("ratio", "left_out"), [("token", [1]), ("sequence", [0, 1])])
def test_a_teacher_says_nothing_about_terms_outside_of_the_trust_region(ratio, left_out):
    """Ratio 1.5 at the second token and in its action; mask 0.2; gap 1 against the moved policy."""
    moved = OLD + torch.tensor([0.0, math.log(1.5), 0.0, 0.0, 0.0])
    _, grad, _ = gradient(
        PolicyGradient(ratio=ratio, mask=0.2, teacher=1.0),
        moved,
        advantages=torch.zeros(2),
        teacher_logprobs=moved + 1.0,
    )
    assert grad == [0.0 if token in left_out else -0.5 for token in range(5)]


def test_the_token_ratio_gives_each_token_its_own():
    moved = OLD + torch.tensor([0.1, 0.2, 0.0, -0.1, 0.0])
    value, grad, metrics = gradient(PolicyGradient(ratio="token"), moved)
    ratios = [math.exp(x) for x in (0.1, 0.2, 0.0, -0.1, 0.0)]
    expected = [-2 * r / 2 for r in ratios[:2]] + [r / 2 for r in ratios[2:]]
    assert grad == pytest.approx(expected)
    assert value == pytest.approx(sum(expected))
    assert metrics["ratio_mean"] == pytest.approx(sum(ratios) / 5)


def test_the_token_mean_divides_by_all_tokens():
    _, grad, _ = gradient(PolicyGradient(reduction="token_mean"), OLD)
    assert grad == pytest.approx([-0.4, -0.4, 0.2, 0.2, 0.2])


def test_the_clip_stops_gains_and_not_corrections():
    # rho 1.5 in both: A > 0 has gained enough, A < 0 must still come down
    moved = OLD + torch.tensor([math.log(1.5), 0.0, math.log(1.5), 0.0, 0.0])
    value, grad, metrics = gradient(PolicyGradient(clip=0.2), moved)
    assert value == pytest.approx(-(1.2 * 2 - 1.5) / 2)
    assert grad == pytest.approx([0.0, 0.0, 0.75, 0.75, 0.75])
    assert metrics["clip_fraction"] == 0.5
    # rho 0.5: now the other way round
    moved = OLD - torch.tensor([math.log(2.0), 0.0, math.log(2.0), 0.0, 0.0])
    value, grad, _ = gradient(PolicyGradient(clip=0.2), moved)
    assert value == pytest.approx(-(0.5 * 2 - 0.8) / 2)
    assert grad == pytest.approx([-0.5, -0.5, 0.0, 0.0, 0.0])


def test_the_upper_clip_may_be_wider():
    moved = OLD + torch.tensor([math.log(1.5), 0.0, 0.0, 0.0, 0.0])
    value, _, _ = gradient(PolicyGradient(clip=0.2, clip_high=0.4), moved)
    assert value == pytest.approx(-(1.4 * 2 - 1.0) / 2)


def test_the_dual_clip_bounds_the_loss_of_bad_actions():
    moved = OLD + torch.tensor([0.0, 0.0, math.log(5.0), 0.0, 0.0])
    value, grad, metrics = gradient(PolicyGradient(clip=0.2, dual_clip=3.0), moved)
    assert value == pytest.approx(-(2.0 - 3.0) / 2)
    assert grad[2:] == [0.0, 0.0, 0.0]
    assert metrics["clip_fraction"] == 0.5


def test_the_dual_clip_leaves_good_actions_alone():
    # A = -2 at rho 5 loses no more than 3 * 2; A = 1/2 gains its 1/2 and not 3/2
    moved = OLD + torch.tensor([math.log(5.0), 0.0, 0.0, 0.0, 0.0])
    value, _, _ = gradient(
        PolicyGradient(dual_clip=3.0), moved, advantages=torch.tensor([-2.0, 0.5])
    )
    assert value == pytest.approx((6.0 - 0.5) / 2)


def test_the_divergence_to_the_reference_is_k3_per_token():
    ref = OLD + torch.tensor([0.0, 0.5, 0.0, -0.5, 0.0])
    loss = PolicyGradient(kl=0.1)
    assert loss.needs_reference
    value, grad, metrics = gradient(loss, OLD, advantages=torch.zeros(2), ref_logprobs=ref)
    up, down = math.exp(0.5) - 1.5, math.exp(-0.5) - 0.5
    assert value == pytest.approx(0.1 * (up + down) / 2)
    assert metrics["kl"] == pytest.approx((up + down) / 5)
    # d/dlogp (e^d - d - 1) = 1 - e^d
    assert grad[1] == pytest.approx(0.05 * (1 - math.exp(0.5)))


def test_the_penaltys_mean_is_one_divergence_and_its_gradient_that_of_the_other():
    """Every token of a vocabulary of four, as often as the policy draws it. autograd differentiates
    KL(reference || policy) itself."""
    logits = torch.tensor([0.3, -1.0, 0.8, 0.1], dtype=torch.float64, requires_grad=True)
    policy = logits.log_softmax(-1)
    ref = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).log()
    counts = (1000 * policy.exp()).round().long().detach()
    logits.data = counts.double().log()  # now exact
    policy = logits.log_softmax(-1)
    drawn = torch.arange(4).repeat_interleave(counts)
    count = len(drawn)
    loss, metrics = PolicyGradient(kl=1.0)(
        batch(
            policy[drawn],
            torch.zeros(count),
            action_of=torch.arange(count),
            old_logprobs=policy[drawn].detach(),
            behaviour=policy[drawn].detach(),
            ref_logprobs=ref[drawn],
            total_samples=count,
            total_tokens=count,
        )
    )
    (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
    reverse = (policy.exp() * (policy - ref)).sum()
    (forward,) = torch.autograd.grad((ref.exp() * (ref - policy)).sum(), logits, retain_graph=True)
    assert metrics["kl"] == pytest.approx(reverse.item(), abs=1e-6)
    assert torch.allclose(gradient, forward, atol=1e-12)


@pytest.mark.parametrize("ratio", ["sequence", "token"])
@pytest.mark.parametrize("settings", [{"clip": 0.2}, {"mask": 0.2}])
def test_a_ratio_beyond_floats_adds_nothing_where_it_is_clipped_or_masked(ratio, settings):
    """exp(89) is infinite. The first action, e^178 times as likely as before, gains nothing; the
    second, as likely as before, counts -A / 2 per token."""
    moved = OLD + torch.tensor([89.0, 89.0, 0.0, 0.0, 0.0])
    value, grad, _ = gradient(PolicyGradient(ratio=ratio, **settings), moved)
    assert math.isfinite(value)
    assert grad == [0.0, 0.0, 0.5, 0.5, 0.5]


def test_a_ratio_beyond_floats_that_counts_has_a_gradient_of_infinite_norm():
    _, grad, _ = gradient(PolicyGradient(clip=0.2), OLD + 89.0, advantages=-torch.ones(2))
    assert math.isinf(torch.tensor(grad).norm().item())


def test_the_entropy_bonus_lowers_the_loss():
    loss = PolicyGradient(entropy=0.1)
    assert loss.needs_entropy
    logprobs = OLD.clone().requires_grad_()
    given = batch(logprobs, torch.zeros(2), entropy=torch.tensor([1.0, 2.0, 3.0, 0.0, 4.0]))
    value, metrics = loss(given)
    assert value.item() == pytest.approx(-0.1 * 10 / 2)
    assert metrics["entropy"] == pytest.approx(2.0)


def test_the_action_mean_weighs_the_entropy_of_an_action_of_any_length_alike():
    loss = PolicyGradient(entropy=0.1, reduction="action_mean")
    given = torch.tensor([1.0, 2.0, 3.0, 0.0, 4.0])
    value, _ = loss(batch(OLD, torch.zeros(2), entropy=given))
    assert value.item() == pytest.approx(-0.1 * (3 / 2 + 7 / 3) / 2)


def test_a_micro_batch_without_actions_costs_nothing():
    nothing = torch.zeros(0)
    given = batch(
        nothing,
        nothing,
        action_of=torch.zeros(0, dtype=torch.long),
        old_logprobs=nothing,
        behaviour=nothing,
    )
    for reduction in ("sample_mean", "action_mean"):
        assert PolicyGradient(reduction=reduction)(given)[0].item() == 0.0


def test_log_probabilities_in_double_precision_stay_so():
    old = OLD.double()
    value, _ = PolicyGradient()(batch(old + 1e-9, old_logprobs=old, behaviour=old))
    assert value.item() == pytest.approx(-(2 * (1 + 2e-9) - (1 + 3e-9)) / 2, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kl": 0.1, "reference_update_every": 0}, "1 or more"),
        ({"reference_update_every": 5}, "no reference to move"),
    ],
)
def test_a_reference_that_cannot_follow_is_refused(settings, said):
    with pytest.raises(ConfigError, match=f"reference_update_every: .*{said}"):
        PolicyGradient(**settings)


def test_a_fading_penalty_keeps_the_reference_moving_to_the_end():
    loss = PolicyGradient(kl=0.1, reference_update_every=5, anneal_fraction=1.0)
    assert loss.reference_update_every == 5
    assert loss.at(1.0).kl == 0.0


def test_nothing_extra_is_asked_for_by_default():
    assert not PolicyGradient().needs_reference
    assert not PolicyGradient().needs_entropy
    assert (PolicyGradient().by_token, PolicyGradient(ratio="token").by_token) == (False, True)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [  # sampled half as often as pi_old says the first action, e^0.5 times as often the second
        ("sequence", [-0.5 * 2.0 * 1.5] * 2 + [0.5 * math.exp(-0.5)] * 3),
        ("token", [-1.0, -1.5, 0.5, 0.5, 0.5 * math.exp(-0.5)]),
    ],
)
def test_an_action_of_other_weights_is_weighed_by_its_truncated_importance(ratio, expected):
    """min(1.5, pi_old / pi_behaviour): the first action's is 2, the second's e^-0.5."""
    sampled = OLD + torch.tensor([0.0, -math.log(2.0), 0.0, 0.0, 0.5])
    loss = PolicyGradient(ratio=ratio, importance_cap=1.5)
    _, grad, metrics = gradient(loss, OLD, behaviour=sampled)
    assert grad == pytest.approx(expected)
    assert metrics["importance_capped"] == pytest.approx(1 / 2 if ratio == "sequence" else 1 / 5)


@pytest.mark.parametrize("ratio", ["sequence", "token"])
def test_the_penalty_on_samples_of_other_weights_is_the_divergence_of_the_policy(ratio):
    """Policy (1/2, 1/2), reference (1/4, 3/4), sampled by (3/4, 1/4): four actions of one token.
    KL = ln(2) / 2 + ln(2/3) / 2 = 0.143841; without the weights 2/3 and 2 it would be 0.168494."""
    policy = torch.full((4,), math.log(1 / 2))
    loss, metrics = PolicyGradient(ratio=ratio, importance_cap=2.0, kl=0.5)(
        batch(
            policy,
            torch.zeros(4),
            action_of=torch.arange(4),
            old_logprobs=policy,
            behaviour=torch.tensor([3 / 4, 3 / 4, 3 / 4, 1 / 4]).log(),
            ref_logprobs=torch.tensor([1 / 4, 1 / 4, 1 / 4, 3 / 4]).log(),
            total_samples=4,
            total_tokens=4,
        )
    )
    assert metrics["kl"] == pytest.approx(0.143841, abs=1e-6)
    assert float(loss) == pytest.approx(0.5 * 0.143841, abs=1e-6)


def test_with_a_ratio_of_tokens_each_token_of_an_action_weighs_its_own_penalty():
    """As above, with both tokens in one action: 2/3 of 1/2 - ln(1/2) - 1 = 0.193147, and 2 times
    3/2 - ln(3/2) - 1 = 0.094535."""
    policy = torch.full((2,), math.log(1 / 2))
    _, metrics = PolicyGradient(ratio="token", importance_cap=2.0, kl=0.5)(
        batch(
            policy,
            torch.zeros(1),
            action_of=torch.zeros(2, dtype=torch.long),
            old_logprobs=policy,
            behaviour=torch.tensor([3 / 4, 1 / 4]).log(),
            ref_logprobs=torch.tensor([1 / 4, 3 / 4]).log(),
            total_samples=1,
            total_tokens=2,
        )
    )
    expected = (2 / 3 * 0.193147 + 2 * 0.094535) / 2
    assert metrics["kl"] == pytest.approx(expected, abs=1e-6)


def test_with_a_ratio_of_sequences_the_tokens_of_an_action_weigh_their_penalties_alike():
    """The tokens above in one action, of weight 2/3 times 2, and the first one again in another, of
    weight 2/3."""
    policy = torch.full((3,), math.log(1 / 2))
    _, metrics = PolicyGradient(importance_cap=2.0, kl=0.5)(
        batch(
            policy,
            torch.zeros(2),
            action_of=torch.tensor([0, 0, 1]),
            old_logprobs=policy,
            behaviour=torch.tensor([3 / 4, 1 / 4, 3 / 4]).log(),
            ref_logprobs=torch.tensor([1 / 4, 3 / 4, 1 / 4]).log(),
            total_samples=2,
            total_tokens=3,
        )
    )
    expected = (4 / 3 * (0.193147 + 0.094535) + 2 / 3 * 0.193147) / 3
    assert metrics["kl"] == pytest.approx(expected, abs=1e-6)


def test_an_importance_at_the_cap_is_not_cut():
    _, _, metrics = gradient(PolicyGradient(importance_cap=1.0), OLD)
    assert metrics["importance_capped"] == 0.0


def test_a_cap_where_nothing_can_differ_is_an_error():
    with pytest.raises(ConfigError, match=r"^importance_cap: nothing differs"):
        PolicyGradient(old_logprobs="behaviour", importance_cap=2.0)


@pytest.mark.parametrize("ratio", ["sequence", "token"])
@pytest.mark.parametrize("reduction", ["sample_mean", "token_mean"])
def test_micro_batches_add_up_to_the_whole(ratio, reduction):
    loss = PolicyGradient(ratio=ratio, reduction=reduction, clip=0.1, kl=0.2, entropy=0.3)
    torch.manual_seed(0)
    moved = OLD + 0.3 * torch.randn(5)
    whole = batch(moved, ref_logprobs=OLD - 0.2, entropy=torch.rand(5))
    value, metrics = loss(whole)
    total, sums = 0.0, dict.fromkeys(metrics, 0.0)
    for action in (0, 1):
        of_action = action == OF
        part = dataclasses.replace(
            whole,
            logprobs=whole.logprobs[of_action],
            old_logprobs=whole.old_logprobs[of_action],
            behaviour=whole.behaviour[of_action],
            ref_logprobs=whole.ref_logprobs[of_action],
            entropy=whole.entropy[of_action],
            action_of=torch.zeros(int(of_action.sum()), dtype=torch.long),
            advantages=whole.advantages[action : action + 1],
        )
        share, parts = loss(part)
        total += share.item()
        sums = {key: sums[key] + number for key, number in parts.items()}
    assert total == pytest.approx(value.item())
    assert sums == pytest.approx(metrics)


def test_the_critics_loss_is_the_plain_square():
    values = torch.tensor([1.0, 4.0], requires_grad=True)
    targets = torch.tensor([3.0, 3.0], requires_grad=True)
    loss, metrics = value_loss(values, targets, None, ValueLoss(coefficient=0.5), total=2)
    loss.backward()
    assert loss.item() == pytest.approx(0.5 * (4.0 + 1.0) / 2)
    assert values.grad.tolist() == pytest.approx([0.5 * 2 * -2 / 2, 0.5 * 2 * 1 / 2])
    assert targets.grad is None, "the bootstrap is a constant"
    assert metrics == pytest.approx(
        {
            "value_loss": 1.25,
            "value_error": 2.5,
            "target_mean": 3.0,
            "target_square": 9.0,
        }
    )


def test_the_critics_expectile_weighs_errors_below_the_target_more():
    values = torch.tensor([1.0, 1.0], requires_grad=True)
    targets = torch.tensor([2.0, -1.0])
    loss, metrics = value_loss(values, targets, None, ValueLoss(expectile=0.75), total=2)
    loss.backward()
    assert loss.item() == pytest.approx((1.5 * 1 + 0.5 * 4) / 2)
    assert values.grad.tolist() == pytest.approx([-1.5, 1.0])
    assert metrics["value_error"] == pytest.approx(2.5), (
        "the plain square, for the variance explained"
    )


def test_a_trained_value_is_the_expectile_of_its_targets():
    from scipy.stats import expectile as reference

    targets = torch.tensor([11.0, -30.0, 0.0, 7.0])
    value = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([value], lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        value_loss(value.expand(4), targets, None, ValueLoss(expectile=0.9), total=4)[0].backward()
        optimizer.step()
    assert value.item() == pytest.approx(reference(targets.numpy(), 0.9), abs=1e-4)


def test_the_value_clip_takes_the_worse_of_both_errors():
    old, targets = torch.tensor([0.0, 0.0]), torch.tensor([2.0, -1.0])
    values = torch.tensor([1.0, 1.0], requires_grad=True)
    loss, _ = value_loss(values, targets, old, ValueLoss(clip=0.5), total=2)
    loss.backward()
    # kept at 0.5: (0.5 - 2)^2 > (1 - 2)^2 stops the gain; (1 + 1)^2 > (0.5 + 1)^2 still pulls
    assert loss.item() == pytest.approx((2.25 + 4.0) / 2)
    assert values.grad.tolist() == pytest.approx([0.0, 2.0])


def test_the_value_clip_lies_around_the_old_value():
    # values 2 and -2 with old ones 1 and -1 are kept at 1.5 and -1.5: both have gone too far;
    # 0.8 is near enough to 1 to stay what it is
    old, targets = torch.tensor([1.0, -1.0, 1.0]), torch.tensor([2.5, -2.5, 0.0])
    values = torch.tensor([2.0, -2.0, 0.8])
    loss, _ = value_loss(values, targets, old, ValueLoss(clip=0.5), total=3)
    assert loss.item() == pytest.approx((1.0 + 1.0 + 0.64) / 3)


def test_a_value_clip_without_old_values_is_an_error():
    with pytest.raises(ConfigError, match=r"^value_loss\.clip: "):
        value_loss(torch.ones(1), torch.ones(1), None, ValueLoss(clip=0.5), total=1)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"ratio": "word"}, "ratio"),
        ({"reduction": "sum"}, "reduction"),
        ({"clip": 0.0}, "clip"),
        ({"clip": 1.0}, "clip"),
        ({"clip_high": 0.3}, "clip_high"),
        ({"clip": 0.2, "clip_high": 0.0}, "clip_high"),
        ({"dual_clip": 1.0}, "dual_clip"),
        ({"importance_cap": 0.0}, "importance_cap"),
        ({"old_logprobs": "rollout"}, "old_logprobs"),
        ({"kl": -1e-9}, "kl"),
        ({"kl": -0.1}, "kl"),
        ({"entropy": -0.1}, "entropy"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_the_field(settings, field):
    with pytest.raises(ConfigError, match=rf"^{field}: [^\n]+; [^\n]+$"):
        PolicyGradient(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"clip": 0.999, "clip_high": 0.01, "dual_clip": 1.01},
        {"importance_cap": 0.01, "old_logprobs": "recompute"},
        {"kl": 1e-9, "reference_update_every": 1, "entropy": 1e-9},
    ],
)
def test_what_lies_within_the_bounds_is_taken(settings):
    loss = PolicyGradient(**settings)
    assert all(getattr(loss, name) == value for name, value in settings.items())
    assert loss.needs_reference == ("kl" in settings) == loss.needs_entropy


def test_the_token_ratio_may_have_an_advantage_for_each_token():
    """As many as tokens, each meets its own: -(1/2) sum of A_l grad log pi_l."""
    advantages = torch.tensor([2.0, -1.0, 0.5, 3.0, 0.0])
    _, grad, _ = gradient(PolicyGradient(ratio="token"), OLD, advantages=advantages)
    assert grad == pytest.approx([-1.0, 0.5, -0.25, -1.5, 0.0])


def test_clipped_tokens_are_a_share_of_all_tokens():
    moved = OLD + torch.tensor([math.log(1.5), 0.0, 0.0, 0.0, 0.0])
    _, _, metrics = gradient(PolicyGradient(ratio="token", clip=0.2), moved)
    assert metrics["clip_fraction"] == pytest.approx(1 / 5)
    assert metrics["policy_loss"] == pytest.approx(-(2 * 1.2 + 2 - 3) / 2)


# --- a trust region on both sides ----------------------------------------------------------------


def test_a_mask_drops_terms_outside_of_both_bounds_whatever_their_advantage():
    """Ratios 1.5, 0.5, 1.2, 1.0, 0.5 within [0.8, 1.25]: -(1.2 * -1 + 1.0 * -1) / 2 actions."""
    ratios = torch.tensor([1.5, 0.5, 1.2, 1.0, 0.5])
    loss = PolicyGradient(ratio="token", mask=0.2, mask_high=0.25)
    value, grad, metrics = gradient(loss, OLD + ratios.log())
    assert value == pytest.approx((1.2 + 1.0) / 2)
    assert grad == pytest.approx([0.0, 0.0, 0.6, 0.5, 0.0])
    assert metrics["mask_fraction"] == pytest.approx(3 / 5)
    assert metrics["clip_fraction"] == 0.0  # there is no clip


def test_a_mask_keeps_the_ratios_on_its_bounds():
    """Ratios 1/2 and 2, which floats hold exactly, within [1/2, 2]."""
    old = torch.zeros(2)
    loss = PolicyGradient(mask=0.5, mask_high=1.0)
    _, metrics = loss(
        batch(
            torch.tensor([0.5, 2.0]).log(),
            action_of=torch.arange(2),
            old_logprobs=old,
            behaviour=old,
            total_tokens=2,
        )
    )
    assert metrics["mask_fraction"] == 0.0


def test_a_mask_drops_whole_actions_where_the_ratio_is_that_of_a_sequence():
    """Sequence ratios 1.44 and 1.0: the first action is outside of 1 +- 0.2."""
    ratios = torch.tensor([1.2, 1.2, 1.0, 1.0, 1.0])
    _, grad, metrics = gradient(PolicyGradient(mask=0.2), OLD + ratios.log())
    assert grad == pytest.approx([0.0, 0.0, 0.5, 0.5, 0.5])
    assert metrics["mask_fraction"] == pytest.approx(1 / 2)


def test_the_upper_side_of_a_mask_needs_the_mask():
    with pytest.raises(ConfigError, match="mask_high: is the upper side of mask; set mask too"):
        PolicyGradient(mask_high=0.3)
