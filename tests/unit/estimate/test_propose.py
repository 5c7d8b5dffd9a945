"""Proposed placements: copies of a team that fits on one device, else the largest model first."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from colearn.config import Config, load_config
from colearn.estimate import estimate
from colearn.estimate.machine import Machine, read_machine
from colearn.estimate.propose import Proposal, propose
from colearn.estimate.table import proposal_text


def config(**changed: Any) -> Config:
    return load_config(
        {
            "task": {"name": "str_build", "horizon": 1},
            "algorithm": {"name": "collm_cc"},
            "models": {"*": {"path": "embedded-tiny"}},
            "critic": {"path": "embedded-tiny"},
            "evaluation": {"episodes": 1},
        },
        changed,
    )


def proposed(machine: Machine | None, processes: int = 1, **changed: Any) -> Proposal | None:
    return propose(estimate(config(**changed), machine=machine, processes=processes))


def too_small(devices: int, **changed: Any) -> Machine:
    """A machine whose devices each lack a byte for the whole team."""
    peak = estimate(config(**changed), machine=Machine(1, 10**12)).peak("cuda:0")
    return Machine(devices, peak - 1)


def placement(proposal: Proposal | None) -> dict[str, str]:
    assert proposal is not None
    return dict(proposal.placement)


def test_a_team_that_fits_on_one_device_is_copied_to_each() -> None:
    proposal = proposed(read_machine("4xH100-80GB"))
    assert proposal is not None and not proposal.placement
    assert proposal.estimate.processes == 4
    text = proposal_text(proposal).plain
    assert "in 4 processes, one for each device (torchrun --nproc_per_node 4" in text
    assert "no time is known: run colearn measure on a device of this kind" in text


def test_models_of_a_team_that_does_not_fit_are_spread_over_the_devices() -> None:
    proposal = proposed(too_small(3))
    assert proposal is not None and not proposal.estimate.too_small
    assert sorted(placement(proposal).values()) == ["cuda:0", "cuda:1", "cuda:2"]
    devices = {str(network.key): network.device for network in proposal.estimate.networks}
    assert len(set(devices.values())) == 3
    assert "fits into the memory of --devices" in proposal_text(proposal).plain


def test_more_models_than_devices_share_them_by_size() -> None:
    where = placement(proposed(too_small(2)))
    # both actors are alike; the critic, whose vocabulary holds the tags of a stream, is larger
    assert next(iter(where.items())) == ("critic", "cuda:0")
    assert [*where.values()][1:] == ["cuda:1", "cuda:1"]


def test_each_of_several_value_models_is_placed() -> None:
    several = {"algorithm.name": "collm_dc"}
    where = placement(proposed(too_small(4, **several), **several))
    assert sorted(where) == ["builder_1", "builder_2", "critic-builder_1", "critic-builder_2"]
    assert sorted(where.values()) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


def test_adapters_of_one_base_stay_together() -> None:
    lora = {"models.*.lora": {"rank": 2, "alpha": 4}, "critic.lora": {"rank": 2, "alpha": 4}}
    proposal = proposed(too_small(2, **lora), **lora)
    assert set(placement(proposal).values()) == {"cuda:0"}


def test_what_does_not_fit_is_said_with_the_remedy() -> None:
    proposal = proposed(Machine(count=4, memory=1000))
    assert proposal is not None and proposal.estimate.too_small
    text = proposal_text(proposal).plain
    assert "does not fit: cuda:0 needs" in text
    assert "lower train.token_budget, set checkpointing, use LoRA" in text


@pytest.mark.parametrize(
    ("machine", "changed"),
    [
        (None, {}),
        (read_machine("80GB"), {}),
        (read_machine("2x80GB"), {"placement": {"builder_1": "cuda:1"}}),
    ],
    ids=["this machine", "one device", "devices are named"],
)
def test_there_is_nothing_to_propose(machine: Machine | None, changed: dict[str, Any]) -> None:
    assert proposed(machine, **changed) is None


def test_processes_of_a_launcher_have_a_device_each() -> None:
    assert proposed(read_machine("2x80GB"), processes=2) is None


def test_the_proposed_lines_are_the_proposed_run() -> None:
    machine = too_small(2)
    proposal = proposed(machine)
    assert proposal is not None
    lines = [line.split(" ", 3)[3] for line in proposal_text(proposal).plain.splitlines()[1:2]]
    pasted = load_config(config().model_dump(mode="json"), [shlex.split(lines[0])[0]])
    again = estimate(pasted, machine=machine)
    assert again.phases == proposal.estimate.phases
