"""Whole runs on devices in name only: they finish, and train what the CPU trains."""

from __future__ import annotations

import math

import pytest

from tests.rehearsal.run_cases import FAMILIES

EXACT = [family for family in FAMILIES if "bfloat16" not in family]
HALF = [family for family in FAMILIES if "bfloat16" in family]


@pytest.mark.parametrize("family", EXACT)
def test_a_run_on_the_second_device_trains_what_the_cpu_trains(rehearse, family):
    device = rehearse("run_cases:trained", family=family, device="cuda:1")
    cpu = rehearse("run_cases:trained", family=family, device="cpu")
    assert device["status"] == cpu["status"] == "finished"
    assert device["updates"] == cpu["updates"] > 0
    assert device["weights"].keys() == cpu["weights"].keys()
    worst = max(
        (abs(a - b), name)
        for name, weight in cpu["weights"].items()
        for a, b in zip(weight, device["weights"][name], strict=True)
    )
    assert worst[0] <= 1e-5, worst
    for name in cpu["metrics"]:
        if "logprob_mismatch" in name:
            assert device["metrics"][name] <= 1e-5, name


@pytest.mark.parametrize("family", HALF)
def test_a_run_in_half_precision_finishes_on_the_second_device(rehearse, family):
    device = rehearse("run_cases:trained", family=family, device="cuda:1")
    assert device["status"] == "finished" and device["updates"] > 0
    assert all(math.isfinite(v) for weight in device["weights"].values() for v in weight)
    gaps = [v for name, v in device["metrics"].items() if "logprob_mismatch" in name]
    assert gaps and max(gaps) <= 5e-2
