"""Every config at paper size has an estimate on eight H100 of 80 GB, and a proposed placement."""

from __future__ import annotations

import pytest

from colearn.config import load_config, shipped_configs
from colearn.estimate import estimate
from colearn.estimate.machine import read_machine
from colearn.estimate.propose import propose

PAPER = [name for name in shipped_configs() if name.startswith("paper/")]


def test_there_are_nineteen_of_them() -> None:
    assert len(PAPER) == 19


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_a_paper_config_is_proposed_a_placement(name: str) -> None:
    config, machine = load_config(name), read_machine("8xH100-80GB")
    proposal = propose(estimate(config, machine=machine))
    assert proposal is not None
    # the lines that are proposed are the run that was estimated
    changes = {"placement": proposal.placement} if proposal.placement else {}
    pasted = load_config(name, changes)
    assert pasted.train.episodes == config.train.episodes
    again = estimate(
        pasted,
        processes=proposal.estimate.processes,
        machine=machine,
        rehearsed=proposal.estimate.rehearsed,
    )
    assert again.phases == proposal.estimate.phases
