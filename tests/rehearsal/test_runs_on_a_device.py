"""Whole runs on devices in name only: they finish, and train what the CPU trains."""

from __future__ import annotations

import pytest

from tests.rehearsal.run_cases import EXACT, HALF, check_half_precision, check_same_training

PLACEMENTS = [{"ben": "cuda:1"}, {"ada": "cuda:1", "ben": "cuda:2", "critic": "cuda:3"}]


@pytest.mark.parametrize("family", EXACT)
def test_a_run_on_the_second_device_trains_what_the_cpu_trains(rehearse, family):
    device = rehearse("run_cases:trained", family=family, device="cuda:1")
    cpu = rehearse("run_cases:trained", family=family, device="cpu")
    check_same_training(device, cpu, gap=1e-5)


@pytest.mark.parametrize("placement", PLACEMENTS, ids=["two devices", "four devices"])
def test_agents_and_critic_on_devices_of_their_own_train_what_the_cpu_trains(rehearse, placement):
    ask = {"family": "critic, window"}
    device = rehearse("run_cases:trained", device="cuda:0", placement=placement, **ask)
    check_same_training(device, rehearse("run_cases:trained", device="cpu", **ask), gap=1e-5)


@pytest.mark.parametrize("family", HALF)
def test_a_run_in_half_precision_finishes_on_the_second_device(rehearse, family):
    check_half_precision(rehearse("run_cases:trained", family=family, device="cuda:1"))
