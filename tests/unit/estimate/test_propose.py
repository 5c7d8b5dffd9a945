"""Proposed placements: the largest model first, shared bases together, and whether they fit."""

from __future__ import annotations

from typing import Any

import pytest

from colearn.config import load_config
from colearn.estimate import estimate
from colearn.estimate.machine import Machine, read_machine
from colearn.estimate.propose import Proposal, propose
from colearn.estimate.table import proposal_text

LONG = {"task.horizon": 4, "agents.*.sampling.max_tokens": 60}
"""Settings under which activations take most of the memory."""


def proposed(machine: Machine | None, processes: int = 1, **changed: Any) -> Proposal | None:
    config = load_config(
        {
            "task": {"name": "str_build", "horizon": 1},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": "embedded-tiny"}},
            "critic": {"path": "embedded-tiny"},
            "evaluation": {"episodes": 1},
        },
        changed,
    )
    return propose(estimate(config, machine=machine, processes=processes), processes=processes)


def test_models_with_weights_of_their_own_are_spread_over_the_devices() -> None:
    proposal = proposed(read_machine("3x80GB"))
    assert proposal is not None and proposal.fits
    assert sorted(proposal.placement.values()) == ["cuda:0", "cuda:1", "cuda:2"]
    devices = {str(network.key): network.device for network in proposal.estimate.networks}
    assert len(set(devices.values())) == 3
    assert proposal_text(proposal).plain.endswith("it fits")


def test_more_models_than_devices_share_them_by_size() -> None:
    proposal = proposed(read_machine("2x80GB"))
    assert proposal is not None
    # both actors are alike; the critic, whose vocabulary holds the tags of a stream, is larger
    assert next(iter(proposal.placement.items())) == ("critic", "cuda:0")
    assert [*proposal.placement.values()][1:] == ["cuda:1", "cuda:1"]


def test_adapters_of_one_base_stay_together() -> None:
    lora = {"rank": 2, "alpha": 4}
    proposal = proposed(read_machine("2x80GB"), **{"models.*.lora": lora, "critic.lora": lora})
    assert proposal is not None
    assert set(proposal.placement.values()) == {"cuda:0"}


def test_what_does_not_fit_is_said_with_the_remedy() -> None:
    proposal = proposed(Machine(count=4, memory=1000))
    assert proposal is not None and not proposal.fits
    text = proposal_text(proposal).plain
    assert set(proposal.estimate.too_small) == {"cuda:0", "cuda:1", "cuda:2"}
    assert f"does not fit on {', '.join(proposal.estimate.too_small)}: use LoRA" in text


@pytest.mark.parametrize(
    ("machine", "changed"),
    [
        (None, {}),
        (read_machine("80GB"), {}),
        (read_machine("2x80GB"), {"models.*.device": "cuda:1"}),
    ],
    ids=["this machine", "one device", "devices are named"],
)
def test_there_is_nothing_to_propose(machine: Machine | None, changed: dict[str, Any]) -> None:
    assert proposed(machine, **changed) is None


def test_what_fits_only_with_checkpointed_activations_is_proposed_so() -> None:
    whole = proposed(Machine(count=4, memory=10**9), **LONG)
    assert whole is not None and whole.fits and not whole.checkpointing
    peaks = [whole.estimate.peak(device) for device in set(whole.placement.values())]
    less = proposed(Machine(count=4, memory=max(peaks) - 1), **LONG)
    assert less is not None and less.fits and less.checkpointing
    assert "\n  and checkpointing: true for every trained model" in proposal_text(less).plain


def test_processes_of_a_launcher_have_a_device_each() -> None:
    assert proposed(read_machine("2x80GB"), processes=2) is None
