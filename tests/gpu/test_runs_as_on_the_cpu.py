"""Whole runs on an accelerator train what the CPU trains, in every family of the rehearsal."""

from __future__ import annotations

import math

import pytest
import torch

from tests.rehearsal.run_cases import FAMILIES, trained

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator here"),
]

EXACT = [family for family in FAMILIES if "bfloat16" not in family]
HALF = [family for family in FAMILIES if "bfloat16" in family]


@pytest.mark.parametrize("family", EXACT)
def test_a_run_trains_what_the_cpu_trains(family):
    device, cpu = (trained(family, device=name, tf32=False) for name in ("cuda", "cpu"))
    assert device["status"] == cpu["status"] == "finished"
    assert device["updates"] == cpu["updates"] > 0
    assert device["weights"].keys() == cpu["weights"].keys()
    worst = max(
        (abs(a - b), name)
        for name, weight in cpu["weights"].items()
        for a, b in zip(weight, device["weights"][name], strict=True)
    )
    assert worst[0] <= 1e-5, worst
    gaps = [value for name, value in device["metrics"].items() if "logprob_mismatch" in name]
    assert max(gaps, default=0.0) <= 1e-4


@pytest.mark.parametrize("family", HALF)
def test_a_run_in_half_precision_finishes(family):
    device = trained(family, device="cuda")
    assert device["status"] == "finished" and device["updates"] > 0
    assert all(math.isfinite(v) for weight in device["weights"].values() for v in weight)
    gaps = [v for name, v in device["metrics"].items() if "logprob_mismatch" in name]
    assert gaps and max(gaps) <= 5e-2
