"""Whole runs on an accelerator train what the CPU trains, in every family of the rehearsal."""

from __future__ import annotations

import pytest
import torch

from tests.rehearsal.run_cases import (
    EXACT,
    HALF,
    check_half_precision,
    check_same_training,
    trained,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator here"),
]


@pytest.mark.parametrize("family", EXACT)
def test_a_run_trains_what_the_cpu_trains(family):
    device, cpu = (trained(family, device=name, tf32=False) for name in ("cuda", "cpu"))
    check_same_training(device, cpu, gap=1e-4)


@pytest.mark.parametrize("family", HALF)
def test_a_run_in_half_precision_finishes(family):
    check_half_precision(trained(family, device="cuda"))
