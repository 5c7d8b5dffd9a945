"""The table of runs with stale actions, and the loss that does not correct for them."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from _uncorrected import Uncorrected
from staleness import report

from colearn.contract import PolicyBatch
from colearn.loss.policy_gradient import PolicyGradient


def run(seed, staleness, value, correction=None):
    return {
        "problem": "lock",
        "method": "magrpo",
        "seed": seed,
        "staleness": staleness,
        "correction": correction,
        "exact_return": value,
    }


def test_differences_are_paired_by_seed_and_have_students_interval():
    # values 5, 7: mean 6, half width t(1) = 12.706; differences 4, 4; seed 3 has no pair
    fresh = [run(1, 0, 1.0), run(2, 0, 3.0)]
    stale = [run(1, 4, 5.0, "none"), run(2, 4, 7.0, "none"), run(3, 4, 6.0, "none")]
    *_, first, second = report(fresh + stale[:2]).splitlines()
    assert first == "| lock | magrpo | 0 | 2.00 [-10.71, 14.71] |  | 1.00, 3.00 |"
    assert second == (
        "| lock | magrpo | 4, none | 6.00 [-6.71, 18.71] | 4.00 [4.00, 4.00] | 5.00, 7.00 |"
    )
    assert "| 4.00 [4.00, 4.00] | 5.00, 7.00, 6.00 |" in report(fresh + stale)


def test_the_uncorrected_loss_ignores_the_behaviour_policy():
    batch = PolicyBatch(
        logprobs=torch.tensor([-1.0, -2.0]),
        action_of=torch.tensor([0, 1]),
        advantages=torch.tensor([1.0, -1.0]),
        old_logprobs=torch.tensor([-1.0, -2.0]),
        behaviour=torch.tensor([-1.0, -0.5]),
        ref_logprobs=None,
        entropy=None,
        total_samples=2,
        total_tokens=2,
    )
    loss, _ = Uncorrected()(batch)
    assert float(loss) == 0.0  # -(1 - 1) / 2
    corrected, _ = PolicyGradient(importance_cap=2.0)(batch)
    assert float(corrected) != 0.0
    assert Uncorrected().corrects_staleness
