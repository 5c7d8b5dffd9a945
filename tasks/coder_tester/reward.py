"""The terms of the rewards for code (Stronger-MAS, B.2). Each is a function of the test results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..local_reward import local_reward, weights
from .running import CaseResult, share

CODER = weights(build=0.10, run=0.10, passes=0.80)
TESTER = weights(valid=0.20, agrees=0.80)
SMOKE = 2
"""Number of golden tests in the smoke subset, which consists of the first golden tests."""
TAU = 0.60
"""tau_mut: a test counts if more than this share of the reference programs pass it."""


def team(trials: Sequence[CaseResult]) -> float:
    """p: the share of golden tests that the program passes."""
    return share(trials)


def margin(before: float, after: float) -> float:
    """The change of p in a turn. Summed over turns, the changes equal the p of the final program.
    For candidates of one turn, differences in this change equal differences in p."""
    return after - before


def build_score(trials: Sequence[CaseResult]) -> float:
    """s_build: 1 if the program compiles and its imports resolve."""
    return float(bool(trials) and trials[0].error not in ("syntax", "import"))


def run_score(trials: Sequence[CaseResult]) -> float:
    """s_run: 1 if the program has no uncaught exception and no timeout on the first golden
    tests."""
    smoke = trials[:SMOKE]
    return float(bool(smoke) and all(trial.error is None for trial in smoke))


def pass_score(trials: Sequence[CaseResult]) -> float:
    """s_nr of the coder: the share of golden tests that the coder's program passes."""
    return share(trials)


def valid_score(references: Sequence[CaseResult]) -> float:
    """s_valid: 1 if more than TAU of the references run on the test's input without an error. A
    test is a fixed text and therefore deterministic."""
    return float(_share(trial.error is None for trial in references) > TAU)


def agree_score(references: Sequence[CaseResult]) -> float:
    """s_nr of the tester: 1 if more than TAU of the references pass its test."""
    return float(_share(trial.passed for trial in references) > TAU)


def coder_reward(trials: Sequence[CaseResult] | None) -> float:
    """r_loc of the coder; m = 1 if a program was read and therefore has results."""
    trials = trials or ()
    scores = {
        "build": build_score(trials),
        "run": run_score(trials),
        "passes": pass_score(trials),
    }
    return local_reward(CODER, scores, available=bool(trials))


def tester_reward(references: Sequence[CaseResult] | None) -> float:
    """r_loc of the tester; m = 1 if a test was read and the problem has reference programs."""
    references = references or ()
    scores = {"valid": valid_score(references), "agrees": agree_score(references)}
    return local_reward(TESTER, scores, available=bool(references))


def _share(holds: Iterable[bool]) -> float:
    outcomes = list(holds)
    return sum(outcomes) / len(outcomes) if outcomes else 0.0
